"""Means over queries and their intervals, and exact intervals of a share."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError
from fusion_bench.stats.cluster_variance import bell_mccaffrey_freedom, cr2_standard_error
from fusion_bench.stats.resampling import check_values, group_codes

#: The power of a minimum detectable difference or drop.
POWER = 0.8
#: Ends of intervals up to this count as 0.
NOISE = 1e-12


@dataclass(frozen=True)
class MeanEstimate:
    """A mean over queries, its interval and its standard error.

    Attributes:
        mean: Mean over queries.
        low: Lower end of the interval; NaN with one group.
        high: Upper end; NaN likewise.
        sd: Sample standard deviation over queries; NaN with one query.
        standard_error: Standard error of the mean, by group; NaN with one group.
        queries: Q.
        groups: G; equals Q where no groups are declared.
        freedom: Degrees of freedom of the standard error: G − 1 with groups of equal size,
            fewer with unequal ones; NaN with one group.
        trial_variance: What the trials of the systems add to the variance of the mean, see
            ``stats.trials``; 0 with one trial.
    """

    mean: float
    low: float
    high: float
    sd: float
    standard_error: float
    queries: int
    groups: int
    freedom: float
    trial_variance: float = 0.0

    def clip(self, least: float, most: float) -> MeanEstimate:
        """The same with an interval that stays where values can be; NaN stays NaN."""
        low, high = (min(max(end, least), most) for end in (self.low, self.high))
        return replace(self, low=low, high=high)

    @property
    def design_effect(self) -> float | None:
        """Variance of the mean by group ÷ that of as many independent queries (Kish 1965).

        1 without groups; None where no spread is known.
        """
        if not (self.sd > 0 and self.groups > 1):
            return None
        return (self.standard_error**2 - self.trial_variance) * self.queries / self.sd**2


def estimate_mean(
    values: FloatArray, groups: IntArray | None = None, *, alpha: float = 0.05
) -> MeanEstimate:
    """Mean over queries with its 1 − ``alpha`` interval.

    The standard error is CR2's and the t quantile has Bell & McCaffrey's degrees of freedom, see
    ``stats.cluster_variance``. With one query per group that is the one-sample (or paired) t
    interval.

    Args:
        values: Shape (Q,), finite: one system's values, or paired differences.
        groups: Shape (Q,), integer codes; None = every query is its own group.
        alpha: 1 − coverage.
    """
    if not 0 < alpha < 1:
        raise ConfigError(f"alpha: must be above 0 and below 1, not {alpha}")
    check_values(values, dimensions=1)
    codes, count = group_codes(groups, len(values))
    queries, mean = len(values), exact_mean(values)
    deviations = values - mean  # all exactly 0 when the values are constant
    sd = low = high = math.nan
    if queries > 1:
        sd = math.sqrt(math.fsum((deviations**2).tolist()) / (queries - 1))
    sizes = np.bincount(codes).astype(np.int64)
    residual_sums = np.bincount(codes, weights=deviations).astype(np.float64)
    error = float(cr2_standard_error(residual_sums, sizes))
    freedom = bell_mccaffrey_freedom(sizes)
    if count > 1:
        half_width = t_quantile(freedom, 1 - alpha / 2) * error
        low, high = mean - half_width, mean + half_width
    return MeanEstimate(mean, low, high, sd, error, queries, count, freedom)


def decide_interval(
    estimate: MeanEstimate, critical_value: float, *, is_significant: bool
) -> tuple[float, float]:
    """Mean ± critical value · standard error; holds 0 exactly where the test does not reject.

    Rounding, and values of max |t*| between the row's t and c, are all that the last step changes.
    """
    mean, error = estimate.mean, estimate.standard_error
    half_width = 0.0 if error == 0 and math.isfinite(critical_value) else critical_value * error
    if math.isinf(critical_value):
        half_width = math.inf
    low, high = mean - half_width, mean + half_width
    if is_significant and mean > 0:
        low = max(low, 0.0)
    elif is_significant:
        high = min(high, 0.0)
    elif not math.isnan(low):
        low, high = min(low, 0.0), max(high, 0.0)
    return (0.0 if abs(low) <= NOISE else low, 0.0 if abs(high) <= NOISE else high)


def exact_mean(values: FloatArray) -> float:
    """Mean of (Q,) values, independent of their order, and exactly c if all are c."""
    first = float(values[0])
    return first if (values == first).all() else math.fsum(values.tolist()) / len(values)


def t_quantile(freedom: float, probability: float) -> float:
    """Quantile of Student's t."""
    from scipy.special import stdtrit  # late, as it is slow; scipy.stats costs 0.7 s

    return float(stdtrit(freedom, probability))


def clopper_pearson(count: int, runs: int, confidence: float = 0.95) -> tuple[float, float]:
    """Interval of the probability of an event seen ``count`` times in ``runs`` independent trials.

    Clopper & Pearson 1934: the values that neither one-sided binomial test at
    (1 − confidence) / 2 rejects; its coverage is at least ``confidence``.

    Args:
        count: 0 … ``runs``.
        runs: At least 1.
        confidence: Coverage.
    """
    from scipy.special import betaincinv  # late, as it is slow

    tail = (1 - confidence) / 2
    low = 0.0 if count == 0 else float(betaincinv(count, runs - count + 1, tail))
    high = 1.0 if count == runs else float(betaincinv(count + 1, runs - count, 1 - tail))
    return low, high
