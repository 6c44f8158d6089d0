"""What would narrow an interval most: one more trial, or more queries.

The variance of a mean or a paired difference, as expected with Q′ queries and T′ trials, is

    V′ = (Q/Q′)·(R + Σ W_s/T′_s) + Σ σ²_τs/T′_s,

where W_s/T_s is what ε_s adds to the variance V_q over queries, and R = V_q − Σ W_s/T_s is the
rest, at least 0 (a decision study of Brennan 2001, "Generalizability Theory", chapter 2). Where
σ²_τ/T enters the interval by its upper limit, it does so here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fusion_bench.stats.intervals import MeanEstimate, t_quantile
from fusion_bench.stats.power.sample_size import detectable_difference
from fusion_bench.stats.trials.trial_spread import TrialSpread
from fusion_bench.stats.trials.trial_variance import FEW_TRIALS, TrialTerm


@dataclass(frozen=True)
class PlannedDesign:
    """A number of trials and queries, and what the interval would be.

    Attributes:
        added_trials: Of each system that has trials; inf = as many as one likes.
        added_queries: inf likewise.
        half_width: Expected half width of the interval; at most that of today. More queries
            alone leave fewer degrees of freedom, so that the formula can say more.
        detectable: The smallest true difference that is found with 80 % power; None where no
            spread is left.
    """

    added_trials: float
    added_queries: float
    half_width: float
    detectable: float | None


@dataclass(frozen=True)
class NarrowingPlan:
    """Ways to narrow one interval.

    Attributes:
        now: As measured.
        one_trial: One more trial of each system that has trials.
        same_cost: More queries instead, for as many answers of these systems.
        all_trials: What no number of trials falls below.
        all_queries: What no number of queries falls below.
    """

    now: PlannedDesign
    one_trial: PlannedDesign
    same_cost: PlannedDesign
    all_trials: PlannedDesign
    all_queries: PlannedDesign

    @property
    def prefers_trials(self) -> bool:
        """Whether one more trial narrows the interval more than as many answers to new queries."""
        return self.one_trial.half_width < self.same_cost.half_width


def plan_narrowing(
    estimate: MeanEstimate,
    spreads: Sequence[TrialSpread],
    *,
    alpha: float = 0.05,
    is_fixed: bool = False,
) -> NarrowingPlan | None:
    """What one more trial, or more queries, would make of an interval.

    A system of one trial counts as fixed and has no spread.

    Args:
        estimate: Over queries, of the means over trials, without what trials add.
        spreads: Of each system with several trials.
        alpha: 1 − coverage.
        is_fixed: The one system with trials is compared with a fixed list.

    Returns:
        None where no system has trials, or no spread over queries is known.
    """
    if not spreads or math.isnan(estimate.standard_error):
        return None
    answers = sum(spread.trials for spread in spreads)
    queries = math.ceil(estimate.queries * len(spreads) / answers)
    now = _plan_design(estimate, spreads, 0, 0, alpha, is_fixed)

    def plan(trials: float, queries: float, less: PlannedDesign = now) -> PlannedDesign:
        """A design that is no worse than one with less."""
        design = _plan_design(estimate, spreads, trials, queries, alpha, is_fixed)
        if design.half_width <= less.half_width:
            return design
        return replace(design, half_width=less.half_width, detectable=less.detectable)

    one_trial = plan(1, 0)
    return NarrowingPlan(
        now=now,
        one_trial=one_trial,
        same_cost=plan(0, queries),
        all_trials=plan(math.inf, 0, one_trial),
        all_queries=plan(0, math.inf),
    )


def _plan_design(
    estimate: MeanEstimate,
    spreads: Sequence[TrialSpread],
    trials: float,
    queries: float,
    alpha: float,
    is_fixed: bool,
) -> PlannedDesign:
    """The expected interval with so many trials and queries more."""
    rate = estimate.queries / (estimate.queries + queries)
    residual = math.fsum(spread.within / spread.trials for spread in spreads)
    rest = max(estimate.standard_error**2 - residual, 0.0)
    by_query = rest + math.fsum(spread.within / (spread.trials + trials) for spread in spreads)
    # Without more of anything it is as measured, though R cannot be below 0.
    query_variance = rate * (by_query if trials else estimate.standard_error**2)
    freedom = (estimate.freedom + 1) / rate - 1 if rate else math.inf
    added, squares = 0.0, query_variance**2 / freedom
    for spread in spreads:
        count = spread.trials + trials
        if is_fixed and count <= FEW_TRIALS:
            within = rate * spread.within
            between = spread.between - spread.within + within
            planned = replace(spread, trials=int(count), between=between, within=within)
            added += TrialTerm(planned, 1 / count, is_limit=True).variance
            squares = (query_variance + added) ** 2 / freedom
        elif spread.variance > 0 and math.isfinite(count):
            within = rate * spread.within
            added += spread.variance / count
            squares += ((spread.variance + within) / count) ** 2 / (count - 1)
            if within > 0:
                squares += (within / count) ** 2 / (spread.within_freedom / rate)
    variance = query_variance + added
    if not variance > 0:
        return PlannedDesign(trials, queries, 0.0, None)
    freedom = variance**2 / squares if squares else math.inf
    error, critical = math.sqrt(variance), t_quantile(freedom, 1 - alpha / 2)
    return PlannedDesign(
        trials, queries, critical * error, detectable_difference(error, critical, freedom=freedom)
    )
