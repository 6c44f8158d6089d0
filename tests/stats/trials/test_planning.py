"""Plans of trials and queries against the intervals that such data then have."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fusion_bench.stats.intervals import MeanEstimate, estimate_mean, t_quantile
from fusion_bench.stats.trial_variance import (
    TrialSpread,
    add_trial_variance,
    make_trial_terms,
    measure_trial_spread,
    plan_narrowing,
)
from tests.stats.samples import normal
from tests.stats.trials.cases import crossed


def estimate(error: float) -> MeanEstimate:
    """Of 100 queries."""
    return MeanEstimate(0.0, 0.0, 0.0, 0.2, error, 100, 100, 99.0)


def test_the_plan_of_what_is_there_is_the_interval_that_is_there() -> None:
    values = crossed(3, 60, trial_sd=0.05, seed=2)
    by_queries = estimate_mean(values.mean(axis=0))
    plan = plan_narrowing(by_queries, [measure_trial_spread(values)])
    whole = add_trial_variance(by_queries, make_trial_terms((values,)))
    assert plan is not None
    assert whole.trial_variance > 0
    assert plan.now == pytest.approx((whole.high - whole.low) / 2)


@pytest.mark.parametrize("trials", [2, 3])
def test_the_plan_of_few_trials_against_a_fixed_list_has_their_upper_limit(trials: int) -> None:
    values = crossed(trials, 60, trial_sd=0.05, seed=2)
    by_queries = estimate_mean(values.mean(axis=0))
    plan = plan_narrowing(by_queries, [measure_trial_spread(values)], is_fixed=True)
    whole = add_trial_variance(by_queries, make_trial_terms((values, None)))
    assert plan is not None
    assert plan.now == pytest.approx((whole.high - whole.low) / 2)
    assert plan.all_trials <= plan.one_trial < plan.now


def test_an_effect_of_trials_asks_for_trials() -> None:
    spread = TrialSpread(3, (0.0, 0.05, 0.1), between=0.0026, within=0.0001, within_freedom=198)
    plan = plan_narrowing(estimate(0.01), [spread])
    assert plan is not None
    assert plan.prefers_trials
    assert plan.one_trial < plan.more_queries
    assert plan.more_queries == plan.all_queries == plan.now
    assert plan.all_queries > plan.all_trials > 0
    assert plan.added_queries == 34  # 100 answers more, of 3 a query


def test_without_an_effect_of_trials_queries_help_more() -> None:
    spread = TrialSpread(3, (0.0, 0.0, 0.0), between=0.0, within=0.0001, within_freedom=198)
    plan = plan_narrowing(estimate(0.02), [spread])
    assert plan is not None
    assert not plan.prefers_trials
    assert plan.all_queries == 0


def test_one_more_trial_divides_what_trials_do_on_single_queries() -> None:
    spread = TrialSpread(3, (0.0, 0.0, 0.0), between=0.0, within=0.0006, within_freedom=198)
    plan = plan_narrowing(estimate(0.02), [spread])
    assert plan is not None
    error = math.sqrt(0.0004 - 0.0006 / 3 + 0.0006 / 4)
    assert plan.one_trial == pytest.approx(t_quantile(99, 0.975) * error)
    least = math.sqrt(0.0004 - 0.0006 / 3)
    assert plan.all_trials == pytest.approx(t_quantile(99, 0.975) * least)


def test_two_systems_pay_for_their_trials_together() -> None:
    spreads = [measure_trial_spread(crossed(count, 100, seed=count)) for count in (2, 4)]
    plan = plan_narrowing(estimate(0.02), spreads)
    assert plan is not None
    assert plan.added_queries == 34  # 2 × 100 answers more, of 2 + 4 a query


def test_nothing_to_plan() -> None:
    assert plan_narrowing(estimate(0.02), []) is None
    spread = measure_trial_spread(normal(3, 100))
    assert plan_narrowing(estimate(math.nan), [spread]) is None


def test_more_trials_come_close_to_the_plan() -> None:
    """The plan of one more trial, averaged, is the interval that one more trial has."""
    planned, measured = [], []
    for seed in range(200):
        values = crossed(4, 50, query_sd=0.1, trial_sd=0.1, seed=seed)
        first = values[:3]
        plan = plan_narrowing(estimate_mean(first.mean(axis=0)), [measure_trial_spread(first)])
        assert plan is not None
        planned.append(plan.one_trial)
        by_queries = estimate_mean(values.mean(axis=0))
        whole = add_trial_variance(by_queries, make_trial_terms((values,)))
        measured.append((whole.high - whole.low) / 2)
    assert np.median(planned) == pytest.approx(np.median(measured), rel=0.15)
