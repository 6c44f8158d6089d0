"""Power of the rule against a slow and obvious version of itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.gate.power import compute_power
from fusion_bench.stats.corrections import randomization_p_values
from fusion_bench.stats.intervals import estimate_mean


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
    [found] = compute_power(difference[None], None, [m], level=0.025)
    detectable, false_pass = slow(difference, m, 0.025, 4000)
    assert found.min_detectable_drop == pytest.approx(detectable, rel=0.04)
    assert found.false_pass_rate == pytest.approx(false_pass, abs=0.02)
    assert found.power_at(found.min_detectable_drop or 0) == pytest.approx(0.8, abs=1e-3)
    assert found.power_at(0) <= 0.05
    assert 0.999 < found.power_at(10) < 1


def test_a_skewed_loss_makes_a_false_pass_likelier() -> None:
    difference = np.zeros(60)
    difference[:12] = -0.01
    difference[0] = -1.0
    [found] = compute_power(difference[None], None, [0.02], level=0.05)
    assert found.false_pass_rate is not None
    assert found.false_pass_rate > 0.3


def test_groups_count_as_one() -> None:
    random = np.random.default_rng(2)
    once = random.normal(0, 0.2, 30)
    twice = np.repeat(once, 2)
    [alone] = compute_power(once[None], None, [0.0], level=0.05)
    [grouped] = compute_power(twice[None], np.repeat(np.arange(30), 2), [0.0], level=0.05)
    assert grouped.min_detectable_drop == pytest.approx(alone.min_detectable_drop)
    assert grouped.false_pass_rate == pytest.approx(alone.false_pass_rate)


def test_where_no_set_of_signs_is_rare_enough_nothing_is_detectable() -> None:
    difference = np.tile([-0.3, 0.2, -0.1, 0.1], 4)
    groups = np.arange(16) % 4
    [found] = compute_power(difference[None], groups, [0.01], level=0.05)
    assert found.min_detectable_drop is None
    assert 0 < found.power_at(1e9) < 1e-3
    [p] = randomization_p_values(np.full((1, 16), -0.3), groups, resamples=4000, alternative="less")
    assert p > 0.05
    [enough] = compute_power(difference[None], np.arange(16) % 5, [0.01], level=0.05)
    assert enough.min_detectable_drop is not None


def slow_swaps(difference: FloatArray, groups: IntArray, m: float, runs: int) -> list[float]:
    """Shares of the runs with swapped labels: either pass, and alarms, one run at a time."""
    random, passes, alarms = np.random.default_rng(4), 0, 0
    for _ in range(runs):
        swapped = random.choice([-1.0, 1.0], 60)[groups] * difference
        estimate = estimate_mean(swapped, groups, alpha=0.1)
        passes += estimate.low > -m
        [p] = randomization_p_values(swapped[None], groups, resamples=500, alternative="less")
        alarms += estimate.mean < -m and p <= 0.05
    return [passes / runs, alarms / runs]


@pytest.mark.parametrize("size", [1, 3])
def test_the_rates_without_a_difference_are_those_of_the_slow_loop(size: int) -> None:
    random = np.random.default_rng(4)
    groups = np.arange(60) // size
    difference = np.where(random.random(60) < 0.5, random.normal(0, 0.1, 60), 0)
    [power] = compute_power(difference[None], groups, [0.02], level=0.05)
    passes, alarms = slow_swaps(difference, groups, 0.02, 200)
    assert power.small_pass_rate == pytest.approx(passes, abs=0.1)
    assert power.alarm_rate == pytest.approx(alarms, abs=0.06)


def test_pass_and_small_pass_are_told_apart() -> None:
    difference = np.zeros(900)
    difference[:3] = 0.01
    many, few = (
        compute_power(row[None], None, [0.005], level=0.05)[0]
        for row in (difference, difference[:300])
    )
    assert (many.pass_rate, many.small_pass_rate, many.alarm_rate) == (1, 0, 0)
    assert (few.pass_rate, few.small_pass_rate, few.alarm_rate) == (0, 1, 0)
