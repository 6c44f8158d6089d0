"""Means and intervals against slow and obvious versions of themselves, and scipy."""

import math
from itertools import product
from math import comb
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.intervals import (
    BETS,
    MeanEstimate,
    bell_mccaffrey_freedom,
    betting_bound,
    clopper_pearson,
    cr2_standard_error,
    estimate_mean,
    exact_mean,
)
from tests.examples import examples
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


# ── CR2 and its degrees of freedom against the matrices of the papers


SIZES = st.lists(st.integers(1, 9), min_size=2, max_size=8)


def inverse_root(matrix: FloatArray) -> FloatArray:
    """The symmetric inverse square root."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors @ np.diag(values**-0.5) @ vectors.T)


def cr2_matrix(sizes: list[int]) -> FloatArray:
    """M of V = y'My: regression of y on a constant, CR2, working independence."""
    queries = sum(sizes)
    x = np.ones((queries, 1))
    residual_maker = np.eye(queries) - x @ np.linalg.inv(x.T @ x) @ x.T
    form = np.zeros((queries, queries))
    start = 0
    for size in sizes:
        rows = slice(start, start + size)
        adjustment = inverse_root(residual_maker[rows, rows])
        vector = residual_maker[:, rows] @ adjustment @ x[rows] @ np.linalg.inv(x.T @ x)
        form += vector @ vector.T
        start += size
    return form


@given(SIZES, st.integers(0, 1000))
def test_error_and_freedom_are_those_of_the_matrices(sizes: list[int], seed: int) -> None:
    form, values = cr2_matrix(sizes), normal(sum(sizes), seed=seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    estimate = estimate_mean(values, groups)
    assert estimate.standard_error == pytest.approx(math.sqrt(values @ form @ values))
    freedom = np.trace(form) ** 2 / np.trace(form @ form)
    assert estimate.freedom == pytest.approx(freedom)
    assert estimate.freedom + 1e-9 >= 1
    assert estimate.freedom <= len(sizes) - 1 + 1e-9
    reach = stats.t.ppf(0.975, freedom) * estimate.standard_error
    assert (estimate.low, estimate.high) == pytest.approx(
        (estimate.mean - reach, estimate.mean + reach)
    )


def test_rows_are_computed_one_by_one() -> None:
    sums, sizes = normal(3, 4), np.array([1, 5, 2, 2])
    rows = cr2_standard_error(sums, sizes)
    assert rows.tolist() == [float(cr2_standard_error(row, sizes)) for row in sums]


def test_one_group_has_no_error() -> None:
    assert np.isnan(cr2_standard_error(np.zeros((2, 1)), np.array([4]))).all()
    assert math.isnan(bell_mccaffrey_freedom(np.array([4])))


# ── the bound that assumes no more than the range, against a slow version of itself


differences = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.0, 0.25, 1.0]), min_size=1, max_size=9)


def slow_capital(values: list[float], reach: float, mean: float) -> float:
    """The mean over the bets of the product of 1 + λ(v − μ)."""
    bets = [share / (mean + reach) for share in BETS.tolist()]
    return math.fsum(float(np.prod(1 + bet * (np.array(values) - mean))) for bet in bets) / len(
        bets
    )


def slow_bound(values: list[float], reach: float, alpha: float) -> float:
    """The smallest of many μ that leaves the capital below 1/α."""
    grid = np.linspace(-reach, max(values), 4_001)[1:].tolist()
    return float(next(mean for mean in grid if slow_capital(values, reach, mean) < 1 / alpha))


@given(differences, st.sampled_from([0.05, 0.005]))
@settings(max_examples=examples(15))
def test_the_bound_is_the_smallest_mean_that_leaves_the_capital_small(
    values: list[float], alpha: float
) -> None:
    bound = betting_bound(np.array(values), alpha=alpha)
    assert bound <= np.mean(values)
    if max(values) > -1:
        assert bound == pytest.approx(slow_bound(values, 1.0, alpha), abs=1e-3)


def test_groups_are_units_with_the_range_that_follows() -> None:
    groups = np.array([0, 0, 0, 1, 1, 2])
    values = np.array([-0.5, 0.0, 0.1, 0.2, 0.2, -0.1])
    units = [-0.4 / 2, 0.4 / 2, -0.1 / 2]  # sums ÷ mean size 2; the largest group has 3
    bound = betting_bound(values, groups, alpha=0.5)
    assert bound == pytest.approx(slow_bound(units, 1.5, 0.5), abs=1e-3)


def test_the_order_of_queries_is_irrelevant() -> None:
    values = np.random.default_rng(3).uniform(-1, 1, 50)
    bounds = {round(betting_bound(part, alpha=0.05), 12) for part in (values, values[::-1])}
    assert len(bounds) == 1


@pytest.mark.parametrize(("m", "fewest"), [(0.005, 598), (0.01, 299), (0.02, 149)])
def test_no_sample_of_so_few_queries_shows_a_drop_below_m(m: float, fewest: int) -> None:
    # With losses of 1 on a share m, fewer queries hold none of them in over 5 % of the samples.
    assert (1 - m) ** (fewest - 1) > 0.05 >= (1 - m) ** fewest
    assert betting_bound(np.zeros(fewest - 1), alpha=0.05) <= -m
    assert betting_bound(np.zeros(2 * fewest), alpha=0.05) > -m


def test_a_true_drop_is_passed_as_rarely_as_promised() -> None:
    """Every sample of two outcomes, by its exact probability: the mean is −.25 exactly."""
    size, share, wrong = 8, 0.25, 0.0
    for losses in range(size + 1):
        values = np.array([-1.0] * losses + [0.0] * (size - losses))
        weight = math.comb(size, losses) * share**losses * (1 - share) ** (size - losses)
        wrong += weight * (betting_bound(values, alpha=0.2) > -share)
    assert wrong <= 0.2


def test_a_loss_of_more_than_1_has_no_bound() -> None:
    assert math.isnan(betting_bound(np.array([0.5, -1.5]), alpha=0.05))


def test_the_bound_never_exceeds_the_t_bound_of_the_extremes() -> None:
    for values in product((-1.0, 1.0), repeat=3):
        assert -1 <= betting_bound(np.array(values), alpha=0.05) <= np.mean(values)
