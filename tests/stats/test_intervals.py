"""Means and intervals against slow and obvious versions of themselves, and scipy."""

from __future__ import annotations

import math
from math import comb
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.corrections import randomization_p_values
from fusion_bench.stats.intervals import MeanEstimate, clopper_pearson, estimate_mean, exact_mean
from tests.stats.samples import GRADES, binomial_bounds, clustered, normal


@pytest.mark.parametrize("queries", [2, 3, 10, 500])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_estimate_is_the_paired_t_interval(queries: int, alpha: float) -> None:
    a, b = normal(queries, seed=1), normal(queries, seed=2)
    found = estimate_mean(a - b, alpha=alpha)
    expected = stats.ttest_rel(a, b).confidence_interval(1 - alpha)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-9)
    assert found.mean == pytest.approx(np.mean(a - b), rel=1e-12)
    assert found.sd == pytest.approx(np.std(a - b, ddof=1), rel=1e-12)
    assert found.standard_error == pytest.approx(stats.sem(a - b), rel=1e-12)
    assert (found.queries, found.groups) == (queries, queries)


def test_one_query_per_group_is_the_plain_estimate() -> None:
    values = normal(40)
    labels = np.random.default_rng(3).permutation(1000)[:40]
    assert estimate_mean(values, labels) == estimate_mean(values)


def test_estimate_by_group_is_the_formula() -> None:
    values, groups = normal(12), np.array([5, 5, 5, 2, 2, 9, 9, 9, 9, 9, 7, 5])
    found = estimate_mean(values, groups)
    mean = sum(values) / 12
    spread = 0.0
    for group in (5, 2, 9, 7):
        members = [v for v, g in zip(values, groups, strict=True) if g == group]
        share = len(members) / 12
        spread += (sum(members) - len(members) * mean) ** 2 / (1 - share)
    assert found.mean == pytest.approx(mean)
    assert found.standard_error == pytest.approx(math.sqrt(spread) / 12)
    assert (found.queries, found.groups) == (12, 4)


def test_labels_of_groups_mean_nothing() -> None:
    values, groups = normal(30), np.arange(30) % 7
    other = np.array([40, -3, 8, 100, 0, 2, 1])[groups]
    first = estimate_mean(values, groups)
    assert estimate_mean(values, other) == first
    p = randomization_p_values(values[None], groups, resamples=500)
    assert randomization_p_values(values[None], other, resamples=500) == p


def test_interval_by_group_covers_where_the_naive_one_does_not() -> None:
    rows, groups = clustered(1500, 25, 4, seed=10)
    by_group = [estimate_mean(row, groups) for row in rows]
    naive = [estimate_mean(row) for row in rows]
    covered = sum(e.low <= 0 <= e.high for e in by_group)
    low, high = binomial_bounds(covered, len(rows))
    assert low <= 0.95 <= high
    assert sum(e.low <= 0 <= e.high for e in naive) < 0.8 * len(rows)


def test_one_query_or_group_is_never_certain() -> None:
    one = estimate_mean(np.array([0.3]))
    assert one.mean == 0.3
    assert all(map(math.isnan, (one.low, one.high, one.sd, one.standard_error)))
    group = estimate_mean(np.array([0.3, 0.5]), np.array([4, 4]))
    assert (group.queries, group.groups) == (2, 1)
    assert group.sd == pytest.approx(math.sqrt(0.02))
    assert all(map(math.isnan, (group.low, group.high, group.standard_error)))


@pytest.mark.parametrize("constant", [0.0, 0.1, -1 / 3])
@pytest.mark.parametrize("grouped", [False, True])
def test_constant_values_have_no_spread_to_the_last_bit(constant: float, grouped: bool) -> None:
    groups = np.array([0, 0, 0, 1, 1, 2, 2]) if grouped else None
    found = estimate_mean(np.full(7, constant), groups)
    shape = (7, 3, found.freedom) if grouped else (7, 7, 6)
    assert found == MeanEstimate(constant, constant, constant, 0.0, 0.0, *shape)


@settings(deadline=None)
@given(arrays(np.float64, st.integers(1, 30), elements=GRADES), st.randoms())
def test_exact_mean_ignores_the_order(values: FloatArray, random: Random) -> None:
    shuffled = values.tolist()
    random.shuffle(shuffled)
    assert exact_mean(np.array(shuffled)) == exact_mean(values)
    assert exact_mean(values) == pytest.approx(float(np.mean(values)), abs=1e-15)


@pytest.mark.parametrize(("count", "runs"), [(0, 20), (1, 20), (7, 20), (20, 20)])
def test_clopper_pearson_by_its_definition(count: int, runs: int) -> None:
    low, high = clopper_pearson(count, runs, 0.9)

    def tail(p: float, counts: range) -> float:
        return sum(comb(runs, k) * p**k * (1 - p) ** (runs - k) for k in counts)

    if count:
        assert tail(low, range(count, runs + 1)) == pytest.approx(0.05)
    else:
        assert low == 0
    if count < runs:
        assert tail(high, range(count + 1)) == pytest.approx(0.05)
    else:
        assert high == 1


def test_the_design_effect_is_the_ratio_of_the_variances() -> None:
    values, groups = np.array([0.4, 0.3, 0.1, -0.2, 0.0]), np.array([0, 0, 0, 1, 2])
    by_group, plain = estimate_mean(values, groups), estimate_mean(values)
    ratio = (by_group.standard_error / plain.standard_error) ** 2
    assert by_group.design_effect == pytest.approx(ratio)
    assert plain.design_effect == pytest.approx(1)
    assert estimate_mean(np.zeros(3)).design_effect is None
    assert estimate_mean(values, np.zeros(5, dtype=np.int64)).design_effect is None
