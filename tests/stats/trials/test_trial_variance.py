"""Intervals for new trials: worked by hand, unchanged without trials, and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean, t_quantile
from fusion_bench.stats.trial_variance import (
    TrialSpread,
    TrialTerm,
    add_trial_variance,
    make_trial_terms,
    measure_trial_spread,
    move_quantile,
)
from tests.stats.samples import binomial_bounds, normal
from tests.stats.trials.cases import crossed


def test_variance_and_freedom_by_hand() -> None:
    spread = TrialSpread(3, (0.1, 0.2, 0.3), between=0.009, within=0.003, within_freedom=60.0)
    by_queries = MeanEstimate(0.5, 0.0, 1.0, 0.2, 0.04, 25, 25, 24.0)
    estimate = add_trial_variance(by_queries, (TrialTerm(spread, 1 / 3),))
    variance = 0.0016 + 0.002
    freedom = variance**2 / (0.0016**2 / 24 + 0.003**2 / 2 + 0.001**2 / 60)
    assert estimate.standard_error == pytest.approx(0.06)
    assert estimate.trial_variance == pytest.approx(0.002)
    assert estimate.freedom == pytest.approx(freedom)
    assert estimate.high - 0.5 == pytest.approx(0.06 * t_quantile(freedom, 0.975))
    assert estimate.design_effect == pytest.approx(1)  # of groups only


def test_a_limit_alone_is_all_the_variance_where_queries_do_not_differ() -> None:
    sides = np.array([[0.0] * 6, [1.0] * 6]), None
    by_queries = estimate_mean(np.full(6, 0.5))
    estimate = add_trial_variance(by_queries, make_trial_terms(sides))
    [term] = make_trial_terms(sides)
    assert term.is_limit
    assert estimate.freedom == by_queries.freedom == 5
    assert estimate.standard_error == pytest.approx(math.sqrt(term.variance))
    assert estimate.high - 0.5 == pytest.approx(t_quantile(5, 0.975) * math.sqrt(term.variance))


def test_without_trials_or_without_their_effect_the_estimate_is_the_same_object() -> None:
    by_queries = estimate_mean(normal(30))
    steady = np.repeat(normal(1, 30, seed=2), 3, axis=0)
    assert add_trial_variance(by_queries, make_trial_terms((None, None))) is by_queries
    assert add_trial_variance(by_queries, make_trial_terms((steady, None))) is by_queries
    assert make_trial_terms((normal(1, 30), None)) == ()


def test_a_system_of_one_trial_is_fixed_or_borrows() -> None:
    values = crossed(4, 30, trial_sd=1.0, seed=1)
    fixed, borrowed = (
        make_trial_terms((values, None), borrow=borrow)[0] for borrow in (False, True)
    )
    assert (fixed.factor, borrowed.factor) == (0.25, 1.25)
    assert fixed.spread == borrowed.spread == measure_trial_spread(values)


@pytest.mark.parametrize(("trials", "ratio"), [(2, 27.9596873), (3, 6.15312938)])
def test_few_trials_against_a_fixed_list_add_their_upper_limit(trials: int, ratio: float) -> None:
    """(T − 1) ÷ the .15 quantile of χ² with T − 1 degrees of freedom, by tables."""
    values = crossed(trials, 30, trial_sd=0.1, seed=1)
    [term] = make_trial_terms((None, values))
    spread = measure_trial_spread(values)
    expected = ratio * spread.between / trials - spread.within / trials
    assert term.variance == pytest.approx(expected, rel=1e-6)
    by_queries = estimate_mean(values.mean(axis=0))
    estimate = add_trial_variance(by_queries, (term,))
    assert estimate.freedom == by_queries.freedom == 29
    assert estimate.standard_error**2 == pytest.approx(by_queries.standard_error**2 + expected)


def test_a_chance_of_no_effect_does_not_drop_the_limit() -> None:
    values = crossed(2, 30, residual_sd=0.1, seed=4)
    spread = measure_trial_spread(values)
    assert spread.variance == 0 < spread.between
    assert make_trial_terms((values, None))[0].variance > 0


@pytest.mark.parametrize(
    ("sides", "borrow"),
    [
        ((crossed(4, 30, trial_sd=1.0), None), False),
        ((crossed(3, 30, trial_sd=1.0), None), True),
        ((crossed(3, 30, trial_sd=1.0), crossed(3, 30, trial_sd=1.0, seed=1)), False),
        ((crossed(3, 30, trial_sd=1.0),), False),
    ],
)
def test_other_designs_add_the_estimate(sides: tuple[FloatArray | None], borrow: bool) -> None:
    assert not any(term.is_limit for term in make_trial_terms(sides, borrow=borrow))


def test_two_systems_add_both_terms() -> None:
    first, second = (crossed(3, 30, trial_sd=1.0, seed=seed) for seed in (1, 2))
    terms = make_trial_terms((first, second))
    estimate = add_trial_variance(estimate_mean(normal(30)), terms)
    assert estimate.trial_variance == pytest.approx(
        (measure_trial_spread(first).variance + measure_trial_spread(second).variance) / 3
    )


def test_the_freedom_is_not_below_that_of_the_trials() -> None:
    spread = TrialSpread(3, (0.0, 0.0, 0.0), between=1.0, within=0.99, within_freedom=2.0)
    estimate = add_trial_variance(
        MeanEstimate(0.0, 0.0, 0.0, 1.0, 1e-6, 9, 9, 8.0), (TrialTerm(spread, 1 / 3),)
    )
    assert estimate.freedom == 2


def test_one_group_stays_unknown() -> None:
    groups = np.zeros(5, dtype=np.int64)
    values = crossed(3, 5, trial_sd=1.0)
    estimate = estimate_mean(values.mean(axis=0), groups)
    assert add_trial_variance(estimate, make_trial_terms((values,), groups)) is estimate


@pytest.mark.parametrize("t", [0.0, math.inf])
def test_the_ends_of_a_quantile_stay(t: float) -> None:
    assert move_quantile(t, 5, 50) == t


def test_a_quantile_keeps_its_tail() -> None:
    assert move_quantile(t_quantile(7, 0.999), 7, 90) == pytest.approx(t_quantile(90, 0.999))


def covers(values: FloatArray, truth: float, groups: IntArray | None = None) -> bool:
    """Whether the interval of the means over trials holds the true mean."""
    terms = make_trial_terms((values,), groups)
    estimate = add_trial_variance(estimate_mean(values.mean(axis=0), groups), terms)
    return estimate.low <= truth <= estimate.high


@pytest.mark.parametrize("trial_sd", [0.0, 0.05])
def test_intervals_cover_for_new_trials_and_queries(trial_sd: float) -> None:
    draws = 600
    hits = sum(
        covers(crossed(3, 40, query_sd=0.2, trial_sd=trial_sd, seed=seed), 0.0)
        for seed in range(draws)
    )
    low, high = binomial_bounds(hits, draws)
    assert low <= 0.97
    assert high >= 0.93


@pytest.mark.parametrize("trial_sd", [0.0, 0.05])
def test_intervals_cover_where_queries_come_in_groups(trial_sd: float) -> None:
    """A group's queries share their values, and what a trial does to them."""
    draws, groups = 400, np.repeat(np.arange(30), [1] * 10 + [2] * 10 + [4] * 10)
    hits = 0
    for seed in range(draws):
        shared = crossed(3, 30, query_sd=0.2, trial_sd=trial_sd, seed=seed)[:, groups]
        alone = crossed(3, len(groups), query_sd=0.1, seed=draws + seed)
        hits += covers(shared + alone, 0.0, groups)
    low, high = binomial_bounds(hits, draws)
    assert low <= 0.97
    assert high >= 0.93
