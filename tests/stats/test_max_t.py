"""Max-T: a slow loop, exact shares, agreement of p and interval, order and seeds."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError
from fusion_bench.stats.intervals import estimate_mean, t_quantile
from fusion_bench.stats.max_t import FamilyRow, max_t
from fusion_bench.stats.power import upper_tail
from fusion_bench.stats.sign_flips import MOST_EXACT_GROUPS, draw_flips, hash_group_ids
from tests.stats.samples import GRADES, normal


def queries(count: int, prefix: str = "q") -> tuple[str, ...]:
    return tuple(f"{prefix}{i}" for i in range(count))


def family(*differences: FloatArray, margin: float | None = None) -> list[FamilyRow]:
    return [FamilyRow(row, queries(len(row)), margin) for row in differences]


def slow_t(row: FamilyRow, signs: dict[str, int]) -> float:
    """|mean ÷ CR2 standard error| of a row after its groups change their signs."""
    flipped = [signs.get(key, 1) * d for key, d in zip(row.keys, row.difference, strict=True)]
    mean, total = math.fsum(flipped) / len(flipped), 0.0
    for group in set(row.keys):
        members = [d - mean for key, d in zip(row.keys, flipped, strict=True) if key == group]
        total += math.fsum(members) ** 2 / (1 - len(members) / len(flipped))
    error = math.sqrt(total) / len(flipped)
    if mean == 0:
        return 0.0
    return math.inf if error < 1e-9 * abs(mean) else abs(mean) / error


def slow_exact(rows: list[FamilyRow]) -> list[list[float]]:
    """|t| of every row after every flip of every changed group, the last flip changing nothing."""
    changed = sorted(
        {key for row in rows for key, d in zip(row.keys, row.difference, strict=True) if d}
    )
    return [
        [slow_t(row, dict(zip(changed, signs, strict=True))) for row in rows]
        for signs in itertools.product((-1, 1), repeat=len(changed))
    ]


def slow_residuals(rows: list[FamilyRow], seed: int, draws: int) -> list[float]:
    """The largest |t| of the residuals of all rows after each drawn flip of all groups."""
    ids = sorted({key for row in rows for key in row.keys})
    flips = draw_flips(hash_group_ids(seed, ids), 0, draws)
    residuals = []
    for row in rows:
        rest = row.difference - math.fsum(row.difference) / len(row.difference)
        residuals.append(replace(row, difference=np.where(np.abs(rest) < 1e-12, 0.0, rest)))
    return [
        max(slow_t(row, dict(zip(ids, np.where(c > 0, 1, -1), strict=True))) for row in residuals)
        for c in flips.T
    ]


def slow_critical(values: list[float], alpha: float) -> float:
    place = math.floor(alpha * len(values) + 1e-9)
    return sorted(values, reverse=True)[place - 1] if place else math.inf


def slow_share(values: list[float], t: float) -> float:
    return sum(value >= t * (1 - 1e-9) for value in values) / len(values)


@st.composite
def small_families(draw: st.DrawFn) -> list[FamilyRow]:
    """One or two collections with a few queries each, in groups or not."""
    rows = []
    names = draw(st.sampled_from([("a",), ("a", "b")]))
    for name in names:
        count = draw(st.integers(3, 6 if len(names) == 1 else 4))
        keys = queries(count, name)
        if draw(st.booleans()):
            keys = (*keys[:-1], keys[0])
        for _ in range(draw(st.integers(1, 2))):
            values = draw(st.lists(GRADES, min_size=count, max_size=count))
            rows.append(FamilyRow(np.array(values), keys))
    return rows


@settings(max_examples=40, deadline=None)
@given(small_families(), st.sampled_from([0.05, 0.2]))
def test_small_families_are_what_the_slow_loop_says(rows: list[FamilyRow], alpha: float) -> None:
    flips = slow_exact(rows)
    largest = [max(ts) for ts in flips]
    residuals = [largest[-1], *slow_residuals(rows, seed=1, draws=200)]
    result = max_t(rows, seed=1, alpha=alpha, first_draws=200, most_draws=200)
    assert result.is_exact
    assert result.draws == len(largest)
    expected_c = max(slow_critical(values, alpha) for values in (largest, residuals))
    assert result.critical_value == pytest.approx(expected_c, rel=1e-6)
    for i, (row, each) in enumerate(zip(rows, result.rows, strict=True)):
        codes = np.unique(row.keys, return_inverse=True)[1]
        estimate, t = estimate_mean(row.difference, codes, alpha=alpha), flips[-1][i]
        share = max(slow_share(values, t) for values in (largest, residuals))
        student = 1.0 if t == 0 else 2 * upper_tail(min(t, 1e12), estimate.freedom)
        assert each.p == pytest.approx(1.0 if t == 0 else max(share, student), abs=1e-9)
        assert each.p_floor == (each.p <= 1 / 201)
        least = t_quantile(estimate.freedom, 1 - alpha / 2)
        assert each.critical_value == pytest.approx(max(expected_c, least), rel=1e-6)
        if math.isfinite(each.critical_value) and not each.p <= alpha:
            half_width = each.critical_value * estimate.standard_error
            assert each.high - estimate.mean == pytest.approx(half_width, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(small_families(), st.sampled_from([0.05, 0.2, 0.4]))
def test_p_and_interval_are_one_decision(rows: list[FamilyRow], alpha: float) -> None:
    for row in max_t(rows, seed=1, alpha=alpha).rows:
        if row.p <= alpha:
            assert row.low >= 0 if row.estimate.mean > 0 else row.high <= 0
        elif not math.isnan(row.low):
            assert row.low <= 0 <= row.high


def shifted(shift: float, rows: int = 3, count: int = 40, seed: int = 0) -> list[FamilyRow]:
    return family(*(normal(rows, count, seed=seed) + shift))


def test_drawn_flips_are_what_the_slow_loop_says() -> None:
    keys = (*(f"g{i // 2}" for i in range(39)), "g0")  # a group of 3, a group of 1
    rows = [FamilyRow(row, keys) for row in normal(3, 40, seed=3) + 0.2]
    result = max_t(rows, seed=5, first_draws=200, most_draws=200)
    ids = sorted(set(keys))
    flips = draw_flips(hash_group_ids(5, ids), 0, 200)
    largest = [
        max(slow_t(row, dict(zip(ids, np.where(column > 0, 1, -1), strict=True))) for row in rows)
        for column in flips.T
    ]
    observed = [slow_t(row, {}) for row in rows]
    values = [[max(observed), *drawn] for drawn in (largest, slow_residuals(rows, 5, 200))]
    assert result.draws == 200
    for t, row in zip(observed, result.rows, strict=True):
        expected = max(slow_share(drawn, t) for drawn in values)
        assert row.p == pytest.approx(max(expected, 2 * upper_tail(t, row.estimate.freedom)))
    assert result.critical_value == pytest.approx(max(slow_critical(v, 0.05) for v in values))


def test_intervals_hold_together_where_systems_truly_differ() -> None:
    """Flips of the differences alone: c shrinks from 3.2 towards Student's 2.0."""
    alike = max_t(shifted(0.0, rows=30, count=50), seed=1, most_draws=10_000)
    apart = max_t(shifted(3.0, rows=30, count=50), seed=1, most_draws=10_000)
    assert alike.critical_value > 3
    assert apart.critical_value == pytest.approx(alike.critical_value, rel=0.02)


