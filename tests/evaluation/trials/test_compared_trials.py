"""Two reports of a system with trials: the same ones, new ones, or one alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_bench.evaluation.compared_reports import compare_reports, match_trial_lists
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.report.comparison_page import build_comparison_page
from tests.tiny import EXPERIMENT
from tests.trials_project import TRIALS, make

SAME, NEW = {"runs/a"}, {"runs/a (second)"}


def run(root: Path, *texts: str) -> Report:
    make(root, *texts)
    experiment, source = read_experiment(root / EXPERIMENT)
    return run_experiment(experiment, source, folders=[root / "datasets"])


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return run(tmp_path_factory.mktemp("first"), *TRIALS)


def test_other_files_are_new_trials(first: Report, tmp_path: Path) -> None:
    second = run(tmp_path, *reversed(TRIALS))
    [old], [new] = first.collections, second.collections
    assert match_trial_lists(old, old) == {"a": SAME, "both": SAME}
    assert match_trial_lists(old, new) == {"a": NEW, "both": NEW}
    again = compare_reports(first, first, baseline=None, candidates=["a"])[0].comparisons[0]
    other = compare_reports(first, second, baseline=None, candidates=["a"])[0].comparisons[0]
    assert (again.difference, again.trial_share) == (0, 0)
    # The means are equal, and nothing says that these trials belong together.
    assert other.difference == 0
    assert other.standard_error > again.standard_error == 0


def test_one_trial_beside_several_is_named(first: Report, tmp_path: Path) -> None:
    second = run(tmp_path, TRIALS[0])
    [item] = compare_reports(first, second, baseline=None, candidates=["a"])
    [warning] = [each for each in item.warnings if each.key == "single trial"]
    assert "one trial of a," in warning.text
    [item] = compare_reports(second, first, baseline=None, candidates=["b"])
    assert "single trial" not in {each.key for each in item.warnings}


def test_the_page_says_that_values_are_means(first: Report) -> None:
    for candidate, expected in (("a", True), ("b", False)):
        items = compare_reports(first, first, baseline=None, candidates=[candidate])
        [table] = [
            table for section in build_comparison_page(items).sections for table in section.tables
        ]
        assert any("means over these" in note for note in table.notes) is expected
