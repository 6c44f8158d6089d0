"""Tests by sign flips."""

import itertools
import math
import operator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.stats.corrections import (
    EXACT_GROUPS,
    FIXED_POINT_BITS,
    TIE_TOLERANCE,
    adjust_holm,
    default_resamples,
    fixed_point,
    randomization_p_values,
)
from fusion_bench.stats.intervals import estimate_mean, random_words
from fusion_bench.stats.sign_flips import draw_flips, enumerate_flips, hash_group_ids
from tests.stats.samples import GRADES, binomial_bounds, clustered, normal


def test_a_sign_depends_on_seed_draw_and_group_alone() -> None:
    keys = hash_group_ids(7, ["a", "b", "c"])
    assert keys.tolist() == hash_group_ids(7, ["c", "b", "a"])[::-1].tolist()
    assert (hash_group_ids(8, ["a", "b", "c"]) != keys).all()
    whole = draw_flips(keys, 0, 300)
    assert np.array_equal(whole[1:2], draw_flips(keys[1:2], 0, 300))
    for start, stop in ((0, 1), (63, 65), (64, 128), (100, 300)):
        assert np.array_equal(draw_flips(keys, start, stop), whole[:, start:stop])


def test_signs_are_fair_and_unrelated() -> None:
    flips = draw_flips(hash_group_ids(1, [f"q{i}" for i in range(200)]), 0, 4_000)
    assert abs(flips.mean() - 0.5) < 5 * 0.5 / np.sqrt(flips.size)
    correlations = np.asarray(np.corrcoef(flips))[np.triu_indices(200, 1)]
    assert np.abs(correlations).max() < 6 / np.sqrt(4_000)
    draws = np.asarray(np.corrcoef(flips[:, :200].T))[np.triu_indices(200, 1)]
    assert np.abs(draws).max() < 6 / np.sqrt(200)


def test_the_stream_never_changes() -> None:
    keys = hash_group_ids(7, ["q1", "q2"])
    assert keys.tolist() == [0xA4C28416F5E01E32, 0x3D473A6C23BEEEE4]
    flips = ["".join(map(str, row)) for row in draw_flips(keys, 0, 16).astype(int).tolist()]
    assert flips == ["0001111101010100", "1000110011011100"]


def test_every_assignment_once() -> None:
    flips = enumerate_flips(4)
    assert flips.shape == (4, 16)
    assert len({tuple(column) for column in flips.T}) == 16
    assert flips[:, -1].tolist() == [1, 1, 1, 1]
    assert enumerate_flips(0).shape == (0, 1)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ConfigError, match="seed"):
        hash_group_ids(-1, ["a"])


# ── the randomisation test against an obvious loop, exact enumeration and its own level


def group_sums(row: FloatArray, codes: list[int]) -> dict[int, Fraction]:
    """The sum of each group, in order of first appearance."""
    sums: dict[int, Fraction] = {}
    for value, code in zip(row.tolist(), codes, strict=True):
        sums[code] = sums.get(code, Fraction(0)) + Fraction(value)
    return sums


def changed_sums(sums: dict[int, Fraction]) -> list[Fraction]:
    """Those that are more than float noise."""
    return [value for value in sums.values() if abs(value) > 1e-12]