def test_the_observed_t_is_mean_over_standard_error() -> None:
    (row,) = shifted(0.5, rows=1)
    (alone,) = max_t([row], seed=1).rows
    estimate = estimate_mean(row.difference)
    assert alone.estimate == estimate
    assert (alone.high + alone.low) / 2 == pytest.approx(estimate.mean)
    half_width = alone.critical_value * estimate.standard_error
    assert alone.high - estimate.mean == pytest.approx(half_width)


def test_order_changes_nothing() -> None:
    rows = shifted(0.4)
    expected = max_t(rows, seed=3).rows
    assert max_t(rows[::-1], seed=3).rows[::-1] == expected
    order = np.random.default_rng(1).permutation(40)
    turned = [FamilyRow(row.difference[order], tuple(row.keys[i] for i in order)) for row in rows]
    for row, same in zip(max_t(turned, seed=3).rows, expected, strict=True):
        assert (row.p, row.critical_value) == (same.p, same.critical_value)
        assert (row.low, row.high) == pytest.approx((same.low, same.high))


def test_the_seed_changes_the_draws() -> None:
    assert max_t(shifted(0.2), seed=1) == max_t(shifted(0.2), seed=1)
    assert max_t(shifted(0.2), seed=1).critical_value != max_t(shifted(0.2), seed=2).critical_value


