"""Means, bounds, p-values and powers against slow and obvious versions of themselves."""

from __future__ import annotations

from itertools import product
from math import comb, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from fusion_bench.data.ordering import FloatArray
from fusion_bench.gate.check_statistics import Contest, weigh
from fusion_bench.gate.power import powers
from fusion_bench.stats.intervals import clopper_pearson, estimate
from fusion_bench.stats.randomization_tests import randomisation_p

values = st.integers(-4, 4).map(lambda n: n / 4)


def contest(
    difference: FloatArray, groups: list[int] | None = None, *, name: str = "RR", m: float = 0.05
) -> Contest:
    size = len(difference)
    codes = np.arange(size) if groups is None else np.array(groups)
    return Contest("c", None, name, m, np.zeros(size), np.asarray(difference, float), codes)


@given(st.lists(values, min_size=2, max_size=8), st.data())
@settings(max_examples=25, deadline=None)
def test_the_one_sided_p_is_the_share_of_all_flips(rows: list[float], data: st.DataObject) -> None:
    groups = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    labels = sorted(set(groups))
    sums = [sum(d for d, g in zip(rows, groups, strict=True) if g == label) for label in labels]
    flips = [
        sum(s * d for s, d in zip(signs, sums, strict=True))
        for signs in product((1, -1), repeat=len(sums))
    ]
    exact = np.mean([total <= sum(sums) + 1e-9 for total in flips])
    [p] = randomisation_p(
        np.array([rows]), np.array(groups), resamples=4000, seed=3, alternative="less"
    )
    assert abs(p - exact) < 0.04  # five standard errors of 4,000 draws


def test_only_a_loss_makes_a_one_sided_p_small() -> None:
    rows = np.array([[-0.1] * 20, [0.1] * 20, [0.0] * 20])
    p = randomisation_p(rows, resamples=2000, alternative="less")
    assert p[0] == 1 / 2001
    assert p[1:].tolist() == [1, 1]


def test_the_bound_is_the_one_sided_t_bound_by_group() -> None:
    random = np.random.default_rng(5)
    difference, groups = random.normal(0, 0.2, 60), (np.arange(60) // 3).tolist()
    [found] = weigh([contest(difference, groups)])
    error = estimate(difference, np.array(groups)).standard_error
    assert found.low == pytest.approx(difference.mean() - student.ppf(0.95, 19) * error)
    assert found.groups == 20


def test_holm_goes_over_all_checks_and_faults_keep_their_place() -> None:
    random = np.random.default_rng(5)
    bad = contest(random.normal(-0.1, 0.2, 60), name="a")
    noise = contest(random.normal(0, 0.2, 60), name="b")
    alone, two, three = (
        weigh(family)[0]
        for family in ([bad], [bad, noise], [bad, noise, contest(np.array([nan]), name="c")])
    )
    assert alone.p == alone.p_holm == two.p == three.p
    assert two.p_holm == pytest.approx(2 * alone.p)
    assert three.p_holm == pytest.approx(3 * alone.p)
    assert alone.verdict == "regressed"


def test_float_noise_is_no_change() -> None:
    [found] = weigh([contest(np.full(30, -1e-15))])
    assert (found.changed, found.losses, found.p, found.verdict) == (0, 0, 1, "pass")
    assert found.detectable is None
    assert found.false_pass is None


@pytest.mark.parametrize("bad", [nan, np.inf, -np.inf])
def test_what_is_no_number_is_a_fault(bad: float) -> None:
    [found] = weigh([contest(np.array([0.1, bad, 0.2]))])
    assert found.fault == "1 of 3 values of the candidate are not finite"
    assert found.verdict == "inconclusive"
    assert np.isnan([found.difference, found.low, found.p_holm]).all()


def test_one_group_never_passes_by_its_bound() -> None:
    [found] = weigh([contest(np.full(20, 0.3), [0] * 20)])
    assert np.isnan(found.low)
    assert found.verdict == "inconclusive"
    assert found.detectable is None


# ── powers


def slow(difference: FloatArray, m: float, level: float, draws: int) -> tuple[float, float]:
    """Smallest drop found four times in five, and share of false passes, one run at a time."""
    random = np.random.default_rng(11)
    centred = difference - difference.mean()
    size, needed, passes = len(centred), [], 0
    for _ in range(draws):
        sample = random.choice(centred, size)
        error = sample.std(ddof=1) / np.sqrt(size)
        needed.append(sample.mean() + max(m, student.ppf(1 - level, size - 1) * error))
        passes += sample.mean() - m - student.ppf(0.95, size - 1) * error > -m
    return float(np.quantile(needed, 0.8)), passes / draws


@pytest.mark.parametrize("m", [0.0, 0.02, 0.2])
def test_powers_are_those_of_the_slow_loop(m: float) -> None:
    difference = np.random.default_rng(2).exponential(0.2, 40) * -1
    [found] = powers(difference[None], None, [m], level=0.025)
    detectable, false_pass = slow(difference, m, 0.025, 4000)
    assert found.detectable == pytest.approx(detectable, rel=0.04)
    assert found.false_pass == pytest.approx(false_pass, abs=0.02)
    assert found.at(found.detectable or 0) == pytest.approx(0.8, abs=1e-3)
    assert found.at(0) <= 0.05
    assert 0.999 < found.at(10) < 1


def test_a_skewed_loss_makes_a_false_pass_likelier() -> None:
    difference = np.zeros(60)
    difference[:12] = -0.01
    difference[0] = -1.0
    [found] = powers(difference[None], None, [0.02], level=0.05)
    assert found.false_pass is not None
    assert found.false_pass > 0.3


def test_groups_count_as_one() -> None:
    random = np.random.default_rng(2)
    once = random.normal(0, 0.2, 30)
    twice = np.repeat(once, 2)
    [alone] = powers(once[None], None, [0.0], level=0.05)
    [grouped] = powers(twice[None], np.repeat(np.arange(30), 2), [0.0], level=0.05)
    assert grouped.detectable == pytest.approx(alone.detectable)
    assert grouped.false_pass == pytest.approx(alone.false_pass)


def test_where_no_set_of_signs_is_rare_enough_nothing_is_detectable() -> None:
    difference = np.tile([-0.3, 0.2, -0.1, 0.1], 4)
    groups = np.arange(16) % 4
    [found] = powers(difference[None], groups, [0.01], level=0.05)
    assert found.detectable is None
    assert 0 < found.at(1e9) < 1e-3
    [p] = randomisation_p(np.full((1, 16), -0.3), groups, resamples=4000, alternative="less")
    assert p > 0.05
    [enough] = powers(difference[None], np.arange(16) % 5, [0.01], level=0.05)
    assert enough.detectable is not None


def test_few_changed_queries_go_by_the_mean() -> None:
    difference = np.zeros(50)
    difference[:4] = [0.5, -0.5, 0.5, -0.5]
    [found] = powers(difference[None], None, [0.01], level=0.05)
    assert found.false_pass is not None
    assert 0.5 < found.false_pass < 0.8  # a tie of the mean with −m passes
    assert found.detectable is not None
    assert 0.01 < found.detectable < 0.04


# ── exact intervals


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
