"""Checks with trials, by hand and by simulation."""

import math
from dataclasses import replace

import numpy as np
import pytest

from fusion_bench.data.ordering import FloatArray
from fusion_bench.gate.checks import Check, run_checks
from fusion_bench.stats.repeat_variance import repeat_variance
from fusion_bench.stats.values import MeasuredValues, Pair
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
    return Check("c", None, 0.01, pair_of(sides[0], sides[1], borrows=True))


def pair_of(before: FloatArray, after: FloatArray, *lists: str, borrows: bool = False) -> Pair:
    new, old = (MeasuredValues(s.mean(axis=0), s, frozenset(lists)) for s in (after, before))
    keys = tuple(f"q{q}" for q in range(before.shape[1]))
    return Pair(new, old, keys, measure="m", borrows=borrows)


def test_a_side_of_one_trial_adds_the_variance_of_one() -> None:
    values = np.array([[0.1, 0.3], [0.2, 0.6], [0.5, 0.7]])
    variance = float(np.var([0.2, 0.4, 0.6], ddof=1))
    fixed, borrowed = (pair_of(values[:1], values, borrows=each) for each in (False, True))
    assert repeat_variance(fixed.repeats) == pytest.approx(variance / 3)
    assert repeat_variance(borrowed.repeats) == pytest.approx(variance / 3 + variance)
    assert len(borrowed.repeats) == 1  # T − 1 degrees of freedom
    assert (fixed.is_borrowed, borrowed.is_borrowed) == (False, True)
    both = pair_of(values, values, borrows=True)
    assert not both.is_borrowed
    assert repeat_variance(both.repeats) == pytest.approx(2 * variance / 3)


def test_repeats_of_one_list_are_compared_one_by_one() -> None:
    before = np.array([[0.1, 0.3], [0.2, 0.6], [0.5, 0.7]])
    shared = pair_of(before, before + 0.1, "runs/a")
    assert repeat_variance(shared.repeats) == pytest.approx(0)
    apart = pair_of(before, before + 0.1)
    [paired], [alone] = (run_checks([Check("c", None, 0.01, pair)]) for pair in (shared, apart))
    assert paired.trials is not None
    assert alone.trials is not None
    assert (paired.trials.is_paired, alone.trials.is_paired) == (True, False)
    assert alone.trials.share > 0.5


def test_repeats_widen_both_ends_and_the_detectable_drop() -> None:
    check = contest(3, 3, trial_sd=0.05, seed=7)
    with_repeats, without = (
        run_checks([replace(check, pair=pair)])[0]
        for pair in (check.pair, Pair.from_arrays(check.pair.difference, keys=check.pair.keys))
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
