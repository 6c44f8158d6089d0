"""Gains by hand, over the default and over what nobody tuned, and the verdicts of one run."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.report.tuning_records import Gain
from fusion_bench.stats.inference import infer_family
from fusion_bench.stats.intervals import t_quantile
from fusion_bench.stats.values import Pair
from fusion_bench.tune.held_out import (
    UntunedSystem,
    compare_floor,
    estimate_family,
    estimate_needed,
    evaluate_untuned,
    missing_variants,
    student_gain,
)
from fusion_bench.tune.objective import create_objective, load_tuning_dataset
from fusion_bench.tune.run import load_all_lists
from fusion_bench.tune.trial_selection import decide_verdict
from fusion_bench.util.formatting import ignore_progress
from tests import counts_project, tiny
from tests.tune.problems import problem, system

RNG = np.random.default_rng(2)
DEFAULT, TUNED = RNG.random(40), RNG.random(40)
NAMES = tuple(f"q{i}" for i in range(40))


def gain_of(tuned: FloatArray, default: FloatArray, groups: Sequence[str] = NAMES) -> Gain:
    [found] = estimate_family([Pair.from_arrays(tuned, default, groups)])
    return found


def test_a_gain_is_the_inference_of_its_differences() -> None:
    result = gain_of(TUNED, DEFAULT)
    d = TUNED - DEFAULT
    [row] = infer_family([Pair.from_arrays(d, keys=NAMES)])
    assert (result.low, result.high, result.p) == (row.low, row.high, row.p)
    assert result.loss_share == row.loss_share
    assert result.is_drawn
    assert result.sd == pytest.approx(d.std(ddof=1))
    assert (result.wins, result.losses) == ((d > 0).sum(), (d < 0).sum())
    assert result.queries == result.groups == 40
    assert result.design_effect == pytest.approx(1)


def test_float_noise_is_no_gain() -> None:
    base = np.full(10, 0.3)
    result = gain_of(base + 1e-15, base, NAMES[:10])
    assert (result.difference, result.p, result.ties) == (0.0, 1.0, 10)
    assert decide_verdict(result) == "too few queries", "nothing changed"


def test_of_a_campaign_the_interval_and_p_are_students() -> None:
    result = student_gain(Pair.from_arrays(TUNED, DEFAULT), alpha=1e-4)
    d = TUNED - DEFAULT
    reach = stats.t.ppf(1 - 1e-4 / 2, 39) * d.std(ddof=1) / math.sqrt(40)
    assert (result.low, result.high) == pytest.approx((d.mean() - reach, d.mean() + reach))
    assert result.p == pytest.approx(stats.ttest_1samp(d, 0).pvalue)
    assert student_gain(Pair.from_arrays(TUNED, DEFAULT, ["g"] * 40)).low is None


def test_the_verdicts_of_one_run_are_one_family() -> None:
    row = Pair.from_arrays(DEFAULT + 0.02 + 0.05 * (TUNED - 0.5), DEFAULT, NAMES)
    other = Pair.from_arrays(TUNED, DEFAULT, NAMES)
    [alone] = estimate_family([row])
    first, second = estimate_family([row, other])
    assert alone.low is not None
    assert first.low is not None
    assert (alone.p <= 0.05) == (alone.low > 0)
    assert alone.p <= first.p
    assert first.low < alone.low < alone.difference == first.difference
    assert second.difference == pytest.approx((TUNED - DEFAULT).mean())


def test_the_needed_queries_are_those_of_the_rule() -> None:
    row = Pair.from_arrays(TUNED, DEFAULT, NAMES)
    [result] = estimate_family([row])
    needed = estimate_needed(row, result, 0.01)
    assert needed is not None
    d = TUNED - DEFAULT
    assert needed.queries == pytest.approx((2.8 * d.std(ddof=1) / 0.01) ** 2, rel=0.1)
    assert needed.low is not None
    assert needed.high is not None
    assert needed.low < needed.queries < needed.high
    assert estimate_needed(row, result, 0.0) is None
    same = Pair.from_arrays(DEFAULT, DEFAULT, NAMES)
    assert estimate_needed(same, estimate_family([same])[0], 0.01) is None


def test_of_a_few_changed_queries_no_interval_is_finite() -> None:
    tuned = DEFAULT.copy()
    tuned[:4] += 0.2
    [result] = estimate_family([Pair.from_arrays(tuned, DEFAULT, NAMES)])
    assert (result.low, result.high, result.changed) == (None, None, 4)
    assert result.p == pytest.approx(2 / 16)
    assert not result.is_drawn
    assert decide_verdict(result) == "too few queries"
    tuned[:9] = DEFAULT[:9] + 0.2
    [result] = estimate_family([Pair.from_arrays(tuned, DEFAULT, NAMES)])
    assert result.p == pytest.approx(2 / 2**9)
    assert decide_verdict(result) == "too few queries", "fewer than 10 queries never ship"
    [result] = estimate_family([Pair.from_arrays(DEFAULT, tuned, NAMES)])
    assert decide_verdict(result) == "worse"


VALUES = np.random.default_rng(3).random(40)
NOISE = np.random.default_rng(4).normal(0, 0.001, 40)


def judge(*values: FloatArray, min_gain: float = 0.005) -> dict[str, str]:
    untuned = [
        UntunedSystem(each, name=name, kind="source")
        for name, each in zip("abcdef", values, strict=False)
    ]
    tuned = UntunedSystem(name="tuned", kind="system", values=VALUES)
    rows = compare_floor(untuned, tuned, NAMES, min_gain=min_gain, alpha=0.05, seed=0)
    assert [row.mean for row in rows] == sorted((row.mean for row in rows), reverse=True)
    return {row.name: row.answer for row in rows}


def test_answers() -> None:
    answers = judge(VALUES + 0.1 + NOISE, VALUES - 0.1 + NOISE, VALUES + NOISE, VALUES, 1 - VALUES)
    assert answers == {
        "a": "better",
        "b": "worse",
        "c": "equivalent",
        "d": "identical",
        "e": "not shown",
    }
    assert judge(VALUES + NOISE, min_gain=0.0) == {"a": "not shown"}
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
    by_trial = objective.evaluate_by_repeat(objective.system)
    assert by_trial is not None
    report = run_experiment(experiment, source, folders=[tmp_path / "datasets"])
    results = {row.name: row.measures["RR@10"] for row in report.collections[0].systems}
    assert by_trial.tolist() == [*map(list, results["ab"].trials)]
    whole = load_all_lists(experiment, narrow, path, ignore_progress)
    untuned = evaluate_untuned(experiment, source, whole, objective)
    trials = {each.name: each.repeats for each in untuned}
    assert {name: len(t) for name, t in trials.items() if t is not None} == {
        "a": 3,
        "b": 2,
        "c": 1,
        "abc": 2,
    }
    tuned = by_trial.mean(axis=0)
    rows = [each.select_queries(np.ones(len(tuned), dtype=bool)) for each in untuned]
    side = UntunedSystem(name="tuned", kind="system", values=tuned, repeats=by_trial)
    judged = compare_floor(rows, side, objective.runs.queries, min_gain=0, alpha=0.05, seed=0)
    assert {row.name for row in judged} == {"a", "b", "c", "abc"}


QUERIES = 40
RANDOM = np.random.default_rng(11)
BEFORE = RANDOM.uniform(0.2, 0.6, QUERIES)
GAIN = RANDOM.normal(0.03, 0.02, QUERIES)
GROUPS = [f"q{n:02d}" for n in range(QUERIES)]
#: Whole trials move by this: a main effect, which no number of queries averages out.
MOVES = np.array([-0.03, 0.0, 0.03])[:, None]


def moved(scale: float) -> FloatArray:
    """(T, Q) differences with the mean ``GAIN``."""
    return np.asarray(GAIN + scale * MOVES)


def with_repeats(pair: Pair, scale: float) -> Pair:
    return replace(pair, candidate=replace(pair.candidate, repeats=moved(scale)))


def test_a_gain_without_a_trial_effect_is_the_plain_one() -> None:
    row = Pair.from_arrays(BEFORE + GAIN, BEFORE, GROUPS)
    assert estimate_family([with_repeats(row, 0.0)]) == estimate_family([row])


def test_a_trial_effect_widens_gains_by_its_variance() -> None:
    row = Pair.from_arrays(BEFORE + GAIN, BEFORE, GROUPS)
    [plain] = estimate_family([row])
    [judged] = estimate_family([with_repeats(row, 1.0)])
    assert judged.difference == plain.difference
    assert judged.p > plain.p
    assert judged.low is not None
    assert plain.low is not None
    width = t_quantile(2, 0.975) * np.std([-0.03, 0, 0.03], ddof=1) / math.sqrt(3)
    expected = math.hypot(plain.difference - plain.low, width)
    assert judged.difference - judged.low == pytest.approx(expected)


def test_the_floor_knows_which_trials_are_shared() -> None:
    tuned = BEFORE + MOVES
    lists = frozenset({"runs/a"})
    untuned = UntunedSystem(
        name="one", kind="system", values=BEFORE + GAIN, repeats=tuned + GAIN, lists=lists
    )
    side = UntunedSystem(name="tuned", kind="system", values=BEFORE, repeats=tuned, lists=lists)

    def width(system: UntunedSystem) -> float:
        [row] = compare_floor([system], side, GROUPS, min_gain=0.005, alpha=0.05, seed=0)
        assert row.low is not None
        assert row.high is not None
        return row.high - row.low

    shared, nested = width(untuned), width(replace(untuned, lists=frozenset()))
    assert nested > 2 * shared
    assert width(replace(untuned, repeats=None)) > shared


MISSING = {"method": "weighted_score", "normalize": "min_max"}


@pytest.mark.parametrize(
    ("fusion", "names"),
    [
        (MISSING, ["zero", "min"]),
        ({**MISSING, "missing": "min"}, ["skip", "zero"]),
        ({**MISSING, "method": "weighted_sum"}, ["min"]),
        ({"method": "rrf"}, []),
    ],
)
def test_variants_are_the_default_with_another_missing(
    fusion: dict[str, str], names: list[str]
) -> None:
    objective = problem(system(fusion), {"fusion.weights": "own"})
    variants = missing_variants(objective)
    assert [each.name for each in variants] == [f"tuned, missing: {name}" for name in names]
    for each, name in zip(variants, names, strict=True):
        config = {**objective.system.model_dump(), "name": each.name}
        assert each.model_dump() == {**config, "fusion": {**config["fusion"], "missing": name}}
