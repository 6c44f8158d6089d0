"""What trials add to the variance of a mean over queries.

The mean over queries and trials of system s has the variance
(σ²_α + σ²_ε/T) / Q + σ²_τ/T. The variance over queries of the means over trials estimates its
first part, because ε is in these means. So does it for the paired difference of two systems. Only
σ²_τ/T of each system is to be added, and where σ²_τ is 0 the plain paired test is right.

Two or three trials estimate σ²_τ too unsurely where nothing else is uncertain in the same way: a
difference from a fixed list takes the upper limit of σ²_τ/T instead of its estimate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.stats.intervals import MeanEstimate, t_quantile
from fusion_bench.stats.trials.trial_spread import TrialSpread, measure_trial_spread

#: With so many trials or fewer, a difference from a fixed list takes the upper limit of σ²_τ/T.
FEW_TRIALS: Final = 3
#: Trials of each system that keep the level of a family whatever trials do (docs/statistics.md).
ENOUGH_TRIALS: Final = 6
#: 1 − the confidence of that limit: with two or three trials, normal effects and queries, and an sd
#: of trials from 0 to .1, it is the largest with which 95 % intervals cover (docs/statistics.md).
LIMIT_LEVEL: Final = 0.15


@dataclass(frozen=True)
class TrialTerm:
    """The trials of one system, as they enter the variance of a mean or a difference.

    Attributes:
        spread: How far the trials lie apart.
        factor: 1/T; where another system borrows this spread, 1/T of both.
        is_limit: The upper limit of σ²_τ/T is added, not its estimate.
    """

    spread: TrialSpread
    factor: float
    is_limit: bool = False

    @property
    def variance(self) -> float:
        """What the term adds.

        B·(T − 1) is a χ² with T − 1 degrees of freedom times σ²_τ + W, so that its low quantile
        gives the upper limit of σ²_τ + W.
        """
        if not self.is_limit:
            return self.factor * self.spread.variance
        from scipy.special import gammaincinv  # late, as it is slow

        freedom = self.spread.trials - 1
        quantile = 2 * float(gammaincinv(freedom / 2, LIMIT_LEVEL))
        limit = freedom * self.spread.between / quantile - self.spread.within
        return self.factor * max(limit, 0.0)

    @property
    def squared_error(self) -> float:
        """Half the variance of ``variance``, each mean square being a scaled χ²; 0 for a limit."""
        if self.is_limit:
            return 0.0
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
    its list as it is, and two or three trials of the other side add their upper limit. With
    ``borrow`` it is as unsteady as the other side: one system, changed.

    Args:
        sides: Of each system the values of its trials, shape (T, Q); None = one trial.
        groups: Shape (Q,), integer codes; None = every query is its own group.
        borrow: Whether a side of one trial takes the spread of the other.

    Returns:
        Only the terms that add something.
    """
    repeated = [side for side in sides if side is not None and len(side) > 1]
    singles = len(sides) - len(repeated)
    is_fixed = len(repeated) == singles == 1 and not borrow
    terms = []
    for side in repeated:
        spread = measure_trial_spread(side, groups)
        factor = 1 / spread.trials + (singles if borrow else 0)
        terms.append(TrialTerm(spread, factor, is_fixed and spread.trials <= FEW_TRIALS))
    return tuple(term for term in terms if term.variance > 0)


def add_trial_variance(
    estimate: MeanEstimate, terms: Sequence[TrialTerm], *, alpha: float = 0.05
) -> MeanEstimate:
    """An estimate that holds for new queries and for new trials.

    The variance is V = V_q + Σ f·σ²_τ, with V_q over queries and f of each term. Its degrees of
    freedom are Satterthwaite's, V² ÷ (V_q²/ν_q + Σ f²·(B²/(T − 1) + W²/ν_W)), where σ²_τ = B − W
    (Satterthwaite 1946, "An approximate distribution of estimates of variance components",
    Biometrics Bulletin 2). A term whose estimate is not above 0 takes no part. With an upper limit
    they are ν_q, because it is no estimate.

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
    freedom = estimate.freedom
    if not terms[0].is_limit:
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
