"""Thresholds on a signal: each figure beside a slow form of its definition."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from fusion_bench.errors import DataError
from fusion_bench.stats.thresholds import (
    LEVEL,
    RISK,
    Share,
    adjust_holm,
    allowed_answers,
    count_needed,
    find_threshold,
    judge_signal,
    measure_separation,
    measure_share,
)

VALUES = st.one_of(st.sampled_from([0.0, 1.0, 2.0]), st.floats(-9, 9), st.just(math.nan))


@pytest.mark.parametrize(("share", "needed"), [(0.10, 29), (0.05, 59), (0.5, 5)])
def test_fewer_queries_give_no_threshold(share: float, needed: int) -> None:
    assert count_needed(share) == needed
    with pytest.raises(DataError, match=f"at least {needed} are needed"):
        find_threshold(np.zeros(needed - 1), share)
    assert find_threshold(np.zeros(needed), share) == 0.0


@given(st.integers(1, 400), st.sampled_from([0.01, 0.05, 0.1, 0.3]))
def test_the_allowed_answers_are_the_most_that_the_binomial_permits(n: int, share: float) -> None:
    allowed = allowed_answers(n, share)
    assert allowed < 0 or binom.cdf(allowed, n, share) <= RISK
    assert binom.cdf(allowed + 1, n, share) > RISK


@given(st.lists(VALUES, min_size=29, max_size=120))
def test_no_more_than_the_allowed_ones_pass(signal: list[float]) -> None:
    values = np.array(signal)
    threshold = find_threshold(values, 0.10)
    allowed = allowed_answers(len(signal), 0.10)
    assert (values > threshold).sum() <= allowed
    lower = values[values < threshold]
    if len(lower):  # the next lower threshold would let too many pass
        assert (values > lower.max()).sum() > allowed


def test_nan_is_never_answered() -> None:
    values = np.array([math.nan] * 28 + [3.0, 4.0, 5.0])
    threshold = find_threshold(values, 0.10)
    assert threshold == 5.0
    assert find_threshold(np.full(60, math.nan), 0.10) == -math.inf


@given(st.lists(st.tuples(VALUES, st.booleans()), min_size=4, max_size=30))
def test_the_area_counts_pairs(rows: list[tuple[float, bool]]) -> None:
    rows = [*rows, (1.0, True), (0.5, False)]
    signal, answerable = np.array([v for v, _ in rows]), np.array([a for _, a in rows])
    keys = [str(n) for n in range(len(rows))]
    area = measure_separation(signal, answerable, keys).auc
    known = np.where(np.isnan(signal), -np.inf, signal)
    pairs = [*product(known[answerable], known[~answerable])]
    assert area == pytest.approx(sum((a > u) + (a == u) / 2 for a, u in pairs) / len(pairs))


def test_the_interval_is_that_of_placements() -> None:
    generator = np.random.default_rng(3)
    answerable = np.arange(90) < 50
    signal = generator.normal(size=90) + answerable
    found = measure_separation(signal, answerable, [str(n) for n in range(90)])
    a, u = signal[answerable], signal[~answerable]
    of_a = [np.mean(u < each) for each in a]
    of_u = [np.mean(a > each) for each in u]
    error = math.sqrt(np.var(of_a, ddof=1) / 50 + np.var(of_u, ddof=1) / 40)
    assert found.low == pytest.approx(found.auc - 1.959964 * error, abs=1e-6)
    assert found.high == pytest.approx(found.auc + 1.959964 * error, abs=1e-6)


def test_groups_that_repeat_a_query_widen_the_interval_alone() -> None:
    generator = np.random.default_rng(4)
    answerable = np.arange(40) < 20
    signal = generator.normal(size=40) + answerable
    alone = measure_separation(signal, answerable, [str(n) for n in range(40)])
    thrice = measure_separation(
        np.tile(signal, 3), np.tile(answerable, 3), [str(n % 40) for n in range(120)]
    )
    assert thrice.auc == pytest.approx(alone.auc)
    assert (thrice.low, thrice.high) == pytest.approx((alone.low, alone.high))


def test_few_units_are_permuted_exactly() -> None:
    signal = np.array([5.0, 4.0, 3.0, 2.0, 1.0, 0.5])
    answerable = np.array([True, True, False, True, False, False])
    found = measure_separation(signal, answerable, list("abcdef"))
    wins = []
    for chosen in combinations(range(6), 3):
        others = [n for n in range(6) if n not in chosen]
        wins.append(sum(signal[a] > signal[u] for a in chosen for u in others))
    observed = sum(signal[a] > signal[u] for a in np.flatnonzero(answerable) for u in (2, 4, 5))
    assert found.p == pytest.approx(np.mean(np.array(wins) >= observed))


def test_shuffled_labels_are_called_usable_no_more_often_than_stated() -> None:
    generator = np.random.default_rng(5)
    answerable, signal = np.arange(60) < 30, generator.normal(size=60)
    keys = [str(n) for n in range(60)]
    p = [measure_separation(signal, generator.permuted(answerable), keys).p for _ in range(60)]
    assert np.mean(np.array(p) <= LEVEL) < 0.1


def test_a_share_without_groups_has_the_interval_of_clopper_and_pearson() -> None:
    found = measure_share(np.array([True] * 9 + [False]), [str(n) for n in range(10)])
    assert (found.share, found.queries) == (0.9, 10)
    assert (found.low, found.high) == pytest.approx((0.5549839, 0.9974714))


def test_a_share_by_group_is_as_wide_as_its_groups_allow() -> None:
    counted = np.arange(60) < 40
    single = measure_share(counted, [str(n) for n in range(60)])
    grouped = measure_share(np.repeat(counted, 5), [str(n // 5) for n in range(300)])
    assert grouped.share == pytest.approx(single.share)
    assert 0.4 < grouped.low < single.low  # 60 units in either; bets assume less
    assert single.high < grouped.high < 0.9
    few = measure_share(np.repeat([True, False], 5), [str(n // 5) for n in range(10)])
    assert few.low < 0.05 < 0.95 < few.high
    assert measure_share(np.zeros(0, dtype=bool), []).share is None


def test_holm_steps_down() -> None:
    assert adjust_holm([0.04, 0.01, 0.5]) == pytest.approx([0.08, 0.03, 0.5])
    assert adjust_holm([0.01, 0.02, 0.0]) == pytest.approx([0.02, 0.02, 0.0])


@pytest.mark.parametrize(
    ("p", "low", "high", "said"),
    [
        (0.001, 0.55, 0.65, "usable"),
        (0.001, 0.05, 0.65, "not shown"),
        (0.2, 0.55, 0.65, "not shown"),
        (0.001, 0.30, 0.45, "cannot carry a threshold"),
    ],
)
def test_what_is_said_of_a_signal(p: float, low: float, high: float, said: str) -> None:
    kept = Share(share=(low + high) / 2, low=low, high=high, queries=100)
    assert judge_signal(p, kept, 0.10) == said
