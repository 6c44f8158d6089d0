"""Lists with different numbers of files: each side has its own number of trials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import t

from fusion_bench.checks.dataset_facts import describe_dataset, describe_selection, select_trial
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.compared_reports import compare_reports
from fusion_bench.evaluation.report_records import Collection
from fusion_bench.io.dataset import load_dataset
from fusion_bench.report.evaluation_page import build_page
from fusion_bench.report.markdown import render_page
from tests.counts_project import QUERIES, RANKS, make
from tests.evaluation.trials.reports import run

MEASURE = "RR@10"


def reciprocal(name: str, count: int | None = None) -> NDArray[np.float64]:
    """(T, Q): the values of a list by hand."""
    ranks = np.array(RANKS[name][:count], dtype=float)
    values = np.zeros_like(ranks)
    values[ranks > 0] = 1 / ranks[ranks > 0]
    return values


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("counts")
    make(root)
    return root


@pytest.fixture(scope="module")
def collection(project: Path) -> Collection:
    return run(project).collections[0]


def test_each_system_has_the_trials_of_its_own_lists(collection: Collection) -> None:
    results = {row.name: row.measures[MEASURE] for row in collection.ranked_systems}
    for name in "abc":
        by_hand = reciprocal(name)
        expected = by_hand.tolist() if len(by_hand) > 1 else []
        assert [*map(list, results[name].trials)] == expected
        assert results[name].values == pytest.approx(by_hand.mean(axis=0), rel=0, abs=1e-15)
    assert {name: len(each.trials) for name, each in results.items()} == {
        "a": 3,
        "b": 2,
        "c": 0,
        "ab": 2,
        "abc": 2,
    }


def test_a_fusion_reads_the_files_that_all_of_its_lists_have(
    collection: Collection, tmp_path: Path
) -> None:
    make(tmp_path, a=RANKS["a"][:2])
    equal = run(tmp_path).collections[0]
    for name in ("ab", "abc", "b", "c"):
        assert collection.system(name) == equal.system(name)
    assert collection.system("a") != equal.system("a")


def test_the_variance_of_a_difference_has_the_terms_of_both_numbers(collection: Collection) -> None:
    """Mean squares by their definition, and Satterthwaite's degrees of freedom."""
    [item] = [each for each in collection.ranked_comparisons if each.candidate == "a"]
    queries, sides = len(QUERIES), [reciprocal("a"), reciprocal("b")]
    difference = sides[0].mean(axis=0) - sides[1].mean(axis=0)
    by_query = difference.var(ddof=1) / queries
    added, squares = 0.0, by_query**2 / (queries - 1)
    for y in sides:
        count = len(y)
        rest = y - y.mean(axis=0) - y.mean(axis=1, keepdims=True) + y.mean()
        within = (rest**2).sum() / ((count - 1) * (queries - 1)) / queries
        between = y.mean(axis=1).var(ddof=1)
        assert between > within
        added += (between - within) / count
        squares += (between / count) ** 2 / (count - 1)
        squares += (within / count) ** 2 / ((count - 1) * (queries - 1))
    variance = by_query + added
    freedom = max(variance**2 / squares, 1)  # at least the smallest T - 1
    assert item.difference == pytest.approx(difference.mean())
    assert item.standard_error == pytest.approx(np.sqrt(variance))
    assert item.trial_share == pytest.approx(added / variance)
    assert item.narrowing is not None
    assert item.narrowing.now == pytest.approx(t.ppf(0.975, freedom) * np.sqrt(variance))


def test_the_page_and_the_checks_say_each_number(project: Path) -> None:
    page = render_page(build_page(run(project)))
    assert "2 or 3 trials of b, abc, " in page
    summary: Any = describe_dataset(load_dataset(project / "datasets/counts/dataset.yaml"))
    assert {row["name"]: row["trials"] for row in summary["runs"]} == {"a": 3, "b": 2, "c": 1}


def test_lists_are_checked_in_their_own_trials(collection: Collection) -> None:
    named = sorted((info.name, info.trial or 0) for info in collection.runs)
    assert named == [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("c", 0)]


def test_no_system_passes_the_perfect_order(tmp_path: Path) -> None:
    """Only the second file of b, the last that it has, finds a relevant document."""
    nothing, found = (0,) * len(QUERIES), (1,) * len(QUERIES)
    make(tmp_path, a=(nothing,) * 3, b=(nothing, found), c=(nothing,))
    result = run(tmp_path).collections[0]
    values = {row.name: row.measures[MEASURE].values for row in result.systems}
    assert set(values["b"]) == {0.5}
    assert values["perfect order"] == values["b"]


def test_two_reports_have_each_their_own_number(project: Path, tmp_path: Path) -> None:
    make(tmp_path, a=RANKS["a"][:2])
    reports = run(project), run(tmp_path)
    [item] = compare_reports(*reports, baseline=None, candidates=["a"])[0].comparisons
    sides = [reciprocal("a"), reciprocal("a", 2)]
    assert item.difference == pytest.approx(sides[1].mean() - sides[0].mean())
    added = 0.0
    for y in sides:
        rest = y - y.mean(axis=0) - y.mean(axis=1, keepdims=True) + y.mean()
        within = (rest**2).sum() / ((len(y) - 1) * (len(QUERIES) - 1)) / len(QUERIES)
        added += max(y.mean(axis=1).var(ddof=1) - within, 0) / len(y)
    assert item.standard_error is not None
    assert item.trial_share == pytest.approx(added / item.standard_error**2)


def test_one_trial_can_be_shown_where_all_lists_have_it(project: Path) -> None:
    dataset = load_dataset(project / "datasets/counts/dataset.yaml")
    assert describe_selection(dataset, 2) == "trial 2 of 2 or 3 of a, b"
    assert select_trial(dataset, 2).files["runs/b"].path.name == "b-2.trec"
    with pytest.raises(ConfigError, match="counts has 2 trials "):
        select_trial(dataset, 3)
    alone = load_dataset(project / "datasets/counts/dataset.yaml", runs=["a", "c"])
    assert select_trial(alone, 3).files["runs/a"].path.name == "a-3.trec"
