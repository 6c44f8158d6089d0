"""Checks with trials, by hand and by simulation."""

import math
from dataclasses import replace

import numpy as np
import pytest

from fusion_bench.gate.checks import Check, run_checks
from fusion_bench.gate.repeats import CheckRepeats
from fusion_bench.stats.repeat_variance import repeat_variance
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
    keys = tuple(f"q{q}" for q in range(QUERIES))
    return Check("c", None, "m", 0.01, old, new, keys, repeats=trials)


def test_a_side_of_one_trial_adds_the_variance_of_one() -> None:
    values = np.array([[0.1, 0.3], [0.2, 0.6], [0.5, 0.7]])
    variance = float(np.var([0.2, 0.4, 0.6], ddof=1))
    fixed, borrowed = (CheckRepeats(None, values, borrows=borrows) for borrows in (False, True))
    assert repeat_variance(fixed.means) == pytest.approx(variance / 3)
    assert repeat_variance(borrowed.means) == pytest.approx(variance / 3 + variance)
    assert len(borrowed.means) == 1  # T − 1 degrees of freedom
    assert (fixed.is_borrowed, borrowed.is_borrowed) == (False, True)
    both = CheckRepeats(values, values, borrows=True)
    assert not both.is_borrowed
    assert repeat_variance(both.means) == pytest.approx(2 * variance / 3)


def test_repeats_of_one_list_are_compared_one_by_one() -> None:
    before = np.array([[0.1, 0.3], [0.2, 0.6], [0.5, 0.7]])
    shared = CheckRepeats(before, before + 0.1, is_shared=True)
    assert repeat_variance(shared.means) == 0
    assert shared.describe(0.05).is_paired
    apart = CheckRepeats(before, before + 0.1)
    assert not apart.describe(0.05).is_paired
    assert apart.describe(0.05).share > 0.5


def test_repeats_widen_both_ends_and_the_detectable_drop() -> None:
    check = contest(3, 3, trial_sd=0.05, seed=7)
    with_repeats, without = (
        run_checks([each])[0] for each in (check, replace(check, repeats=None))
    )
    for name, is_larger in (("lower_end", False), ("upper_end", True), ("p", True)):
        sides = getattr(with_repeats, name), getattr(without, name)
        assert (sides[0] > sides[1]) is is_larger, name
    assert (with_repeats.min_detectable_drop or 0) > (without.min_detectable_drop or math.inf)
    assert with_repeats.needed is None
    assert without.needed is not None


@pytest.mark.parametrize(("before", "after"), [(3, 3), (6, 6), (1, 6), (3, 1)])
def test_an_alarm_without_a_true_drop_is_rare(before: int, after: int) -> None:
    runs = 100
    statuses = [
        run_checks([contest(before, after, trial_sd=0.05, seed=seed)])[0].status
        for seed in range(runs)
    ]
    assert binomial_bounds(statuses.count("regressed"), runs)[0] <= 0.05
    assert binomial_bounds(statuses.count("pass"), runs)[0] <= 0.2


@pytest.mark.parametrize(("after", "is_borrowed"), [(1, True), (3, False)])
def test_only_a_side_of_one_trial_borrows(after: int, is_borrowed: bool) -> None:
    [result] = run_checks([contest(3, after, trial_sd=0.05, seed=7)])
    assert result.trials is not None
    assert result.trials.is_borrowed is is_borrowed
    assert (result.trials.candidate_sd is None) is is_borrowed
    assert ("as unsteady as" in result.trials.description) is is_borrowed


def test_a_planted_drop_of_the_printed_size_is_mostly_found() -> None:
    printed = [run_checks([contest(6, 6, trial_sd=0.05, seed=seed)])[0] for seed in range(15)]
    planted = float(np.median([each.min_detectable_drop or 0.0 for each in printed]))
    runs = 100
    results = [
        run_checks([contest(6, 6, trial_sd=0.05, seed=1000 + seed, drop=planted)])[0]
        for seed in range(runs)
    ]
    low, high = binomial_bounds(sum(each.status == "regressed" for each in results), runs)
    assert low <= 0.92
    assert high >= 0.72
