"""Shrinkage, the one-standard-error rule and the plateau, against the slow obvious way."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.tune.trial_selection import one_standard_error, shrunken_gains, within_one_error


@given(
    seed=st.integers(0, 10_000),
    trials=st.integers(1, 5),
    groups=st.integers(2, 6),
    each=st.integers(1, 3),
)
@settings(max_examples=40, deadline=None)
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


def test_more_queries_of_the_same_let_the_greater_gain_win() -> None:
    steady, swinging = np.array([0.01, 0.012] * 4), np.array([0.3, -0.2] * 4)
    few, many = (
        shrunken_gains(np.stack([np.tile(steady, n), np.tile(swinging, n)]), np.zeros(8 * n))
        for n in (2, 100)
    )
    assert few.argmax() == 0
    assert few[1] < 0
    assert many.argmax() == 1


@given(seed=st.integers(0, 10_000), trials=st.integers(1, 8), queries=st.integers(2, 20))
@settings(max_examples=40, deadline=None)
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


def test_the_error_is_of_the_difference_not_of_the_best() -> None:
    base = np.array([0.0, 1.0, 0.0, 1.0])
    values = np.stack([base, base - 0.01])
    assert within_one_error(values, base).tolist() == [True, False]


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


def test_the_plateau_is_a_share() -> None:
    best = np.array([0.5, 0.6, 0.7, 0.8])
    sample = np.stack([best, best - 0.3, best + 0.01, best - 0.2])
    assert within_one_error(sample, best).mean() == 0.5
    one_group = np.zeros(4, dtype=np.int64)
    assert within_one_error(sample, best, one_group).mean() == 0.5, (
        "no error: only those at least as good"
    )
