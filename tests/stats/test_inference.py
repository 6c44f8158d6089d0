"""One inference: a slow oracle, agreement of p and interval, order, duplicates, repeats."""

import hashlib
import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.inference import find_rivals, infer_family
from fusion_bench.stats.values import MeasuredValues, Pair
from tests.examples import examples
from tests.stats.samples import GRADES, normal

B = 10_000


def queries(count: int) -> tuple[str, ...]:
    return tuple(f"q{i}" for i in range(count))


def family(values: FloatArray, keys: tuple[str, ...] | None = None) -> list[Pair]:
    return [Pair.from_arrays(row, keys=keys or queries(values.shape[1])) for row in values]


def blake(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=16).digest()


def slow_draws(units: Sequence[str], seed: int) -> list[list[str]]:
    """The units of each draw."""
    ordered = sorted(units, key=lambda unit: blake(unit.encode()))
    of_all = blake(b"".join(blake(unit.encode()) for unit in ordered))
    source = np.random.PCG64(int.from_bytes(blake(f"{seed}\0".encode() + of_all), "little"))
    draws = []
    for _ in range(B):
        words = [int(word) for word in source.random_raw(-(-len(ordered) // 2))]
        halves = [half for word in words for half in (word & 0xFFFFFFFF, word >> 32)]
        draws.append([ordered[half * len(ordered) >> 32] for half in halves[: len(ordered)]])
    return draws


def slow_moments(sums: Sequence[float], sizes: Sequence[int]) -> tuple[float, float]:
    """M and s of units with these sums of differences and numbers of queries."""
    total, count = sum(sizes), len(sums)
    mean = math.fsum(sums) / total
    square = math.fsum((d - mean * n) ** 2 for d, n in zip(sums, sizes, strict=True))
    return mean, math.sqrt(count / (count - 1) * square) / total


@dataclass
class Slow:
    low: float
    high: float
    p: float


def slow_family(rows: list[Pair], seed: int, alpha: float) -> list[Slow]:
    """Semantics 7, row by row and draw by draw; every row changes on 10 of 20 units or more."""
    moments, t = [], []
    draws = slow_draws(sorted(set(rows[0].keys)), seed)
    for row in rows:
        units = sorted(set(row.keys))
        by_unit = {
            unit: [d for key, d in zip(row.keys, row.difference, strict=True) if key == unit]
            for unit in units
        }
        sums = {unit: math.fsum(each) for unit, each in by_unit.items()}
        mean, error = slow_moments(list(sums.values()), [len(by_unit[unit]) for unit in units])
        moments.append((mean, error, len(units) - 1))
        column = []
        for draw in draws:
            drawn_mean, drawn_error = slow_moments(
                [sums[unit] for unit in draw], [len(by_unit[unit]) for unit in draw]
            )
            if drawn_error > 1e-6 * error:
                column.append((drawn_mean - mean) / drawn_error)
            else:
                far = abs(drawn_mean - mean) > 1e-6 * error
                column.append(math.copysign(math.inf, drawn_mean - mean) if far else 0.0)
        t.append(column)
    rank = math.floor((B + 1) * alpha / 2)
    quantiles = []
    for (_, _, freedom), column in zip(moments, t, strict=True):
        student = stats.t.ppf(1 - alpha / 2, freedom)
        ordered = sorted(column)
        quantiles.append((ordered[-rank], -ordered[rank - 1], student))
    shared = [statistics.median(each[k] for each in quantiles) for k in range(2)]
    scales = [[max(each[k] / 1.2, shared[k], each[2]) for k in range(2)] for each in quantiles]
    greatest = [
        sorted(
            max(side * row[draw] / scale[k] for row, scale in zip(t, scales, strict=True))
            for draw in range(B)
        )
        for k, side in enumerate((1, -1))
    ]
    results = []
    for (mean, error, freedom), scale in zip(moments, scales, strict=True):
        lower, upper = (max(greatest[k][-rank], 1.0) * scale[k] for k in range(2))
        side = 0 if mean > 0 else 1
        own = abs(mean / error)
        reached = sum(each >= own / scale[side] for each in greatest[side])
        p = max(2 * (1 + reached) / (B + 1), 2 * stats.t.sf(own, freedom))
        results.append(Slow(mean - lower * error, mean + upper * error, min(p, 1.0)))
    return results


SKEWED = np.where(normal(3, 24, seed=5) > -0.6, np.abs(normal(3, 24, seed=6)), 0.0)
GROUPED = tuple(f"g{i}" for i in np.repeat(np.arange(22), np.arange(22) % 4 + 1))


@pytest.mark.parametrize(
    ("values", "keys", "alpha"),
    [
        (normal(3, 20) + 0.4, queries(20), 0.05),
        (SKEWED, queries(24), 0.05),
        (normal(3, len(GROUPED), seed=9) + 0.3, GROUPED, 0.04),
    ],
    ids=["normal", "gains", "unequal groups"],
)
def test_intervals_and_p_are_those_of_a_loop_over_draws(
    values: FloatArray, keys: tuple[str, ...], alpha: float
) -> None:
    rows = family(values, keys)
    slow = slow_family(rows, seed=7, alpha=alpha)
    for row, expected in zip(infer_family(rows, seed=7, alpha=alpha), slow, strict=True):
        assert row.low == pytest.approx(expected.low, abs=1e-12)
        assert row.high == pytest.approx(expected.high, abs=1e-12)
        assert row.p == pytest.approx(expected.p, abs=1e-12)


@given(
    st.lists(st.lists(GRADES, min_size=24, max_size=24), min_size=1, max_size=4),
    st.sampled_from([0.01, 0.05, 0.2]),
)
def test_p_reaches_alpha_exactly_where_the_interval_excludes_0(
    values: list[list[float]], alpha: float
) -> None:
    for row in infer_family(family(np.array(values)), alpha=alpha):
        if row.has_interval:
            assert (row.p <= alpha) == (row.low > 0 or row.high < 0)


@given(st.permutations(range(24)), st.permutations(range(3)))
@settings(max_examples=examples(20))
def test_the_order_of_queries_and_rows_changes_nothing(order: list[int], rows: list[int]) -> None:
    values = normal(3, 24, seed=2) + 0.3
    keys = tuple(f"g{i // 2 if i < 4 else i}" for i in range(24))
    expected = infer_family(family(values, keys), seed=3)
    shuffled = values[np.ix_(rows, order)]
    found = infer_family(family(shuffled, tuple(keys[i] for i in order)), seed=3)
    for place, row in zip(rows, found, strict=True):
        for name in ("mean", "low", "high", "p"):
            assert getattr(row, name) == pytest.approx(getattr(expected[place], name), abs=1e-12)


def test_duplicates_and_copies_of_the_baseline_change_nothing() -> None:
    values = normal(2, 30, seed=4)
    few = np.where(np.arange(30) < 6, 0.5, 0.0)
    plain = infer_family(family(np.array([*values, few])))
    more = infer_family(family(np.array([*values, few, values[0], few, np.zeros(30)])))
    for row, again in zip(plain, more[:3], strict=True):
        assert (again.low, again.high, again.p) == pytest.approx(
            (row.low, row.high, row.p), nan_ok=True
        )
    assert (more[3].low, more[3].p) == (plain[0].low, plain[0].p)
    assert (more[5].low, more[5].high, more[5].p) == (0.0, 0.0, 1.0)


def test_rows_without_interval_take_their_share_of_alpha() -> None:
    values = normal(1, 40, seed=1) + 0.4
    few = np.where(np.arange(40) < 8, 0.5, 0.0)
    [row, lone] = infer_family(family(np.array([values[0], few])))
    [half] = infer_family(family(values), alpha=0.025)
    [whole] = infer_family(family(values))
    assert row.low == half.low
    assert whole.high < row.high <= half.high  # Student's is the floor at the whole α
    assert row.p == pytest.approx(2 * whole.p)
    assert not lone.has_interval
    assert math.isnan(lone.low)
    assert lone.p == pytest.approx(2 * 2 / 2**8)


def test_rows_in_which_few_units_differ_hardly_widen_the_others() -> None:
    values = normal(2, 60, seed=1) + 0.3
    sparse = np.where(np.arange(60) < 14, np.abs(normal(60, seed=2)), 0.0)
    [row, other] = infer_family(family(values))
    [same, *_, lone] = infer_family(family(np.array([*values, sparse])))
    assert 1 < (same.high - same.low) / (row.high - row.low) < 1.3
    assert lone.critical[1] > 1.4 * same.critical[1]
    assert not lone.has_interval
    assert lone.is_drawn
    assert other.has_interval


def test_nearly_equal_differences_of_many_units_need_bets() -> None:
    """Flips would be sure of 12 units; a bet knows that losses may not have been seen."""
    [row] = infer_family(family(np.full((1, 12), 0.05)))
    assert 0.4 < row.p <= 1
    [clear] = infer_family(family(np.full((1, 60), -0.9)))
    assert clear.p < 1e-6
    assert not clear.has_interval
    [beyond] = infer_family(family(np.full((1, 60), -1.5)))  # no measure has such differences
    assert beyond.p == 1.0


def test_few_changed_units_have_the_p_of_all_their_flips() -> None:
    changed = np.array([0.5, 0.2, 0.2, -0.1, 0.3, 0.4])
    difference = np.concatenate((changed, np.zeros(50)))
    [row] = infer_family(family(difference[None]))
    reached = sum(
        abs(sum(s * d for s, d in zip(signs, changed, strict=True))) >= changed.sum() - 1e-9
        for signs in itertools.product((-1, 1), repeat=6)
    )
    assert row.p == reached / 2**6


@pytest.mark.parametrize(
    "difference",
    [
        np.full(40, 0.05),
        np.where(np.arange(50) < 45, 0.05, -0.45),
        normal(19) + 3,
    ],
    ids=["a constant", "nine losses or fewer", "19 units"],
)
def test_no_interval_where_too_few_units_differ(difference: FloatArray) -> None:
    [row] = infer_family(family(difference[None]))
    assert not row.has_interval
    assert math.isnan(row.low)
    assert math.isnan(row.high)
    assert math.isnan(row.loss_share)


@pytest.mark.parametrize(
    ("units", "changed", "has_interval"),
    [(60, 29, False), (60, 30, True), (40, 20, True), (40, 19, False), (20, 10, True)],
)
def test_an_interval_needs_30_changed_units_or_half_of_all(
    units: int, changed: int, has_interval: bool
) -> None:
    difference = np.where(np.arange(units) < changed, np.abs(normal(units)) + 0.1, 0.0)
    [row] = infer_family(family(difference[None]))
    assert row.has_interval == has_interval
    assert row.is_drawn
    assert row.p < 0.05


def test_a_constant_shift_of_most_units_is_no_answer() -> None:
    [row] = infer_family(family(np.where(np.arange(50) < 45, 0.05, -0.45)[None] + 0.04))
    assert row.p > 0.05


def test_draws_without_spread_count_as_infinite() -> None:
    difference = np.where(np.arange(20) < 10, 1.0, 0.0)
    difference[10:] = np.linspace(0, 1e-9, 10)  # ten units that all but agree
    [row] = infer_family([Pair.from_arrays(difference, is_bounded=True)])
    assert -1 <= row.low < row.mean < row.high <= 1


def test_intervals_end_where_differences_end() -> None:
    [row] = infer_family(
        [Pair.from_arrays(np.where(np.arange(40) < 20, 1.8, 0.0), is_bounded=True)]
    )
    assert row.high == 1


def with_means(pair: Pair, *means: FloatArray) -> Pair:
    """A pair whose sides have repeats of these means."""
    sides = [np.tile(each[:, None], len(pair.keys)) for each in means] + [None] * (2 - len(means))
    return replace(
        pair,
        candidate=replace(pair.candidate, repeats=sides[0]),
        baseline=replace(pair.baseline, repeats=sides[1]),
    )


def test_repeats_widen_an_interval_by_one_formula() -> None:
    values = normal(2, 60, seed=3) + 0.5
    plain = infer_family(family(values))
    means = (np.array([0.1, 0.2, 0.4]), np.array([0.0, 0.1]))
    rows = family(values)
    repeated = infer_family([with_means(rows[0], *means), rows[1]])[0]
    added = means[0].var(ddof=1) / 3 + means[1].var(ddof=1) / 2
    width = stats.t.ppf(1 - 0.05 / 2, 3) * math.sqrt(added)
    expected = math.hypot(plain[0].mean - plain[0].low, width)
    assert repeated.mean - repeated.low == pytest.approx(expected, abs=1e-9)
    assert repeated.p > plain[0].p
    [at_p] = infer_family([with_means(rows[0], *means)], alpha=repeated.p * 1.001)[:1]
    [alone] = infer_family([with_means(rows[0], *means)])
    assert alone.p <= repeated.p
    assert at_p.low > 0


def test_repeats_of_several_rows_share_alpha() -> None:
    values = normal(2, 60, seed=3)
    means = (np.array([0.1, 0.2, 0.4]),)
    rows = [with_means(row, *means) for row in family(values)]
    [first, _] = infer_family(rows)
    width = stats.t.ppf(1 - 0.05 / 4, 2) * means[0].std(ddof=1) / math.sqrt(3)
    assert first.repeat_width == pytest.approx(width, abs=1e-9)


def test_shares_of_draws_are_those_of_the_means() -> None:
    [row] = infer_family(family(normal(1, 50, seed=2) + 0.2))
    assert 0.02 < row.loss_share < 0.2
    assert row.loss_share == pytest.approx(stats.norm.cdf(-row.mean / row.error), abs=0.02)
    bound = row.lower_bound(0.05)
    assert row.low < bound < row.mean
    assert row.share_above(0.0, 0.0, 0.05) <= 0.05
    assert row.share_above(-10.0, 0.0, 0.05) == 1.0
    assert row.share_shown_below(0.0, 0.0) <= 0.026
    assert row.detectable == pytest.approx((row.critical[0] + 0.8416) * row.error, rel=1e-3)


def test_another_seed_draws_other_units() -> None:
    rows = family(normal(1, 50, seed=2))
    ends = {infer_family(rows, seed=seed)[0].low for seed in (0, 1)}
    assert len(ends) == 2
    assert max(ends) - min(ends) < 0.05


def measured(values: dict[str, FloatArray]) -> dict[str, MeasuredValues]:
    return {name: MeasuredValues(each) for name, each in values.items()}


def test_rivals_are_the_clearly_better_systems() -> None:
    base, noise = normal(60, seed=1), 0.3 * normal(4, 60, seed=2)
    values = {
        "best": base + 1,
        "twin": base + 1,
        "near": base + 0.98 + noise[0],
        "far": base + noise[1],
        "few": base + np.where(np.arange(60) < 3, 0.1, 0.0) + 1,
    }
    rivals = find_rivals(measured(values), queries(60))
    assert rivals["far"] == {"best", "twin", "near", "few"}
    assert all(not rivals[name] for name in ("best", "twin", "near", "few"))
    backwards = find_rivals(measured(dict(reversed(values.items()))), queries(60))
    assert backwards == rivals


def test_rivals_need_more_where_repeats_differ() -> None:
    base = normal(60, seed=1)
    values = {"a": base, "b": base + 0.3 * normal(60, seed=2) + 0.3}
    assert find_rivals(measured(values), queries(60)) == {"a": {"b"}, "b": frozenset()}
    repeats = values["b"] + np.array([[-0.25], [0.25]])
    unsteady = {**measured(values), "b": MeasuredValues(values["b"], repeats)}
    shaky = find_rivals(unsteady, queries(60))
    assert shaky == {"a": frozenset(), "b": frozenset()}
