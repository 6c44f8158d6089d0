"""Gains by hand, and the verdicts of one run as a family."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fusion_bench.tune.gains import PairedValues, estimate_needed, judge_family, paired_gain
from fusion_bench.tune.trial_selection import decide_verdict

RNG = np.random.default_rng(2)
DEFAULT, TUNED = RNG.random(40), RNG.random(40)
NAMES = tuple(f"q{i}" for i in range(40))


def test_the_gain_is_the_paired_t_interval_without_groups() -> None:
    result = paired_gain(TUNED, DEFAULT)
    d = TUNED - DEFAULT
    reach = stats.t.ppf(0.975, 39) * d.std(ddof=1) / math.sqrt(40)
    assert (result.low, result.high) == pytest.approx((d.mean() - reach, d.mean() + reach))
    assert result.sd == pytest.approx(d.std(ddof=1))
    assert (result.wins, result.losses) == ((d > 0).sum(), (d < 0).sum())
    assert result.queries == result.groups == 40
    assert result.p >= stats.ttest_1samp(d, 0).pvalue - 1e-12


def test_a_few_large_gains_have_no_smaller_p_than_students() -> None:
    tuned = np.zeros(30)
    tuned[:6] = [0.9, 0.01, 0.01, 0.01, 0.01, 0.01]
    result = paired_gain(tuned, np.zeros(30))
    assert result.p == pytest.approx(stats.ttest_1samp(tuned, 0).pvalue)
    assert result.p > 0.25, "all six are wins, which the signs alone would call .03"


def test_repeated_queries_in_a_group_tell_nothing_new() -> None:
    alone = paired_gain(TUNED[:30], np.zeros(30))
    repeated = paired_gain(np.repeat(TUNED[:30], 4), np.zeros(120), np.repeat(np.arange(30), 4))
    assert (repeated.low, repeated.high) == pytest.approx((alone.low, alone.high))
    assert alone.sd is not None
    assert repeated.sd == pytest.approx(2 * alone.sd), "four of them count as one"
    assert repeated.p == pytest.approx(alone.p)


def test_float_noise_is_no_gain() -> None:
    base = np.full(10, 0.3)
    result = paired_gain(base + 1e-15, base)
    assert (result.difference, result.p, result.ties) == (0.0, 1.0, 10)
    assert decide_verdict(result) == "too few queries", "nothing changed"


def test_the_verdicts_of_one_run_are_one_family() -> None:
    row = PairedValues(DEFAULT + 0.02 + 0.05 * (TUNED - 0.5), DEFAULT, NAMES)
    other = PairedValues(TUNED, DEFAULT, NAMES)
    [alone] = judge_family([row])
    first, second = judge_family([row, other])
    assert alone.low is not None
    assert first.low is not None
    assert (alone.p <= 0.05) == (alone.low > 0)
    assert alone.p <= first.p
    assert first.low < alone.low < alone.difference == first.difference
    assert second.difference == pytest.approx((TUNED - DEFAULT).mean())


def test_the_needed_queries_are_those_of_the_rule() -> None:
    row = PairedValues(TUNED, DEFAULT, NAMES)
    [result] = judge_family([row])
    needed = estimate_needed(row, result, 0.01)
    assert needed is not None
    d = TUNED - DEFAULT
    assert needed.queries == pytest.approx((2.8 * d.std(ddof=1) / 0.01) ** 2, rel=0.1)
    assert needed.low is not None
    assert needed.high is not None
    assert needed.low < needed.queries < needed.high
    assert estimate_needed(row, result, 0.0) is None
    same = PairedValues(DEFAULT, DEFAULT, NAMES)
    assert estimate_needed(same, judge_family([same])[0], 0.01) is None


@pytest.mark.parametrize("is_bounded", [False, True])
def test_intervals_of_bounded_measures_stay_within_their_bounds(is_bounded: bool) -> None:
    tuned, default = np.array([1.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0])
    result = paired_gain(tuned, default, is_bounded=is_bounded)
    assert result.low is not None
    assert result.high is not None
    assert (result.low >= -1, result.high <= 1) == (is_bounded, is_bounded)
    names = tuple("abcdefghijkl")
    wide = PairedValues(np.tile([1.0, 0.0], 6), np.tile([0.0, 1.0], 6), names, is_bounded)
    [judged] = judge_family([wide], alpha=0.001)
    assert judged.low is not None
    assert (judged.low >= -1) == is_bounded


def test_of_a_few_changed_queries_no_interval_is_finite() -> None:
    tuned = DEFAULT.copy()
    tuned[:4] += 0.2
    [result] = judge_family([PairedValues(tuned, DEFAULT, NAMES)])
    assert (result.low, result.high, result.changed) == (None, None, 4)
    assert result.p == pytest.approx(2 / 16)
    assert decide_verdict(result) == "too few queries"
