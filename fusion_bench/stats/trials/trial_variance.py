"""What trials add to the variance of a mean over queries.

The mean over queries and trials of system s has the variance
(σ²_α + σ²_ε/T) / Q + σ²_τ/T. The variance over queries of the means over trials estimates its
first part, because ε is in these means. So does it for the paired difference of two systems. Only
σ²_τ/T of each system is to be added, and where σ²_τ is 0 the plain paired test is right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.stats.intervals import MeanEstimate, t_quantile
from fusion_bench.stats.trials.trial_spread import TrialSpread, measure_trial_spread


@dataclass(frozen=True)
class TrialTerm:
    """The trials of one system, as they enter the variance of a mean or a difference.

    Attributes:
        spread: How far the trials lie apart.
        factor: 1/T; where another system borrows this spread, 1/T of both.
    """

    spread: TrialSpread
    factor: float

    @property
    def variance(self) -> float:
        """What the term adds."""
        return self.factor * self.spread.variance

    @property
    def squared_error(self) -> float:
        """Half the variance of ``variance``, each mean square being a scaled χ²."""
        spread = self.spread
        squares = spread.between**2 / (spread.trials - 1) + (
            spread.within**2 / spread.within_freedom
        )
        return self.factor**2 * squares


def make_trial_terms(
    sides: Sequence[FloatArray | None], groups: IntArray | None = None, *, borrow: bool = False
) -> tuple[TrialTerm, ...]:
    """The terms of a mean (one side) or of a paired difference (two sides).

    The trials of a system with one trial are unknown. It counts as fixed: the interval holds for
    its list as it is. With ``borrow`` it is as unsteady as the other side: one system, changed.

    Args:
        sides: Of each system the values of its trials, shape (T, Q); None = one trial.
        groups: Shape (Q,), integer codes; None = every query is its own group.
        borrow: Whether a side of one trial takes the spread of the other.

    Returns:
        Only the terms that add something.
    """
    repeated = [side for side in sides if side is not None and len(side) > 1]
    singles = len(sides) - len(repeated)
    terms = []
    for side in repeated:
        spread = measure_trial_spread(side, groups)
        factor = 1 / spread.trials + (singles if borrow else 0)
        terms.append(TrialTerm(spread, factor))
    return tuple(term for term in terms if term.variance > 0)


def add_trial_variance(
    estimate: MeanEstimate, terms: Sequence[TrialTerm], *, alpha: float = 0.05
) -> MeanEstimate:
    """An estimate that holds for new queries and for new trials.

    The variance is V = V_q + Σ f·σ²_τ, with V_q over queries and f of each term. Its degrees of
    freedom are Satterthwaite's, V² ÷ (V_q²/ν_q + Σ f²·(B²/(T − 1) + W²/ν_W)), where σ²_τ = B − W
    (Satterthwaite 1946, "An approximate distribution of estimates of variance components",
    Biometrics Bulletin 2). A term whose estimate is not above 0 takes no part.

    Args:
        estimate: Over queries, of the means over trials.
        terms: From :func:`make_trial_terms`.
        alpha: 1 − coverage of its interval.

    Returns:
        The estimate as it is where no term adds anything.
    """
    added = math.fsum(term.variance for term in terms)
    if not added > 0 or math.isnan(estimate.standard_error):
        return estimate
    query_variance = estimate.standard_error**2
    variance = query_variance + added
    squares = query_variance**2 / estimate.freedom
    squares += math.fsum(term.squared_error for term in terms)
    # A difference of mean squares can leave less than its coarsest part has.
    least = min(estimate.freedom, *(term.spread.trials - 1 for term in terms))
    freedom = max(variance**2 / squares, least)
    error = math.sqrt(variance)
    half_width = t_quantile(freedom, 1 - alpha / 2) * error
    return replace(
        estimate,
        low=estimate.mean - half_width,
        high=estimate.mean + half_width,
        standard_error=error,
        freedom=freedom,
        trial_variance=added,
    )


def move_quantile(t: float, old: float, new: float) -> float:
    """The quantile of Student's t at ``new`` degrees of freedom where ``old`` has ``t`` ≥ 0."""
    from scipy.special import stdtr, stdtrit  # late, as it is slow

    if old == new or not 0 < t < math.inf:
        return t
    return -float(stdtrit(new, float(stdtr(old, -t))))
