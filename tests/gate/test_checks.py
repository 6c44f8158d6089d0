"""Means, bounds, p-values and powers against slow and obvious versions of themselves."""

from itertools import product
from math import nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from fusion_bench.data.ordering import FloatArray
from fusion_bench.gate.checks import Check, run_checks
from fusion_bench.stats.corrections import randomization_p_values
from fusion_bench.stats.intervals import estimate_mean
from tests.texts import names_in_order

values = st.integers(-4, 4).map(lambda n: n / 4)


def contest(
    difference: FloatArray, groups: list[int] | None = None, *, name: str = "RR", m: float = 0.05
) -> Check:
    size = len(difference)
    codes = np.arange(size) if groups is None else np.array(groups)
    return Check("c", None, name, m, np.zeros(size), np.asarray(difference, float), codes)


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
    [p] = randomization_p_values(np.array([rows]), np.array(groups), seed=3, alternative="less")
    assert p == exact


def test_only_a_loss_makes_a_one_sided_p_small() -> None:
    rows = np.array([[-0.1] * 20, [0.1] * 20, [0.0] * 20])
    p = randomization_p_values(rows, resamples=2000, alternative="less")
    assert p[0] == 1 / 2001
    assert p[1:].tolist() == [1, 1]


def test_the_bound_is_the_one_sided_t_bound_by_group() -> None:
    random = np.random.default_rng(5)
    difference, groups = random.normal(0, 0.2, 60), (np.arange(60) // 3).tolist()
    [found] = run_checks([contest(difference.clip(-1, 1), groups)])
    error = estimate_mean(difference, np.array(groups)).standard_error
    assert found.t_bound == pytest.approx(difference.mean() - student.ppf(0.95, 19) * error)
    p = student.cdf((difference.mean() + 0.05) / error, 19)
    assert found.p_regressed == pytest.approx(p)
    assert found.groups == 20


def test_holm_goes_over_all_checks_and_faults_keep_their_place() -> None:
    random = np.random.default_rng(5)
    bad = contest(random.normal(-0.1, 0.2, 60), name="a")
    noise = contest(random.normal(0, 0.2, 60), name="b")
    alone, two, three = (
        run_checks(family)[0]
        for family in ([bad], [bad, noise], [bad, noise, contest(np.array([nan]), name="c")])
    )
    assert alone.p_fell is not None
    assert alone.p_regressed is not None
    assert two.p_fell == pytest.approx(2 * alone.p_fell)
    assert three.p_fell == pytest.approx(3 * alone.p_fell)
    assert two.p_regressed == pytest.approx(2 * alone.p_regressed)
    assert alone.status in {"fell", "regressed"}


def test_several_candidates_share_the_level() -> None:
    difference = np.random.default_rng(5).normal(-0.03, 0.2, 60)
    [one] = run_checks([contest(difference)], resamples=2000)
    [ten] = run_checks([contest(difference)], runs=10, resamples=2000)
    assert one.p_fell is not None
    assert ten.p_fell == min(1, 10 * one.p_fell)
    assert ten.t_bound is not None
    error = estimate_mean(difference).standard_error
    assert ten.t_bound == pytest.approx(difference.mean() - student.ppf(0.995, 59) * error)


def test_float_noise_is_no_change() -> None:
    [found] = run_checks([contest(np.full(30, -1e-15))])
    assert (found.changed, found.losses, found.p_fell, found.status) == (0, 0, 1, "unchanged")
    assert found.min_detectable_drop is None
    assert found.false_pass_rate is None


@pytest.mark.parametrize("bad", [nan, np.inf, -np.inf])
def test_what_is_no_number_is_a_fault(bad: float) -> None:
    [found] = run_checks([contest(np.array([0.1, bad, 0.2]))])
    assert names_in_order(str(found.error), "1 of 3", "candidate", "not finite")
    assert found.status == "inconclusive"
    assert (found.difference, found.t_bound, found.p_fell) == (None, None, None)


def test_one_group_never_passes_by_its_bound() -> None:
    [found] = run_checks([contest(np.full(20, 0.3), [0] * 20)])
    assert found.t_bound is None
    assert found.status == "inconclusive"
    assert found.min_detectable_drop is None


def test_five_lost_and_four_won_of_a_hundred_is_no_regression() -> None:
    difference = np.zeros(100)
    difference[:9] = [-1.0] * 5 + [1.0] * 4
    [found] = run_checks([contest(difference, m=0.005)])
    assert found.status == "inconclusive"
    assert found.p_fell == 0.5  # exact: of 2^9 flips, half reach the sum


def test_a_change_of_few_queries_passes_on_these_queries_only() -> None:
    difference = np.zeros(400)
    difference[:2] = [-0.1, 0.1]
    [few] = run_checks([contest(difference, m=0.005)])
    [many] = run_checks([contest(np.tile(difference, 3), m=0.005)])
    assert (few.status, many.status) == ("pass on these queries", "pass")