def test_equal_rows_count_once() -> None:
    rows = shifted(0.4)
    once, twice = max_t(rows, seed=1), max_t([*rows, rows[0]], seed=1)
    assert twice.rows[:3] == once.rows
    assert twice.rows[3] == once.rows[0]


def test_the_same_group_flips_together_in_every_collection() -> None:
    (row,) = shifted(0.4, rows=1)
    elsewhere = FamilyRow(row.difference[:30], row.keys[:30])
    other = FamilyRow(row.difference[:30], queries(30, "other"))
    alone = max_t([row], seed=1).critical_value
    assert alone < max_t([row, elsewhere], seed=1).critical_value
    assert max_t([row, elsewhere], seed=1) != max_t([row, other], seed=1)


def test_a_larger_family_needs_more() -> None:
    rows = shifted(0.2, rows=12)
    alone, all_rows = (max_t(part, seed=1, most_draws=10_000) for part in (rows[:1], rows))
    assert alone.rows[0].p < all_rows.rows[0].p
    assert alone.critical_value < all_rows.critical_value


def test_the_smallest_p_of_the_draws_is_marked() -> None:
    (row,) = max_t(family(np.full(400, 0.1) + 0.001 * normal(400)), seed=1).rows
    assert (row.p, row.p_floor) == (1 / 10_001, True)
    assert not max_t(shifted(0.4), seed=1).rows[0].p_floor


def test_p_is_never_below_students() -> None:
    difference = np.concatenate([np.full(2, -1.0), np.full(38, 0.4)])
    (row,) = max_t(family(difference), seed=1).rows
    estimate = estimate_mean(difference)
    t = estimate.mean / estimate.standard_error
    assert row.p >= 2 * upper_tail(t, estimate.freedom)
    assert row.critical_value >= t_quantile(39, 0.975)


def test_draws_double_until_decisions_are_clear() -> None:
    clear = max_t(shifted(2.0), seed=1)
    assert (clear.draws, clear.rows[0].decision) == (10_000, "clear")
    rows = shifted(0.0, rows=1)
    alpha = round(max_t(rows, seed=1, first_draws=400_000).rows[0].p, 3)
    near = max_t(rows, seed=2, alpha=alpha, most_draws=80_000)
    assert (near.draws, near.rows[0].decision) == (80_000, "open")


def test_a_margin_is_decided_too() -> None:
    rows = family(0.01 * normal(40), margin=0.005)
    (inside,) = max_t(rows, seed=1).rows
    assert (inside.is_within, inside.within_decision) == (True, "clear")
    assert -0.005 < inside.low < inside.high < 0.005
    (wide,) = max_t(family(0.1 * normal(40), margin=0.005), seed=1).rows
    assert (wide.is_within, wide.within_decision) == (False, "clear")
    assert not max_t(family(0.01 * normal(40)), seed=1).rows[0].is_within


@pytest.mark.parametrize(
    ("difference", "p", "is_known"),
    [
        (np.zeros(8), 1.0, True),
        (np.full(1, 0.5), 1.0, False),  # one query: no spread
        (np.full(6, 0.5), 2 / 64, True),  # no spread either, but six equal signs
        (np.array([0.5, -0.5, 0, 0]), 1.0, True),
    ],
)
def test_edges(difference: FloatArray, p: float, is_known: bool) -> None:
    (row,) = max_t(family(difference), seed=1).rows
    assert row.p == pytest.approx(p)
    assert math.isnan(row.low) != is_known


def test_few_changed_groups_are_enumerated() -> None:
    difference = np.zeros(100)
    difference[:MOST_EXACT_GROUPS] = 0.1 + 0.01 * np.arange(MOST_EXACT_GROUPS)
    exact = max_t(family(difference), seed=1)
    assert (exact.is_exact, exact.draws) == (True, 2**MOST_EXACT_GROUPS)
    difference[MOST_EXACT_GROUPS] = 0.1
    assert not max_t(family(difference), seed=1).is_exact


def test_refusals() -> None:
    with pytest.raises(ConfigError, match="seed"):
        max_t(shifted(0.1), seed=-1)
    with pytest.raises(ConfigError, match="resamples"):
        max_t(shifted(0.1), seed=1, first_draws=0)
