"""Which trial is taken, what the choice is worth, against the slow obvious way."""

import math
import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.data.query_splits import QuerySplit, assign_folds
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.report.tuning_records import TuningVerdict
from fusion_bench.tune.trial_selection import (
    decide_verdict,
    fit_default_folds,
    one_standard_error,
    shrunken_gains,
    within_one_error,
)
from tests.report.tuning_cases import gain


@given(
    seed=st.integers(0, 10_000),
    trials=st.integers(1, 5),
    groups=st.integers(2, 6),
    each=st.integers(1, 3),
)
def test_shrinkage_is_the_mean_with_ten_more_groups_that_lose(
    seed: int, trials: int, groups: int, each: int
) -> None:
    random = np.random.default_rng(seed)
    default = random.random(groups * each).round(1)
    values = random.random((trials, groups * each)).round(1)
    codes = np.repeat(np.arange(groups), each)
    for row, found in zip(values, shrunken_gains(values, default, codes), strict=True):
        real = [float(np.mean((row - default)[codes == g])) for g in range(groups)]
        prior = [-statistics.stdev(real)] * 10
        assert found == pytest.approx(statistics.fmean([*real, *prior]), abs=1e-12)


def test_what_changes_nothing_gains_nothing_and_one_group_tells_nothing() -> None:
    default = np.array([0.1, 0.5, 0.9])
    values = np.stack([default, default + 0.2, default + np.array([0.0, 0.3, 0.0])])
    assert shrunken_gains(values, default)[:2].tolist() == pytest.approx([0.0, 0.2 * 3 / 13])
    assert shrunken_gains(values, default)[2] < 0, "one query alone is luck"
    one_group = np.zeros(3, dtype=np.int64)
    assert shrunken_gains(values, default, one_group).tolist() == [0.0, -math.inf, -math.inf]


@given(seed=st.integers(0, 10_000), trials=st.integers(1, 8), queries=st.integers(2, 20))
def test_level_means_within_one_error_of_the_paired_difference(
    seed: int, trials: int, queries: int
) -> None:
    values = np.random.default_rng(seed).random((trials, queries)).round(1)
    best = values[values.mean(axis=1).argmax()]
    for row, level in zip(values, within_one_error(values, best), strict=True):
        difference = best - row
        error = difference.std(ddof=1) / math.sqrt(queries)
        if abs(difference.mean() - error) > 1e-12:
            assert level == (difference.mean() < error)


def test_the_nearest_to_the_default_wins_among_the_level() -> None:
    best = np.array([0.5, 0.6, 0.7, 0.8])
    near = best + np.array([0.05, -0.06, 0.05, -0.06])
    poor = best - 0.3
    points = np.array([[0.9, 0.9], [0.2, 0.3], [0.0, 0.0]])
    default = np.array([0.0, 0.0])
    assert one_standard_error(np.stack([best, near, poor]), points, default) == 1
    assert one_standard_error(np.stack([best, near, poor]), points, np.array([1.0, 1.0])) == 0


def test_of_equally_near_trials_the_better_then_the_first_is_taken() -> None:
    best = np.array([0.5, 0.6, 0.7, 0.8])
    wobble = np.array([0.05, -0.06, 0.05, -0.06])
    values = np.stack([best + 2 * wobble, best + wobble, best + wobble, best])
    points = np.array([[0.5], [0.5], [0.5], [0.9]])
    assert one_standard_error(values, points, np.array([0.0])) == 1


def test_a_dimension_that_only_one_has_counts_as_far() -> None:
    values = np.tile(np.array([0.1, 0.9]), (3, 1))
    points = np.array([[0.0, math.nan], [0.0, 0.9], [0.5, math.nan]])
    assert one_standard_error(values, points, np.array([0.0, math.nan])) == 0
    assert one_standard_error(values, points, np.array([0.0, 0.0])) == 1


@given(
    groups=st.lists(st.sampled_from("abcdefghij"), min_size=8, max_size=40),
    folds=st.integers(2, 5),
    salt=st.text(max_size=3),
)
def test_groups_stay_whole_and_no_fold_is_empty(groups: list[str], folds: int, salt: str) -> None:
    if len(set(groups)) < folds:
        with pytest.raises(ConfigError, match="number of groups"):
            assign_folds(groups, [None] * len(groups), folds=folds, split_seed=salt)
        return
    fold = assign_folds(groups, [None] * len(groups), folds=folds, split_seed=salt)
    assert set(fold.tolist()) == set(range(folds))
    assert len(set(zip(groups, fold.tolist(), strict=True))) == len(set(groups))


