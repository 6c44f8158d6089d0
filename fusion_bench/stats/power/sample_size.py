"""Queries that a difference needs, and the difference that the queries at hand can show.

The rule that is planned for says "better" where t = mean ÷ standard error exceeds a critical value.
With true difference D, t is noncentral t with noncentrality D ÷ standard error (Sakai 2016, "Topic
set size design", Information Retrieval Journal 19, section 3.1). The normal start of the search is
his equation for the paired t test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError
from fusion_bench.stats.intervals import POWER

#: Below it, the queries that changed say too little about the spread for more than a lower bound.
MIN_CHANGED_FOR_SPREAD = 30
#: Significant digits of a number of queries.
DIGITS = 2
#: Kurtosis of the normal distribution.
NORMAL = 3.0
#: Degrees of freedom at which t is normal.
NORMAL_FREEDOM = 1e8
#: Upper tail probability of Student's .975 quantile.
DEFAULT_TAIL = 0.025
#: Most steps of the search for N.
STEPS = 200
#: No collection is larger; a difference that needs more is out of reach.
MOST_QUERIES = 10**12


@dataclass(frozen=True)
class SampleSize:
    """Queries that a rule needs to find a difference with the asked power.

    Attributes:
        queries: N, rounded up to two digits. Where ``at_least``, the lower end of its interval.
        low: Lower end of the 95 % interval of N, rounded down; None where ``at_least``, and where
            the standard deviation is assumed, not estimated.
        high: Upper end, rounded up; None likewise.
        at_least: Whether fewer than 30 queries changed, so that only a lower bound is known.
    """

    queries: int
    low: int | None
    high: int | None
    at_least: bool

    def __str__(self) -> str:
        """For example ``1,200 [930, 1,600]``, ``at least 85``, or ``1,200`` of an assumed sd."""
        if self.low is None or self.high is None:
            return f"{'at least ' if self.at_least else ''}{self.queries:,}"
        return f"{self.queries:,} [{self.low:,}, {self.high:,}]"


def needed_queries(
    difference: float,
    sd: float,
    *,
    queries: int | None,
    changed: int = 0,
    kurtosis: float | None = None,
    critical: float | None = None,
    power: float = POWER,
    design_effect: float = 1.0,
    freedom: float | None = None,
    groups: int | None = None,
) -> SampleSize | None:
    """Queries at which a true difference exceeds the critical value with probability ``power``.

    The standard error at N queries is sd · √(design effect ÷ N). The critical value at N has the
    tail probability that ``critical`` has at the degrees of freedom at hand. The interval is that
    of the variance, from its logarithm and the kurtosis (Bonett 2006, "Approximate confidence
    interval for standard deviation of nonnormal distributions", equation 1).

    Args:
        difference: True difference; only its size counts.
        sd: Standard deviation of the differences over queries.
        queries: Queries that ``sd`` was estimated from; None = it is assumed, then N has no
            interval, and ``changed``, ``kurtosis`` and ``freedom`` do not count.
        changed: Those whose difference is not 0.
        kurtosis: μ₄ ÷ σ⁴ of the differences, or of their sums by group (``estimate_kurtosis``);
            None = 3, the normal one.
        critical: Critical value of t at the queries at hand (at infinitely many where ``sd`` is
            assumed): the two-sided c of a family, or a one-sided quantile. None = Student's .975
            quantile.
        power: Above .5 and below 1.
        design_effect: Variance of the mean by group ÷ by query.
        freedom: Degrees of freedom of the estimate at hand; None = (queries ÷ design effect) − 1.
        groups: Groups that the variance was estimated from; None = queries ÷ design effect.

    Returns:
        None where no spread is known (fewer than two queries, an sd of 0), where the critical
        value is infinite, or where more than 10¹² queries were needed.

    Raises:
        ConfigError: A difference of 0, or a power outside its range.
    """
    if difference == 0 or not math.isfinite(difference):
        raise ConfigError(f"difference: must be finite and not 0, not {difference}")
    _check_power(power)
    if queries is None:
        rate, freedom = 1 / design_effect, NORMAL_FREEDOM
    else:
        freedom = queries / design_effect - 1 if freedom is None else freedom
        rate = (freedom + 1) / queries
    if not (sd > 0 and freedom > 0 and (critical is None or math.isfinite(critical))):
        return None
    tail = DEFAULT_TAIL if critical is None else upper_tail(critical, freedom)
    variance = design_effect * (sd / difference) ** 2
    middle = _solve_queries(variance, tail, power, rate)
    if not middle <= MOST_QUERIES:
        return None
    if queries is None:
        return SampleSize(round_queries(middle, up=True), None, None, at_least=False)
    low, high = (
        _solve_queries(variance * factor, tail, power, rate)
        for factor in _variance_factors(groups or queries / design_effect, kurtosis)
    )
    least = round_queries(low, up=False)
    if changed < MIN_CHANGED_FOR_SPREAD or high > MOST_QUERIES:
        return SampleSize(least, None, None, at_least=True)
    return SampleSize(
        round_queries(middle, up=True), least, round_queries(high, up=True), at_least=False
    )


def detectable_difference(
    standard_error: float, critical: float, *, freedom: float, power: float = POWER
) -> float | None:
    """True difference whose t exceeds the critical value with probability ``power``.

    Args:
        standard_error: Of the mean difference.
        critical: Critical value of t: the c of a family, or a one-sided quantile.
        freedom: Degrees of freedom of the standard error.
        power: Above .5 and below 1.

    Returns:
        None where no spread is known: a standard error or degrees of freedom of 0, or NaN, and
        where the critical value is infinite.
    """
    from scipy.special import nctdtrinc  # late, as it is slow

    _check_power(power)
    if not (
        standard_error > 0 and freedom > 0 and math.isfinite(critical)
    ):  # written so that NaN ends here too
        return None
    return float(nctdtrinc(freedom, 1 - power, critical)) * standard_error


def compute_power(
    difference: float, standard_error: float, critical: float, *, freedom: float
) -> float:
    """Probability that t exceeds the critical value at a true difference, between 0 and 1.

    Args:
        difference: True difference in the direction that is tested.
        standard_error: Of the mean difference; above 0.
        critical: Critical value of t.
        freedom: Degrees of freedom of the standard error.
    """
    from scipy.special import nctdtr  # late, as it is slow

    return 1.0 - float(nctdtr(freedom, difference / standard_error, critical))


def estimate_kurtosis(values: FloatArray) -> float | None:
    """Kurtosis μ₄ ÷ σ⁴ about a trimmed mean (Bonett 2006); None below 5 values or without spread.

    The mean is trimmed by 1 ÷ (2·√(Q − 4)) at each end, so that a long tail counts in full.

    Args:
        values: Shape (Q,), finite.
    """
    count = len(values)
    if count < 5:
        return None
    cut = int(count / (2 * math.sqrt(count - 4)))
    ordered = np.sort(values)
    inner = ordered[min(cut, (count - 1) // 2) : count - min(cut, (count - 1) // 2)]
    center, mean = math.fsum(inner.tolist()) / len(inner), math.fsum(ordered.tolist()) / count
    square = math.fsum(((ordered - mean) ** 2).tolist())
    if not square > 0:
        return None
    return count * math.fsum(((ordered - center) ** 4).tolist()) / square**2


def round_queries(queries: float, *, up: bool) -> int:
    """A number of queries with two digits, rounded up or down."""
    step: int = 10 ** max(0, math.floor(math.log10(max(queries, 1))) + 1 - DIGITS)
    return (math.ceil(queries / step) if up else math.floor(queries / step)) * step


def upper_tail(critical: float, freedom: float) -> float:
    """Probability that Student's t exceeds a critical value."""
    from scipy.special import stdtr  # late, as it is slow

    return float(stdtr(freedom, -critical))


def critical_value(tail: float, freedom: float) -> float:
    """Value that Student's t exceeds with probability ``tail``."""
    from scipy.special import stdtrit  # late, as it is slow

    return -float(stdtrit(freedom, tail))


def _check_power(power: float) -> None:
    if not 0.5 < power < 1:
        raise ConfigError(f"power: must be above .5 and below 1, not {power}")


def _solve_queries(variance: float, tail: float, power: float, rate: float) -> float:
    """N where the power is reached, by damped iteration; infinite where no N is found.

    Args:
        variance: Variance of the differences ÷ squared true difference, design effect included.
        tail: Upper tail probability of the critical value.
        power: As asked for.
        rate: (Degrees of freedom + 1) ÷ queries.
    """
    from scipy.special import nctdtrinc, ndtri  # late, as they are slow

    z = -float(ndtri(tail))
    queries = (z + float(ndtri(power))) ** 2 * variance + z**2 / 2
    for _ in range(STEPS):
        freedom = max(rate * queries - 1, 1.0)
        needed = float(nctdtrinc(freedom, 1 - power, critical_value(tail, freedom)))
        step = (needed**2 * variance - queries) / 2
        queries += step
        if not abs(step) > 1e-6 * queries:  # written so that NaN ends here too
            break
    return max(queries, 2 / rate) if math.isfinite(queries) else math.inf


def _variance_factors(count: float, kurtosis: float | None) -> tuple[float, float]:
    """Ends of the 95 % interval of the variance ÷ the variance (Bonett 2006, equation 1)."""
    from scipy.special import ndtri  # late, as it is slow

    z = float(ndtri(0.975))
    if not count > z + 1:
        return 0.0, math.inf
    spread = max((NORMAL if kurtosis is None else kurtosis) - (count - 3) / count, 0.0)
    correction = count / (count - z)
    half = z * correction * math.sqrt(spread / (count - 1))
    return correction * math.exp(-half), correction * math.exp(half)
