"""Power of the rule against a slow and obvious version of itself, and the warning about it."""

from pathlib import Path

import numpy as np
import pytest
from fusion_bench.gate.power import compute_power
from fusion_bench.gate.self_test.error_rates import check_power
from scipy.stats import t as student

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.gate.checks import Check, run_checks
from fusion_bench.gate.page import power_warning
from fusion_bench.gate.verdict import CheckResult
from fusion_bench.stats.corrections import randomization_p_values
from fusion_bench.stats.intervals import estimate_mean, t_quantile
from tests.gate.cases import EXPERIMENT, gate_inputs
from tests.texts import names_in_order
from tests.tiny import edit


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


def run_check(difference: list[float] | np.ndarray, m: float, groups: int = 1) -> CheckResult:
    """What the gate finds for these differences."""
    size = len(difference)
    codes = np.arange(size) // groups
    [result] = run_checks([Check("c", None, "RR", m, np.zeros(size), np.array(difference), codes)])
    return result


def test_the_needed_queries_pass_with_the_stated_power() -> None:
    rng = np.random.default_rng(3)
    result = run_check(rng.normal(0, 0.2, 60), 0.05)
    assert result.needed is not None
    assert result.needed.low is not None
    assert result.sd is not None
    values = rng.normal(0, result.sd, (4000, result.needed.queries))
    errors = values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
    bounds = values.mean(axis=1) - t_quantile(values.shape[1] - 1, 0.95) * errors
    assert 0.78 < (bounds > -0.05).mean() < 0.85


@pytest.mark.parametrize(
    ("difference", "m"),
    [
        ([0.5, -0.5] * 20, 0.4),  # the tolerance is greater than the noise
        ([0.0] * 60, 0.0),
    ],
)
def test_no_warning(difference: list[float], m: float) -> None:
    assert power_warning(run_check(difference, m)) is None


def test_no_number_of_queries_suffices_for_a_tolerance_of_0() -> None:
    result = run_check([0.5, -0.5] * 20, 0.0)
    assert result.needed is None
    assert "no number suffices" in str(power_warning(result))


def test_groups_are_named() -> None:
    difference = np.random.default_rng(3).normal(0, 0.2, 60)
    assert "60 queries in 20 groups" in str(power_warning(run_check(difference, 0.01, groups=3)))


def test_an_update_warns_from_the_differences_of_two_systems(root: Path) -> None:
    warnings = check_power(gate_inputs(root))
    assert names_in_order(warnings[0], "mine / RR@10: ", "(80 % power) 0.0")
    assert "live and plain" in warnings[0]
    edit(root, EXPERIMENT, "plain: {runs: [a, b]}", "plain: {runs: [gone]}")
    assert check_power(gate_inputs(root)) == ()  # no spread is known


def test_an_experiment_of_one_system_warns_of_nothing(root: Path) -> None:
    edit(root, EXPERIMENT, "  plain: {runs: [a, b]}\n", "")
    edit(root, EXPERIMENT, "baseline: plain\n", "baseline: live\n")
    assert check_power(gate_inputs(root)) == ()
