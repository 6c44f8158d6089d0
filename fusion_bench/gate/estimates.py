"""The mean difference of one check, its bounds, and its t tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.evaluation.report_records.needed_queries import NeededQueries
from fusion_bench.gate.power.needed_queries import needed_to_pass
from fusion_bench.stats.betting_bound import betting_bound
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean, t_quantile
from fusion_bench.stats.trials.trial_variance import TrialTerm, add_trial_variance


@dataclass(frozen=True)
class CheckEstimates:
    """What is estimated of one check at the level of one run.

    Attributes:
        estimate: The mean difference, with what trials add.
        betting_bound: One-sided lower bound; NaN where there is none.
        p_at_zero: Of the one-sided t test of "the true mean is at least 0", where trials add
            variance; 0 elsewhere, so that the sign-flip test decides alone.
        p_regressed: Of the one-sided t test of mean ≥ −m, unadjusted.
        needed: Queries that a pass needs; None where trials add variance, as queries alone may
            never suffice.
    """

    estimate: MeanEstimate
    betting_bound: float
    p_at_zero: float
    p_regressed: float
    needed: NeededQueries | None


def estimate_check(
    difference: FloatArray,
    groups: IntArray,
    terms: Sequence[TrialTerm],
    *,
    max_drop: float,
    alpha: float,
) -> CheckEstimates:
    """Estimate the mean difference and its bounds.

    Args:
        difference: Shape (Q,), finite.
        groups: Shape (Q,): codes.
        terms: What trials add to the variance of the mean.
        max_drop: m.
        alpha: One-sided level of the bounds.
    """
    # The lower end of the two-sided interval at 2α is the one-sided bound at α.
    estimate = estimate_mean(difference, groups, alpha=2 * alpha)
    estimate = add_trial_variance(estimate, terms, alpha=2 * alpha)
    bound = betting_bound(difference, groups, alpha=alpha)
    needed = None if terms else needed_to_pass(difference, groups, max_drop, alpha=alpha)
    return CheckEstimates(
        estimate=estimate,
        betting_bound=add_trial_gap(estimate.mean, bound, terms, alpha=alpha),
        p_at_zero=p_at_least(estimate, 0.0) if terms else 0.0,
        p_regressed=p_at_least(estimate, -max_drop),
        needed=needed,
    )


def p_at_least(estimate: MeanEstimate, value: float) -> float:
    """P of the one-sided t test of "the true mean is at least ``value``"; 1 = no spread known."""
    from scipy.special import stdtr  # late, as it is slow

    gap, error = estimate.mean - value, estimate.standard_error
    if not error > 0:
        return 0.0 if error == 0 and gap < 0 else 1.0
    return float(stdtr(estimate.freedom, gap / error))


def add_trial_gap(mean: float, bound: float, terms: Sequence[TrialTerm], *, alpha: float) -> float:
    """A one-sided lower bound over queries, lowered by what trials can move it.

    The mean is the sum of a part that queries move and an independent part that trials move. The
    distances of their bounds are combined as √(a² + b²) (the method of variance estimates recovery:
    Zou & Donner 2008, "Construction of confidence limits about effect measures", Statistics in
    Medicine 27).

    Args:
        mean: The mean difference.
        bound: Its bound over queries; NaN stays NaN.
        terms: What the trials add to the variance of the difference.
        alpha: Probability that the true mean lies below, at most.
    """
    variance = math.fsum(term.variance for term in terms)
    if not variance > 0:
        return bound
    squares = math.fsum(term.squared_error for term in terms)
    freedom = variance**2 / squares if squares else math.inf  # an upper limit is no estimate
    freedom = max(freedom, min(term.spread.trials - 1 for term in terms))
    gap = t_quantile(freedom, 1 - alpha) * math.sqrt(variance)
    return mean - math.hypot(mean - bound, gap)
