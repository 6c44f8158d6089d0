"""What is found on the first trial alone, and that it is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fusion_bench.checks.dataset_facts import FIRST_TRIAL, dataset_notices, describe_first_trial
from fusion_bench.evaluation.report_records import Collection
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.report.evaluation_page import build_page
from fusion_bench.report.markdown import render_page
from fusion_bench.report.policy_page import build_policy_page
from fusion_bench.tune.policy_study import StudyBudget, study_experiment
from tests.evaluation.trials.reports import run
from tests.tiny import DATASET, EXPERIMENT, edit
from tests.trials_project import FIRST, SECOND, make, make_plain

BLENDED = "  blended: {runs: [a, b], blend: {method: replace, reranker: r, missing: below}}\n"
GROUPED = "'groups: auto' compared trial 1 of 2 of a. New trials may give other groups."
VERDICTS = "CRAG's verdicts are those of trial 1 of 2 of a. New trials may give others."


def make_crag(root: Path, *, repeated: bool) -> Collection:
    """A report of CRAG's verdicts, with refined lists of ``b``; ``a`` has two trials or one."""
    if repeated:
        make(root, FIRST, SECOND)
    else:
        make_plain(root, FIRST)
    refined = "q1 Q0 d1 1 0.9 b\nq4 Q0 d4 1 0.9 b\n"
    (root / "datasets/tiny/b2.trec").write_text(refined, encoding="utf-8")
    edit(root, DATASET, "{path: b.trec,", "{path: b.trec, refined: b2.trec,")
    edit(root, DATASET, "{path: r.trec,", "{path: r.trec, refined: r.trec,")
    crag = f"{BLENDED}crag: {{top: 1, upper: 0.95, refine: [ambiguous]}}\n"
    edit(root, EXPERIMENT, "  both: {runs: [a, b]}\n", crag)
    report = run(root)
    page = render_page(build_page(report))
    assert (VERDICTS in page) is repeated
    return report.collections[0]


def test_crag_judges_the_first_trial_and_says_so(tmp_path: Path) -> None:
    repeated = make_crag(tmp_path / "repeated", repeated=True)
    alone = make_crag(tmp_path / "alone", repeated=False)
    assert repeated.first_trial == (VERDICTS,)
    assert alone.first_trial == ()
    assert repeated.crag[0].refined is not None
    assert repeated.crag == alone.crag  # so are the values that refined lists are compared with


def find_groups(dataset: Dataset) -> Dataset:
    """The dataset as 'groups: auto' has it, which so small a one refuses."""
    return replace(dataset, spec=dataset.spec.model_copy(update={"groups": "auto"}))


def test_groups_that_are_found_name_the_trial(tmp_path: Path) -> None:
    path = make(tmp_path, FIRST, SECOND)
    assert describe_first_trial(load_dataset(path)) == ()
    dataset = find_groups(load_dataset(path))
    assert describe_first_trial(dataset) == (GROUPED,)
    assert dataset_notices(dataset)[-1] == GROUPED
    assert describe_first_trial(find_groups(load_dataset(path, runs=["b"]))) == ()


def test_nothing_is_said_of_lists_of_one_file(tmp_path: Path) -> None:
    dataset = find_groups(load_dataset(make_plain(tmp_path, FIRST)))
    assert describe_first_trial(dataset, "Verdicts") == ()


def test_policies_name_the_trial_that_they_are_judged_on(tmp_path: Path) -> None:
    make(tmp_path, FIRST, SECOND)
    edit(tmp_path, DATASET, "queries: queries.jsonl\n", "")
    system = "  both: {runs: [a, b], policy: {method: margin_silencing}}\n"
    edit(tmp_path, EXPERIMENT, "  both: {runs: [a, b]}\n", system)
    edit(tmp_path, EXPERIMENT, "split: all\n", "")
    experiment, source = read_experiment(tmp_path / EXPERIMENT)
    budget = StudyBudget(trials=2, folds=2, shufflings=39)
    study = study_experiment(experiment, source, folders=[tmp_path / "datasets"], budget=budget)
    [warning] = study.data_warnings
    text = "Verdicts on policies are those of trial 1 of 2 of a. New trials may give others."
    assert (warning.key, warning.text) == (FIRST_TRIAL, text)
    assert text in render_page(build_policy_page(study))
