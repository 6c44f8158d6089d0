"""Intervals, randomisation tests and Holm, against scipy.stats, obvious loops and simulation."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.stats import inference as statistics
from fusion_bench.stats.inference import (
    Estimate,
    default_resamples,
    estimate,
    exact_mean,
    holm,
    randomisation_p,
    smallest_detectable,
)

GRADES = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.7, 1 / 3, 2 / 3, -0.1, -0.3, -1 / 3, -1.0])


def normal(*shape: int, seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).normal(size=shape)


def clustered(rows: int, groups: int, size: int, seed: int) -> tuple[FloatArray, IntArray]:
    """Null data whose queries say nearly the same within a group, shape (rows, groups·size)."""
    shared = np.repeat(normal(rows, groups, seed=seed), size, axis=1)
    noise = 0.3 * normal(rows, groups * size, seed=seed + 1)
    return shared + noise, np.repeat(np.arange(groups), size)


def binomial_bounds(hits: int, trials: int) -> tuple[float, float]:
    """Clopper–Pearson, 99.9 %."""
    bounds = stats.binomtest(hits, trials).proportion_ci(0.999, method="exact")
    return float(bounds.low), float(bounds.high)


# --- estimate ---------------------------------------------------------------------------------


@pytest.mark.parametrize("queries", [2, 3, 10, 500])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_estimate_is_the_paired_t_interval(queries: int, alpha: float) -> None:
    a, b = normal(queries, seed=1), normal(queries, seed=2)
    found = estimate(a - b, alpha=alpha)
    expected = stats.ttest_rel(a, b).confidence_interval(1 - alpha)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-9)
    assert found.mean == pytest.approx(np.mean(a - b), rel=1e-12)
    assert found.sd == pytest.approx(np.std(a - b, ddof=1), rel=1e-12)
    assert found.standard_error == pytest.approx(stats.sem(a - b), rel=1e-12)
    assert (found.queries, found.groups) == (queries, queries)


def test_one_query_per_group_is_the_plain_estimate() -> None:
    values = normal(40)
    labels = np.random.default_rng(3).permutation(1000)[:40]
    assert estimate(values, labels) == estimate(values)
    assert estimate(values, labels, interval="bootstrap") == estimate(values, interval="bootstrap")


def test_estimate_by_group_is_the_formula() -> None:
    values, groups = normal(12), np.array([5, 5, 5, 2, 2, 9, 9, 9, 9, 9, 7, 5])
    found = estimate(values, groups)
    mean = sum(values) / 12
    spread = 0.0
    for group in (5, 2, 9, 7):
        members = [v for v, g in zip(values, groups, strict=True) if g == group]
        spread += (sum(members) - len(members) * mean) ** 2
    error = math.sqrt(4 / 3 * spread) / 12
    reach = stats.t.ppf(0.975, 3) * error
    assert found.mean == pytest.approx(mean)
    assert found.standard_error == pytest.approx(error)
    assert (found.low, found.high) == pytest.approx((mean - reach, mean + reach))
    assert (found.queries, found.groups) == (12, 4)


@pytest.mark.parametrize("interval", ["t", "bootstrap"])
def test_labels_of_groups_mean_nothing(interval: statistics.Interval) -> None:
    values, groups = normal(30), np.arange(30) % 7
    other = np.array([40, -3, 8, 100, 0, 2, 1])[groups]
    first = estimate(values, groups, interval=interval)
    assert estimate(values, other, interval=interval) == first
    p = randomisation_p(values[None], groups, resamples=500)
    assert randomisation_p(values[None], other, resamples=500) == p


def test_interval_by_group_covers_where_the_naive_one_does_not() -> None:
    rows, groups = clustered(1500, 25, 4, seed=10)
    by_group = [estimate(row, groups) for row in rows]
    naive = [estimate(row) for row in rows]
    covered = sum(e.low <= 0 <= e.high for e in by_group)
    low, high = binomial_bounds(covered, len(rows))
    assert low <= 0.95 <= high
    assert sum(e.low <= 0 <= e.high for e in naive) < 0.8 * len(rows)


def test_bootstrap_is_roughly_scipys() -> None:
    values = np.random.default_rng(4).gamma(1.0, size=60)
    found = estimate(values, interval="bootstrap", seed=1)
    reference = stats.bootstrap(
        (values,), np.mean, n_resamples=10_000, method="percentile", rng=5
    ).confidence_interval
    width = reference.high - reference.low
    assert found.low == pytest.approx(reference.low, abs=0.03 * width)
    assert found.high == pytest.approx(reference.high, abs=0.03 * width)
    plain = estimate(values)
    assert (found.mean, found.standard_error) == (plain.mean, plain.standard_error)


@pytest.mark.parametrize("uneven", [False, True])
def test_bootstrap_resamples_whole_groups(uneven: bool) -> None:
    sizes = np.arange(1, 31) if uneven else np.full(30, 5)
    groups = np.repeat(np.arange(30), sizes)
    values = normal(30, seed=20)[groups] + 0.3 * normal(len(groups), seed=21)
    members = [values[groups == group] for group in range(30)]
    random = np.random.default_rng(22)
    means = [
        np.concatenate([members[g] for g in random.integers(30, size=30)]).mean()
        for _ in range(4000)
    ]
    low, high = np.quantile(means, [0.025, 0.975])
    found = estimate(values, groups, interval="bootstrap")
    assert found.low == pytest.approx(low, abs=0.05 * (high - low))
    assert found.high == pytest.approx(high, abs=0.05 * (high - low))


def test_bootstrap_is_fixed_by_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    values = normal(33)
    first = estimate(values, interval="bootstrap", seed=7)
    assert estimate(values, interval="bootstrap", seed=8).low != first.low
    monkeypatch.setattr(statistics, "BLOCK_BYTES", 10_000)
    again = estimate(values, interval="bootstrap", seed=7)
    assert (again.low, again.high) == pytest.approx((first.low, first.high), rel=1e-12)


@pytest.mark.parametrize("interval", ["t", "bootstrap"])
def test_one_query_or_group_is_never_certain(interval: statistics.Interval) -> None:
    one = estimate(np.array([0.3]), interval=interval)
    assert one.mean == 0.3
    assert all(map(math.isnan, (one.low, one.high, one.sd, one.standard_error)))
    group = estimate(np.array([0.3, 0.5]), np.array([4, 4]), interval=interval)
    assert (group.queries, group.groups) == (2, 1)
    assert group.sd == pytest.approx(math.sqrt(0.02))
    assert all(map(math.isnan, (group.low, group.high, group.standard_error)))


@pytest.mark.parametrize("interval", ["t", "bootstrap"])
@pytest.mark.parametrize("constant", [0.0, 0.1, -1 / 3])
@pytest.mark.parametrize("grouped", [False, True])
def test_constant_values_have_no_spread_to_the_last_bit(
    interval: statistics.Interval, constant: float, grouped: bool
) -> None:
    groups = np.array([0, 0, 0, 1, 1, 2, 2]) if grouped else None
    found = estimate(np.full(7, constant), groups, interval=interval)
    assert found == Estimate(constant, constant, constant, 0.0, 0.0, 7, 3 if grouped else 7)


@settings(deadline=None)
@given(arrays(np.float64, st.integers(1, 30), elements=GRADES), st.randoms())
def test_exact_mean_ignores_the_order(values: FloatArray, random: Random) -> None:
    shuffled = values.tolist()
    random.shuffle(shuffled)
    assert exact_mean(np.array(shuffled)) == exact_mean(values)
    assert exact_mean(values) == pytest.approx(float(np.mean(values)), abs=1e-15)


# --- randomisation_p --------------------------------------------------------------------------


def loop_p(row: FloatArray, codes: list[int], resamples: int, seed: int) -> Fraction:
    """The definition, one resample at a time, in rational arithmetic, from the same bits."""
    sums: dict[int, Fraction] = {}
    for value, code in zip(row.tolist(), codes, strict=True):
        sums[code] = sums.get(code, Fraction(0)) + Fraction(value)
    source = np.random.PCG64(seed)
    observed = abs(sum(sums.values(), Fraction(0)))
    threshold = observed - Fraction(1e-12) * sum(abs(Fraction(v)) for v in row.tolist())
    reached = 0
    for _ in range(resamples):
        words = [int(source.random_raw()) for _ in range(-(-len(sums) // 64))]
        bits = itertools.chain.from_iterable(((word >> i) & 1 for i in range(64)) for word in words)
        flipped: Fraction = sum(
            (s if bit else -s for s, bit in zip(sums.values(), bits, strict=False)), Fraction(0)
        )
        reached += abs(flipped) >= threshold
    return Fraction(1 + reached, resamples + 1)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_p_is_the_obvious_loop_in_exact_arithmetic(data: st.DataObject) -> None:
    queries = data.draw(st.integers(1, 70))
    rows = data.draw(arrays(np.float64, (2, queries), elements=GRADES))
    codes = data.draw(st.lists(st.integers(0, 69), min_size=queries, max_size=queries))
    seed = data.draw(st.integers(0, 2**32))
    found = randomisation_p(rows, np.array(codes), resamples=60, seed=seed)
    assert found.tolist() == [float(loop_p(row, codes, 60, seed)) for row in rows]


@pytest.mark.parametrize("queries", [3, 8, 12])
def test_p_agrees_with_every_sign_vector(queries: int) -> None:
    row = np.round(normal(queries, seed=queries) + 0.4, 1)  # a grid: many sums tie
    exact = float(
        stats.permutation_test(
            (row,), np.sum, permutation_type="samples", n_resamples=2**queries
        ).pvalue
    )
    found = randomisation_p(row[None], resamples=200_000)[0]
    assert found == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 200_000) + 1e-5)


def test_equal_sums_of_unequal_terms_tie() -> None:
    # ±0.1 ±0.2 ∓0.3: 0.1 + 0.2 is not 0.3 in float64, yet all of these sums are 0 or 0.6 or …
    found = randomisation_p(np.array([[0.1, 0.2, -0.3]]), resamples=1000)
    assert found[0] == 1.0
    scaled = np.array([[0.1, 0.2, 0.3, 0.4, -0.5]])
    assert randomisation_p(scaled, resamples=999) == randomisation_p(10 * scaled, resamples=999)


def test_sums_are_whole_units_and_the_slack_covers_their_rounding() -> None:
    rows, groups = normal(2, 9000) / 3, np.arange(9000) // 2
    units, slack = statistics._fixed_point(rows, groups, 4500)
    assert (units == np.rint(units)).all()
    assert (np.abs(units).sum(axis=0) < 2.0**51).all()  # twice that is still exact in float64
    for column, row in enumerate(rows):
        size = sum(abs(Fraction(v)) for v in row.tolist())
        unit = Fraction(2) ** (math.frexp(float(size))[1] - statistics.FIXED_POINT_BITS)
        share = Fraction(statistics.TIE_TOLERANCE) * size / unit
        assert share + 4500 <= slack[column] <= share + 4501


@pytest.mark.parametrize("scale", [2.0**-1000, 1e-300, 1e-9, 1.0, 1e200])
def test_scale_of_the_values_changes_no_p(scale: float) -> None:
    row = normal(1, 20)
    assert randomisation_p(row * scale, resamples=500) == randomisation_p(row, resamples=500)


def test_p_depends_on_neither_blocks_nor_the_other_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = normal(6, 130) + 0.1
    whole = randomisation_p(rows, resamples=1234, seed=5)
    order = [3, 1, 5, 0, 4, 2]
    assert randomisation_p(rows[order], resamples=1234, seed=5).tolist() == whole[order].tolist()
    assert randomisation_p(rows[2:3], resamples=1234, seed=5)[0] == whole[2]
    assert randomisation_p(-rows, resamples=1234, seed=5).tolist() == whole.tolist()
    for size in (1, 9_999, 1 << 30):
        monkeypatch.setattr(statistics, "BLOCK_BYTES", size)
        assert randomisation_p(rows, resamples=1234, seed=5).tolist() == whole.tolist()
    assert randomisation_p(rows, resamples=1234, seed=6).tolist() != whole.tolist()


def test_p_of_a_seed_never_changes() -> None:
    """Raw PCG64 words and integer sums: these are the same on every machine and every version."""
    rows = (np.arange(30).reshape(2, 15) * 7 % 11 - 4) / 8
    counts = randomisation_p(rows, resamples=10_000, seed=7) * 10_001
    assert np.rint(counts).tolist() == [3167, 2088]


def test_p_is_never_0_and_is_1_without_a_difference() -> None:
    rows = np.array([np.ones(60), np.zeros(60)])
    assert randomisation_p(rows, resamples=10_000).tolist() == [1 / 10_001, 1.0]
    assert randomisation_p(np.ones((1, 5)), np.zeros(5, dtype=np.int64), resamples=99)[0] == 1.0


def test_default_resamples_grow_with_the_family() -> None:
    assert [default_resamples(c) for c in (0, 1, 50, 51)] == [10_000, 10_000, 10_000, 10_200]
    row = np.ones((51, 30))
    assert randomisation_p(row)[0] == pytest.approx(1 / 10_201, rel=1e-12)


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_the_test_holds_its_level(alpha: float) -> None:
    skewed = np.random.default_rng(8).choice([-1.0, 1.0], (4000, 50)) * np.abs(normal(4000, 50))
    rejected = int((randomisation_p(skewed, resamples=2000, seed=3) <= alpha).sum())
    low, high = binomial_bounds(rejected, len(skewed))
    assert low <= alpha <= high


def test_flipping_groups_holds_the_level_where_flipping_queries_does_not() -> None:
    rows, groups = clustered(3000, 30, 4, seed=30)
    by_group = int((randomisation_p(rows, groups, resamples=2000) <= 0.05).sum())
    low, high = binomial_bounds(by_group, len(rows))
    assert low <= 0.05 <= high
    naive = int((randomisation_p(rows, resamples=2000) <= 0.05).sum())
    assert naive > 0.2 * len(rows)


# --- holm -------------------------------------------------------------------------------------


def loop_holm(p_values: list[float]) -> list[float]:
    """Smallest level at which the step-down procedure rejects each: its definition."""
    adjusted = []
    for own in p_values:
        worst = 0.0
        for other in p_values:
            if other <= own:
                still_there = sum(p >= other for p in p_values)
                worst = max(worst, other * still_there)
        adjusted.append(min(1.0, worst))
    return adjusted


@settings(deadline=None)
@given(st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.01, 0.02, 0.5])), max_size=12))
def test_holm_is_the_obvious_loop(p_values: list[float]) -> None:
    array = np.array(p_values, dtype=np.float64)
    found = holm(array)
    assert found.tolist() == loop_holm(p_values)
    assert (found >= array).all()
    assert array.tolist() == p_values
    order = np.argsort(array, kind="stable")
    assert (np.diff(found[order]) >= 0).all()


def test_holm_worked() -> None:
    found = holm(np.array([0.01, 0.04, 0.03, 0.005]))
    assert found.tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])


@pytest.mark.parametrize("wrong", [math.nan, -0.1, 1.1, math.inf])
def test_holm_refuses_what_is_no_probability(wrong: float) -> None:
    with pytest.raises(DataError, match="p-value 1"):
        holm(np.array([0.5, wrong]))


# --- smallest_detectable ----------------------------------------------------------------------


def test_detectable_is_the_formula() -> None:
    found = estimate(normal(30))
    quantiles = stats.t.ppf(0.975, 29) + stats.t.ppf(0.8, 29)
    assert smallest_detectable(found) == pytest.approx(quantiles * found.standard_error)
    groups = np.arange(30) % 6
    by_group = estimate(normal(30), groups)
    quantiles = stats.t.ppf(0.95, 5) + stats.t.ppf(0.9, 5)
    found_by_group = smallest_detectable(by_group, alpha=0.1, power=0.9)
    assert found_by_group == pytest.approx(quantiles * by_group.standard_error)


@pytest.mark.parametrize("queries", [20, 60])
def test_power_at_the_detectable_difference_is_as_promised(queries: int) -> None:
    trials = 2000
    unit = Estimate(0, 0, 0, 1, 1 / math.sqrt(queries), queries, queries)
    shift = smallest_detectable(unit)
    assert shift is not None
    found = [estimate(row) for row in normal(trials, queries, seed=40) + shift]
    power = sum(not e.low <= 0 <= e.high for e in found) / trials
    assert power == pytest.approx(0.8, abs=0.03)


def test_power_of_the_randomisation_test_is_as_promised() -> None:
    unit = Estimate(0, 0, 0, 1, 1 / math.sqrt(60), 60, 60)
    shift = smallest_detectable(unit)
    assert shift is not None
    p_values = randomisation_p(normal(2000, 60, seed=41) + shift, resamples=2000)
    assert (p_values <= 0.05).mean() == pytest.approx(0.8, abs=0.03)


def test_nothing_is_detectable_without_spread() -> None:
    assert smallest_detectable(estimate(np.full(9, 0.1))) is None
    assert smallest_detectable(estimate(np.array([0.1]))) is None
    assert smallest_detectable(estimate(normal(4), np.zeros(4, dtype=np.int64))) is None


# --- refusals ---------------------------------------------------------------------------------


def test_what_cannot_be_is_refused() -> None:
    values = normal(4)
    with pytest.raises(UnknownNameError, match="did you mean 'bootstrap'"):
        estimate(values, interval="bootstrp")  # type: ignore[arg-type]
    for alpha in (0.0, 1.0, math.nan):
        with pytest.raises(ConfigError, match="alpha"):
            estimate(values, alpha=alpha)
    for power in (0.2, 1.0, math.nan):
        with pytest.raises(ConfigError, match="power"):
            smallest_detectable(estimate(values), power=power)
    with pytest.raises(ConfigError, match="dimension"):
        randomisation_p(values)
    with pytest.raises(ConfigError, match="one code per query"):
        estimate(values, np.arange(3))
    with pytest.raises(ConfigError, match="resamples"):
        randomisation_p(values[None], resamples=0)
    with pytest.raises(ConfigError, match="seed"):
        randomisation_p(values[None], seed=-1)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_numbers_that_are_none_are_refused(wrong: float) -> None:
    with pytest.raises(DataError, match=r"values\[2\]"):
        estimate(np.array([0.0, 1.0, wrong]))
    with pytest.raises(DataError, match=r"values\[0, 1\]"):
        randomisation_p(np.array([[0.0, wrong]]))


def test_no_query_has_no_mean() -> None:
    with pytest.raises(DataError, match="at least one query"):
        estimate(np.array([]))