def loop_p(row: FloatArray, codes: list[int], resamples: int, seed: int) -> Fraction:
    """The definition, one resample at a time, in rational arithmetic, from the same bits."""
    sums = group_sums(row, codes)
    source = np.random.PCG64(seed)
    observed = abs(sum(sums.values(), Fraction(0)))
    threshold = observed - Fraction(1e-12) * sum(abs(Fraction(v)) for v in row.tolist())
    reached = 0
    changed = changed_sums(sums)
    if len(changed) <= EXACT_GROUPS:
        flips = list(itertools.product((1, -1), repeat=len(changed)))
        totals = (sum(map(operator.mul, signs, changed), Fraction(0)) for signs in flips)
        return Fraction(sum(abs(total) >= threshold for total in totals), len(flips))
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
    largest = data.draw(st.sampled_from([7, 69]))
    codes = data.draw(st.lists(st.integers(0, largest), min_size=queries, max_size=queries))
    seed = data.draw(st.integers(0, 2**32))
    changed = [len(changed_sums(group_sums(row, codes))) for row in rows]
    assume(all(count <= 8 or count > EXACT_GROUPS for count in changed))  # others are slow
    found = randomization_p_values(rows, np.array(codes), resamples=60, seed=seed)
    assert found.tolist() == [float(loop_p(row, codes, 60, seed)) for row in rows]


@pytest.mark.parametrize("queries", [3, 8, 12])
def test_p_agrees_with_every_sign_vector(queries: int) -> None:
    row = np.round(normal(queries, seed=queries) + 0.4, 1)  # a grid: many sums tie
    exact = float(
        stats.permutation_test(
            (row,), np.sum, permutation_type="samples", n_resamples=2**queries
        ).pvalue
    )
    found = randomization_p_values(row[None])[0]
    assert found == pytest.approx(exact, abs=1e-12)


def test_equal_sums_of_unequal_terms_tie() -> None:
    # ±0.1 ±0.2 ∓0.3: 0.1 + 0.2 is not 0.3 in float64, yet all of these sums are 0 or 0.6 or …
    found = randomization_p_values(np.array([[0.1, 0.2, -0.3]]), resamples=1000)
    assert found[0] == 1.0
    scaled = np.array([[0.1, 0.2, 0.3, 0.4, -0.5]])
    assert randomization_p_values(scaled, resamples=999) == randomization_p_values(
        10 * scaled, resamples=999
    )


def test_sums_are_whole_units_and_the_slack_covers_their_rounding() -> None:
    rows, groups = normal(2, 9000) / 3, np.arange(9000) // 2
    units, slack = fixed_point(rows, groups, 4500)
    assert (units == np.rint(units)).all()
    assert (np.abs(units).sum(axis=0) < 2.0**51).all()  # twice that is still exact in float64
    for column, row in enumerate(rows):
        size = sum(abs(Fraction(v)) for v in row.tolist())
        unit = Fraction(2) ** (math.frexp(float(size))[1] - FIXED_POINT_BITS)
        share = Fraction(TIE_TOLERANCE) * size / unit
        assert share + 4500 <= slack[column] <= share + 4501


@pytest.mark.parametrize("scale", [2.0**-1000, 1e-300, 1e-9, 1.0, 1e200])
def test_scale_of_the_values_changes_no_p(scale: float) -> None:
    row = normal(1, 20)
    assert randomization_p_values(row * scale, resamples=500) == randomization_p_values(
        row, resamples=500
    )


def test_p_depends_on_no_other_row() -> None:
    rows = normal(6, 130) + 0.1
    whole = randomization_p_values(rows, resamples=1234, seed=5)
    order = [3, 1, 5, 0, 4, 2]
    assert (
        randomization_p_values(rows[order], resamples=1234, seed=5).tolist()
        == whole[order].tolist()
    )
    assert randomization_p_values(rows[2:3], resamples=1234, seed=5)[0] == whole[2]
    assert randomization_p_values(-rows, resamples=1234, seed=5).tolist() == whole.tolist()
    assert randomization_p_values(rows, resamples=1234, seed=6).tolist() != whole.tolist()


def test_p_of_a_seed_never_changes() -> None:
    """Raw PCG64 words and integer sums: these are the same on every machine and every version."""
    rows = (np.arange(60).reshape(2, 30) * 7 % 11 - 4) / 8
    counts = randomization_p_values(rows, resamples=10_000, seed=7) * 10_001
    assert np.rint(counts).tolist() == [901, 1224]