def test_every_type_is_dealt_to_every_fold() -> None:
    names = [f"q{i}" for i in range(30)]
    types = ["ab"[i % 2] for i in range(30)]
    fold = assign_folds(names, types, folds=5, split_seed="s")
    for name in "ab":
        counts = np.bincount(fold[[t == name for t in types]], minlength=5)
        assert counts.tolist() == [3] * 5
    assert (fold != assign_folds(names, types, folds=5, split_seed="t")).any()


def split_all(count: int) -> QuerySplit:
    """All but one query, which decides."""
    part = np.arange(count + 1) < count
    return QuerySplit(part, ~part, "all")


@pytest.mark.parametrize(
    ("groups", "given", "folds", "origin"),
    [
        ("abcde", {}, 5, "all"),
        *[
            (groups, {}, 4, "all; 4 folds instead of 5, as there are only 4 groups")
            for groups in ("abcd", "aabbccdd")
        ],
        ("abcd", {"folds": 5}, 5, "all"),
        ("abc", {"folds": 2}, 2, "all"),
        ("abc", {"folds": 0}, 0, "all"),
    ],
)
def test_default_folds_fit_few_groups_and_those_of_the_user_stay(
    groups: str, given: dict[str, int], folds: int, origin: str
) -> None:
    tuning = TuneSettings.model_validate({"system": "tuned", **given})
    lowered, split = fit_default_folds([*groups, "held out"], split_all(len(groups)), tuning)
    assert (lowered.folds, split.origin) == (folds, origin)


def test_too_few_groups_are_refused_before_the_search() -> None:
    with pytest.raises(ConfigError, match="6 queries of 3 groups"):
        fit_default_folds([*"aabbcc", "held out"], split_all(6), TuneSettings(system="tuned"))


def test_linked_queries_that_nobody_declared_withhold_ship_alone() -> None:
    shown, lost = gain(0.1, 0.05, 0.15, p=0.001), gain(-0.1, -0.15, -0.05, p=0.001)
    assert decide_verdict(shown, groups_decide=True) == "groups decide"
    assert decide_verdict(lost, groups_decide=True) == "worse"
    assert decide_verdict(shown, groups_decide=True, unjudged_decide=True) == "unjudged decide"


@pytest.mark.parametrize(
    ("low", "high", "changed", "verdict"),
    [
        (0.001, 0.9, {"p": 0.05}, "ship"),
        (0.001, 0.9, {"p": 0.0501}, "too few queries"),
        (0.001, 0.9, {"p": 0.001, "loss_share": None}, "too few queries"),
        (None, None, {"mean": 0.1, "p": 0.01}, "ship"),
        (None, None, {"mean": 0.1, "p": 0.01, "loss_share": None}, "too few queries"),
        (None, None, {"mean": -0.1, "p": 0.01, "loss_share": None}, "worse"),
        (None, None, {"mean": -0.1, "p": 0.06}, "too few queries"),
        (0.006, 0.9, {"p": 0.001, "wins": 6, "losses": 0}, "ship"),
        (0.001, 0.0049, {"p": 0.001}, "keep"),
        (0.001, 0.0049, {"p": 0.001, "wins": 9, "losses": 0}, "ship"),
        (-0.01, 0.0049, {"p": 0.5}, "keep"),
        (-0.01, 0.0049, {"p": 0.5, "wins": 5, "losses": 4}, "too few queries"),
        (-0.01, 0.0049, {"p": 0.5, "wins": 5, "losses": 5}, "keep"),
        (-0.01, 0.005, {"p": 0.5}, "too few queries"),
        (-0.01, -0.001, {"p": 0.01}, "worse"),
        (-0.01, -0.001, {"p": 0.01, "wins": 0, "losses": 6}, "worse"),
        (-0.01, 0.0, {"p": 0.051}, "keep"),
        (0.0, 0.0, {"p": 1, "wins": 0, "losses": 0}, "too few queries"),
        (None, None, {"p": 1}, "too few queries"),
    ],
)
def test_the_held_out_queries_decide(
    low: float | None, high: float | None, changed: dict[str, Any], verdict: TuningVerdict
) -> None:
    changed = dict(changed)
    middle = 0.0 if low is None or high is None else (low + high) / 2
    mean = changed.pop("mean", middle)
    assert decide_verdict(gain(mean, low, high, **changed)) == verdict


@pytest.mark.parametrize(
    ("options", "verdict"),
    [
        ({"min_gain": 0.03}, "keep"),
        ({"min_gain": 0.0}, "ship"),
        ({"level": 0.02}, "too few queries"),
        ({"chosen": "default over better trials"}, "too few tuning queries"),
        ({"chosen": "default"}, "keep"),
        ({"unjudged_decide": True, "chosen": "default over better trials"}, "unjudged decide"),
    ],
)
def test_what_else_counts(options: dict[str, Any], verdict: TuningVerdict) -> None:
    assert decide_verdict(gain(0.01, 0.001, 0.02, p=0.045), **options) == verdict
