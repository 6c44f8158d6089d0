"""Bounds and powers of checks with trials, by hand and by simulation."""

import math
from dataclasses import replace

import numpy as np
import pytest
from fusion_bench.gate.estimates import (
    CheckEstimates,
    CheckRepeats,
    add_repeat_gap,
    compute_repeat_power,
    estimate_check,
    p_at_least,
)

from fusion_bench.gate.checks import Check, run_checks
from fusion_bench.stats.intervals import MeanEstimate, t_quantile
from fusion_bench.stats.repeat_variance import RepeatSpread, RepeatTerm
from tests.stats.samples import binomial_bounds
from tests.stats.trial_cases import crossed

QUERIES = 50


def contest(before: int, after: int, *, trial_sd: float, seed: int, drop: float = 0.0) -> Check:
    """A check of made systems with so many trials a side; the candidate is lower by ``drop``."""
    shared = crossed(1, QUERIES, query_sd=0.1, residual_sd=0.0, seed=seed)
    sides = [
        (
            0.5
            + shared
            + crossed(count, QUERIES, query_sd=0.02, residual_sd=0.05, trial_sd=trial_sd, seed=s)
        )
        for count, s in ((before, 3 * seed + 1), (after, 3 * seed + 2))
    ]
    sides[1] = sides[1] - drop
    old, new = (side.mean(axis=0) for side in sides)
    each = [side if len(side) > 1 else None for side in sides]
    trials = CheckRepeats(each[0], each[1], borrows=True)
    return Check("c", None, "m", 0.01, old, new, np.arange(QUERIES), repeats=trials)


def test_the_bound_is_lowered_by_what_trials_move() -> None:
    spread = RepeatSpread(3, (0.0, 0.1, 0.2), between=0.01, within=0.0, within_freedom=98.0)
    lowered = add_repeat_gap(0.1, 0.06, (RepeatTerm(spread, 1 / 3),), alpha=0.05)
    gap = t_quantile(2, 0.95) * math.sqrt(0.01 / 3)
    assert lowered == pytest.approx(0.1 - math.hypot(0.04, gap))
    assert add_repeat_gap(0.1, 0.06, (), alpha=0.05) == 0.06
    assert math.isnan(add_repeat_gap(0.1, math.nan, (RepeatTerm(spread, 1 / 3),), alpha=0.05))


def alarms(check: Check) -> bool:
    """Whether the check falls below its tolerance, and the t test rejects that it does not fall."""
    estimate = estimate_check(
        check.difference, check.groups, check.repeat_terms, max_drop=check.max_drop, alpha=0.05
    ).estimate
    return estimate.mean < -check.max_drop and p_at_least(estimate, 0.0) <= 0.05


@pytest.mark.parametrize(("before", "after"), [(3, 3), (3, 1), (1, 3)])
def test_an_alarm_without_a_true_drop_is_rare(before: int, after: int) -> None:
    runs = 300
    count = sum(alarms(contest(before, after, trial_sd=0.05, seed=seed)) for seed in range(runs))
    assert binomial_bounds(count, runs)[0] <= 0.07


def test_the_gate_asks_both_tests() -> None:
    check = contest(3, 3, trial_sd=0.05, seed=7)
    plain = replace(check, repeats=None)
    with_repeats, without = (run_checks([each])[0] for each in (check, plain))
    assert check.repeat_terms
    assert with_repeats.p is not None
    assert without.p is not None
    assert with_repeats.p >= without.p
    assert with_repeats.t_bound is not None
    assert without.t_bound is not None
    assert with_repeats.t_bound < without.t_bound
    assert with_repeats.needed is None


@pytest.mark.parametrize(("after", "is_borrowed"), [(1, True), (3, False)])
def test_only_a_side_of_one_trial_borrows(after: int, is_borrowed: bool) -> None:
    [result] = run_checks([contest(3, after, trial_sd=0.05, seed=7)], resamples=500)
    assert result.trials is not None
    assert result.trials.is_borrowed is is_borrowed
    assert (result.trials.candidate_sd is None) is is_borrowed


def test_single_differences_pair_what_belongs_together() -> None:
    before, after = np.arange(6.0).reshape(3, 2), np.arange(6.0).reshape(3, 2) * 10
    means = (before.mean(axis=0), after.mean(axis=0))
    shared = CheckRepeats(before, after, is_shared=True)
    assert shared.is_paired
    assert shared.single_differences(means).tolist() == (after - before).tolist()
    assert CheckRepeats(before, after).single_differences(means).shape == (9, 2)
    assert CheckRepeats(before, None).single_differences(means).shape == (3, 2)
    many = np.zeros((30, 2))
    assert CheckRepeats(many, many).single_differences(means).shape == (100, 2)


def test_the_power_without_a_room_for_betting() -> None:
    estimate = MeanEstimate(0.0, -0.02, 0.02, 0.1, 0.01, 100, 100, 9.0)
    power = compute_repeat_power(
        CheckEstimates(estimate, math.nan, 1.0, 1.0, None), 0.02, level=0.05, bound_level=0.05
    )
    assert power.pass_rate == 0
    assert power.small_pass_rate is not None
    assert power.small_pass_rate > 0.4
    assert power.false_pass_rate == 0.05
    assert power.min_detectable_drop is not None
    assert power.min_detectable_drop > 0.02 + 0.008


def test_the_power_of_no_tolerance() -> None:
    estimate = MeanEstimate(0.0, -0.02, 0.02, 0.1, 0.01, 100, 100, 9.0)
    power = compute_repeat_power(
        CheckEstimates(estimate, -0.03, 1.0, 1.0, None), 0.0, level=0.05, bound_level=0.05
    )
    assert power.alarm_rate == 0.05
    assert power.pass_rate is not None
    assert power.small_pass_rate is not None
    assert power.pass_rate + power.small_pass_rate == pytest.approx(0.05)


def test_a_planted_drop_of_the_printed_size_is_mostly_found() -> None:
    printed = [
        run_checks([contest(6, 6, trial_sd=0.05, seed=seed)], resamples=500)[0]
        for seed in range(15)
    ]
    planted = float(np.median([each.min_detectable_drop or 0.0 for each in printed]))
    runs = 300
    found = sum(
        alarms(contest(6, 6, trial_sd=0.05, seed=1000 + seed, drop=planted)) for seed in range(runs)
    )
    low, high = binomial_bounds(found, runs)
    assert low <= 0.9
    assert high >= 0.8
