"""``tune``: parameters, verdict and study, from data in memory."""

import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import fusion_bench as fb
from fusion_bench.errors import FusionBenchError
from tests.api.cases import QRELS, RUNS, make_collection


@cache
def tuned() -> fb.TuningResult:
    qrels, runs = make_collection()
    return fb.tune(qrels, runs, fb.rrf(60), trials=12, folds=0)


def test_verdict_parameters_and_comparison_agree_with_the_report() -> None:
    found = tuned()
    assert found.verdict == found.report.verdict
    assert found.verdict in found.explanation
    assert found.parameters == found.report.choice.params
    assert found.comparison.difference == found.report.held_out.difference
    assert found.comparison.wins + found.comparison.ties + found.comparison.losses == 20
    assert len(repr(found).splitlines()) <= 3


def test_the_second_measure_is_that_of_the_held_out_queries() -> None:
    found = tuned()
    systems = [found.objective.system, found.system]
    runs = found.objective.runs
    held_out = set(found.report.held_out_queries)
    kept = [i for i, query in enumerate(runs.queries) if query in held_out]
    means = [s.values[0][kept].mean() for s in fb.evaluate_systems(systems, runs, "RR@10")]
    assert found.report.other_means == {"RR@10": pytest.approx(tuple(means))}
    assert f"RR@10 {means[0]:.4f} → {means[1]:.4f}" in found.explanation
    assert f"Tuned: k 60 → {found.parameters['fusion.k']}" in found.explanation


@pytest.mark.parametrize("kind", ["use tuned", "use untuned", "keep default", "judge first"])
def test_parameters_that_are_not_recommended_say_so(kind: str) -> None:
    advice = tuned().recommendation.model_copy(update={"kind": kind, "sentence": "Do this."})
    report = tuned().report.model_copy(update={"recommendation": advice})
    found = replace(tuned(), report=report)
    values = dict(found.parameters)
    assert found.parameters == values
    assert repr(found.parameters).startswith(repr(values))
    assert ("Do this." in repr(found.parameters)) == (kind != "use tuned")
    assert "Do this." in repr(found)


def test_the_study_and_its_trials_are_those_of_optuna() -> None:
    found = tuned()
    assert len(found.study.trials) == len(found.report.trials) == 12
    assert found.study.best_value == max(trial.value or 0.0 for trial in found.report.trials)
    assert found.study.trials[0].user_attrs["origin"] == "default"
    frame = tuned().to_pandas()
    assert len(frame) == 12
    assert "fusion.k" in frame.columns
    assert tuned().to_dict()["format"] == "fusion-bench-tuning"


def test_the_tuned_system_fuses_and_is_compared() -> None:
    qrels, runs = make_collection()
    found = tuned()
    assert fb.fuse(runs, found.system).name == "rrf tuned"
    compared = fb.compare(qrels, runs, {"rrf": "rrf", "tuned": found.system}, "nDCG@10")
    assert compared["tuned"] is not None


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    qrels, runs = make_collection(20)
    fb.tune(qrels, runs, trials=2, folds=0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trails": 3}, r"tune\.trails: .*'trials'"),
        ({"trials": 0}, r"tune\.trials"),
        ({"parameters": {"fusion.q": "own"}}, r"fusion\.q"),
        ({"measure": "nope"}, "unknown measure"),
        ({}, "1 group .* 4 groups"),
    ],
)
def test_what_cannot_be_tuned_says_why(options: dict[str, Any], message: str) -> None:
    with pytest.raises(FusionBenchError, match=message):
        fb.tune(QRELS, RUNS, **options)


def test_a_gain_that_repairs_missing_does_not_stand_alone() -> None:
    """Under ``skip`` what one list alone returned wins; ``zero`` mends that without tuning."""
    chance = random.Random(0)
    qrels: dict[str, dict[str, int]] = {}
    runs: dict[str, dict[str, dict[str, float]]] = {"a": {}, "b": {}}
    for q in range(200):
        relevant = [f"d{q}-{i}" for i in range(3)]
        qrels[f"q{q}"] = dict.fromkeys(relevant, 1)
        for name, lists in runs.items():
            others = [f"{name}{q}-{i}" for i in range(8)]
            qrels[f"q{q}"] |= dict.fromkeys(others, 0)
            lists[f"q{q}"] = {d: 0.5 + 0.4 * chance.random() for d in relevant}
            lists[f"q{q}"] |= {d: chance.random() for d in others}
    skip = ("weighted_score", {"normalize": "min_max"})
    with pytest.warns(UserWarning, match="missing: zero"):
        found = fb.tune(qrels, runs, skip, space={"missing": ["skip", "zero"]}, trials=8, folds=0)
    assert found.verdict == "ship"
    advice = found.recommendation
    assert (advice.kind, advice.name) == ("use untuned", "weighted_score, missing: zero")
    assert found.comparison.difference > 0.1
    assert advice.name in repr(found)
    assert advice.name in found.explanation