def test_p_is_never_0_and_is_1_without_a_difference() -> None:
    rows = np.array([np.ones(60), np.zeros(60)])
    assert randomization_p_values(rows, resamples=10_000).tolist() == [1 / 10_001, 1.0]
    assert (
        randomization_p_values(np.ones((1, 5)), np.zeros(5, dtype=np.int64), resamples=99)[0] == 1.0
    )


def test_default_resamples_grow_with_the_family() -> None:
    assert [default_resamples(c) for c in (0, 1, 50, 51)] == [10_000, 10_000, 10_000, 10_200]
    row = np.ones((51, 30))
    assert randomization_p_values(row)[0] == pytest.approx(1 / 10_201, rel=1e-12)


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_the_test_holds_its_level(alpha: float) -> None:
    skewed = np.random.default_rng(8).choice([-1.0, 1.0], (4000, 50)) * np.abs(normal(4000, 50))
    rejected = int((randomization_p_values(skewed, resamples=2000, seed=3) <= alpha).sum())
    low, high = binomial_bounds(rejected, len(skewed))
    assert low <= alpha <= high


def test_flipping_groups_holds_the_level_where_flipping_queries_does_not() -> None:
    rows, groups = clustered(3000, 30, 4, seed=30)
    by_group = int((randomization_p_values(rows, groups, resamples=2000) <= 0.05).sum())
    low, high = binomial_bounds(by_group, len(rows))
    assert low <= 0.05 <= high
    naive = int((randomization_p_values(rows, resamples=2000) <= 0.05).sum())
    assert naive > 0.2 * len(rows)


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
    found = adjust_holm(array)
    assert found.tolist() == loop_holm(p_values)
    assert (found >= array).all()
    assert array.tolist() == p_values
    order = np.argsort(array, kind="stable")
    assert (np.diff(found[order]) >= 0).all()


def test_holm_worked() -> None:
    found = adjust_holm(np.array([0.01, 0.04, 0.03, 0.005]))
    assert found.tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])


@pytest.mark.parametrize("wrong", [math.nan, -0.1, 1.1, math.inf])
def test_holm_refuses_what_is_no_probability(wrong: float) -> None:
    with pytest.raises(DataError, match="p-value 1"):
        adjust_holm(np.array([0.5, wrong]))


# ── draws and blocks, and what is refused


@pytest.mark.parametrize("row_bytes", [1 << 22, 1 << 15, 5_000])
def test_the_size_of_a_block_changes_no_word(row_bytes: int) -> None:
    whole = np.concatenate(list(random_words(5, 1234, 3, row_bytes=1)))
    blocks = list(random_words(5, 1234, 3, row_bytes=row_bytes))
    assert len(blocks) > 1
    assert np.concatenate(blocks).tolist() == whole.tolist()


def test_what_cannot_be_is_refused() -> None:
    values = normal(4)
    for alpha in (0.0, 1.0, math.nan):
        with pytest.raises(ConfigError, match="alpha"):
            estimate_mean(values, alpha=alpha)
    with pytest.raises(ConfigError, match="dimension"):
        randomization_p_values(values)
    with pytest.raises(ConfigError, match="code per query"):
        estimate_mean(values, np.arange(3))
    with pytest.raises(ConfigError, match="resamples"):
        randomization_p_values(values[None], resamples=0)
    with pytest.raises(ConfigError, match="seed"):
        randomization_p_values(normal(1, 40), seed=-1)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_numbers_that_are_none_are_refused(wrong: float) -> None:
    with pytest.raises(DataError, match=r"values\[2\]"):
        estimate_mean(np.array([0.0, 1.0, wrong]))
    with pytest.raises(DataError, match=r"values\[0, 1\]"):
        randomization_p_values(np.array([[0.0, wrong]]))


def test_no_query_has_no_mean() -> None:
    with pytest.raises(DataError, match="least one query"):
        estimate_mean(np.array([]))
