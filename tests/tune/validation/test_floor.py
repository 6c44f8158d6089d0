"""What nobody tuned: its values are those of eval, its answers those of a family."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.report.tuning_records import FloorKind
from fusion_bench.tune.gains import UntunedSystem, evaluate_untuned, judge_floor, load_all_lists
from fusion_bench.tune.objective import create_objective, load_tuning_dataset
from fusion_bench.util.formatting import ignore_progress
from tests import counts_project, tiny

NAMES = tuple(f"q{i}" for i in range(40))
TUNED = np.random.default_rng(3).random(40)
KINDS: tuple[FloorKind, ...] = ("source",) * 6
NOISE = np.random.default_rng(4).normal(0, 0.001, 40)


def judge(*values: FloatArray, min_gain: float = 0.005) -> dict[str, str]:
    untuned = [UntunedSystem(*each) for each in zip("abcdef", KINDS, values, strict=False)]
    rows = judge_floor(untuned, TUNED, NAMES, min_gain=min_gain, alpha=0.05, seed=0)
    assert [row.mean for row in rows] == sorted((row.mean for row in rows), reverse=True)
    return {row.name: row.answer for row in rows}


def test_answers() -> None:
    answers = judge(TUNED + 0.1 + NOISE, TUNED - 0.1 + NOISE, TUNED + NOISE, TUNED, 1 - TUNED)
    assert answers == {
        "a": "better",
        "b": "worse",
        "c": "equivalent",
        "d": "identical",
        "e": "not shown",
    }
    assert judge(TUNED + NOISE, min_gain=0.0) == {"a": "not shown"}
    assert judge() == {}


def test_the_values_are_those_of_eval(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    experiment, source = read_experiment(root / tiny.EXPERIMENT)
    folders = [root / "datasets"]
    report = run_experiment(experiment, source, folders=folders, split="all", cache=False)
    [collection] = report.collections
    settings = TuneSettings(system="two")
    path = root / "datasets" / "tiny" / "dataset.yaml"
    narrow = load_tuning_dataset(experiment, source, settings, path)
    objective = create_objective(experiment, source, settings, narrow)
    whole = load_all_lists(experiment, narrow, path, ignore_progress)
    untuned = evaluate_untuned(experiment, source, whole, objective)
    by_name = {each.name: each.values.tolist() for each in untuned}
    assert objective.runs.queries == collection.queries
    expected = {
        row.name: list(row.measures[objective.measure.name].values)
        for row in collection.systems
        if row.kind == "system" and row.name != "two"
    }
    assert {name: by_name[name] for name in expected} == expected
    assert "two" not in by_name
    assert {each.kind for each in untuned} <= {"system", "source"}
    for each in untuned:
        held_out = each.select_queries(np.array([True, False, True, True]))
        assert held_out.values.tolist() == each.values[[0, 2, 3]].tolist()


def test_what_is_tuned_and_what_is_not_have_each_their_own_trials(tmp_path: Path) -> None:
    path = counts_project.make(tmp_path)
    experiment, source = read_experiment(tmp_path / "experiments/e.yaml")
    settings = TuneSettings(system="ab")
    narrow = load_tuning_dataset(experiment, source, settings, path)
    objective = create_objective(experiment, source, settings, narrow)
    by_trial = objective.evaluate_by_trial(objective.system)
    assert by_trial is not None
    report = run_experiment(experiment, source, folders=[tmp_path / "datasets"])
    results = {row.name: row.measures["RR@10"] for row in report.collections[0].systems}
    assert by_trial.tolist() == [*map(list, results["ab"].trials)]
    whole = load_all_lists(experiment, narrow, path, ignore_progress)
    untuned = evaluate_untuned(experiment, source, whole, objective)
    trials = {each.name: each.trials for each in untuned}
    assert {name: 1 if t is None else len(t) for name, t in trials.items()} == {
        "a": 3,
        "b": 2,
        "c": 1,
        "abc": 2,
    }
    tuned = by_trial.mean(axis=0)
    rows = [each.select_queries(np.ones(len(tuned), dtype=bool)) for each in untuned]
    judged = judge_floor(
        rows, tuned, objective.runs.queries, min_gain=0, alpha=0.05, seed=0, tuned_trials=by_trial
    )
    assert {row.name for row in judged} == {"a", "b", "c", "abc"}
