"""Skewed differences: what is withheld, and what is said beside the answer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.comparison import Answer, check_skew, compute_skewness, sign_test_p
from fusion_bench.stats.comparison_family import ComparedValues, compare_family
from fusion_bench.stats.intervals import betting_bound
from tests.stats.samples import normal


def alone(values: FloatArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.arange(len(values))


def rare_losses(gain: float, loss: float, count: int = 60, losses: int = 4) -> FloatArray:
    values = np.full(count, gain) + 0.001 * np.arange(count) / count
    values[:losses] = -loss
    return values


def test_gains_on_most_queries_and_large_losses_on_few_are_not_shown() -> None:
    """Sign flips and t find 0.02 in 56 queries clear; 4 losses of 0.05 do not change that."""
    difference = rare_losses(0.02, 0.05)
    base = np.full(60, 0.5)
    table = ComparedValues("m", {"a": base, "b": base + difference}, "a", tuple("q" * 60))
    table = ComparedValues("m", table.values, "a", tuple(f"q{i}" for i in range(60)), True)
    [[row]] = compare_family([table])
    assert row.p_adjusted is not None
    assert row.p_adjusted <= 0.05 < row.low + 0.05
    assert row.answer == "not shown"
    assert row.skew is not None
    assert (row.skew.is_against, row.skew.is_withheld) == (True, True)
    assert row.skew.bound == pytest.approx(betting_bound(row_difference(table), alpha=0.05))


def row_difference(table: ComparedValues) -> FloatArray:
    return table.values["b"] - table.values["a"]


def test_a_bound_above_0_carries_the_answer() -> None:
    difference = rare_losses(0.5, 0.3)
    answer, skew = check_skew("better", difference, alone(difference))
    assert answer == "better"
    assert skew is not None
    assert skew.bound is not None
    assert skew.bound > 0
    assert (skew.is_against, skew.is_withheld) == (True, False)


@pytest.mark.parametrize("small", ["", ", by less than min_gain"])
def test_worse_is_better_turned_around(small: str) -> None:
    difference = rare_losses(0.02, 0.05)
    better: Answer = f"better{small}"  # type: ignore[assignment]
    worse: Answer = f"worse{small}"  # type: ignore[assignment]
    answer, skew = check_skew(better, difference, alone(difference))
    turned, mirrored = check_skew(worse, -difference, alone(difference))
    assert (answer, turned) == ("not shown", "not shown")
    assert skew is not None
    assert mirrored is not None
    assert mirrored.bound == skew.bound
    assert mirrored.skewness == pytest.approx(-skew.skewness)


def test_skewness_in_the_direction_of_the_answer_withholds_nothing() -> None:
    difference = -rare_losses(0.001, 0.5)
    answer, skew = check_skew("better", difference, alone(difference))
    assert answer == "better"
    assert skew is not None
    assert (skew.is_against, skew.bound) == (False, None)
    assert skew.median == np.median(difference)
    assert skew.sign_p == pytest.approx(stats.binomtest(4, 60).pvalue)


@pytest.mark.parametrize(
    ("answer", "difference"),
    [
        ("not shown", rare_losses(0.02, 0.05)),
        ("equivalent", rare_losses(0.02, 0.05)),
        ("better", rare_losses(0.02, 0.05, count=100)),
        ("better", normal(60) + 1),
        ("better", np.full(20, 0.1)),
    ],
)
def test_elsewhere_nothing_is_said(answer: Answer, difference: FloatArray) -> None:
    assert check_skew(answer, difference, alone(difference)) == (answer, None)


def test_a_loss_beyond_1_has_no_bound() -> None:
    difference = rare_losses(2.0, 3.0)
    answer, skew = check_skew("better", difference, alone(difference))
    assert answer == "not shown"
    assert skew is not None
    assert skew.bound is None


def test_groups_count_as_one_value() -> None:
    difference = np.repeat(rare_losses(0.02, 0.05), 3)
    answer, skew = check_skew("better", difference, np.repeat(np.arange(60), 3))
    assert answer == "not shown"
    assert skew is not None
    assert check_skew("better", difference, alone(difference)) == ("better", None)  # 180 queries


def test_skewness_and_sign_test_are_scipy_s() -> None:
    values = np.concatenate([normal(40) ** 2, np.zeros(5), [-0.5, -0.25]])
    assert compute_skewness(values) == pytest.approx(stats.skew(values))
    assert sign_test_p(values) == pytest.approx(stats.binomtest(2, 42).pvalue)
    assert sign_test_p(np.zeros(3)) == 1.0
    assert compute_skewness(np.full(4, 0.1)) == 0.0
    assert math.isclose(sign_test_p(np.array([1.0, -1.0])), 1.0)
