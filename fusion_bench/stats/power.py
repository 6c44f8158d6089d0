"""Power: the queries that a difference needs, the difference that given queries can show.

The rule that is planned for says "better" where t = mean ÷ standard error exceeds a critical value.
With true difference D, t is noncentral t with noncentrality D ÷ standard error (Sakai 2016, "Topic
set size design", Information Retrieval Journal 19, section 3.1). The normal start of the search is
his equation for the paired t test.

Each rule has its own critical value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fusion_bench.config.json_records import ReportRecord
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError
from fusion_bench.stats.intervals import POWER, estimate_mean, group_codes, t_quantile

#: Below it, the queries that changed say too little about the spread for more than a lower bound.
MIN_CHANGED_FOR_SPREAD = 30
#: Significant digits of a number of queries.
DIGITS = 2
#: Kurtosis of the normal distribution.
NORMAL = 3.0
#: Degrees of freedom at which t is normal.
NORMAL_FREEDOM = 1e8
#: With fewer degrees of freedom, the upper end of an interval of the variance is out of reach.
LEAST_FREEDOM = 0.5
#: Upper tail probability of Student's .975 quantile.
DEFAULT_TAIL = 0.025
#: Most steps of the search for N.
STEPS = 200
#: No collection is larger; a difference that needs more is out of reach.
MOST_QUERIES = 10**12


class SampleSize(ReportRecord):
    """Queries that a rule needs to find a difference with the asked power.

    Attributes:
        queries: N, rounded up to two digits. Where ``at_least``, the lower end of its interval.
        low: Lower end of the 95 % interval of N, rounded down; None where ``at_least``, and where
            the standard deviation is assumed, not estimated.
        high: Upper end, rounded up; None likewise.
        at_least: Whether only a lower bound is known: fewer than 30 queries changed, or few of
            them make the variance.
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
    interval for standard deviation of nonnormal distributions", equation 1), with a higher upper
    end if the differences have a long tail.

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
        needed = round_queries(middle, up=True)
        return SampleSize(queries=needed, low=None, high=None, at_least=False)
    low, high = (
        _solve_queries(variance * factor, tail, power, rate)
        for factor in _variance_factors(groups or queries / design_effect, kurtosis)
    )
    least = round_queries(low, up=False)
    if changed < MIN_CHANGED_FOR_SPREAD or high > MOST_QUERIES:
        return SampleSize(queries=least, low=None, high=None, at_least=True)
    return SampleSize(
        queries=round_queries(middle, up=True),
        low=least,
        high=round_queries(high, up=True),
        at_least=False,
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
    from fusion_bench.util.special_functions import special  # late, as it is slow

    _check_power(power)
    if not (
        standard_error > 0 and freedom > 0 and math.isfinite(critical)
    ):  # written so that NaN ends here too
        return None
    return float(special.nctdtrinc(freedom, 1 - power, critical)) * standard_error


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
    from fusion_bench.util.special_functions import special  # late, as it is slow

    return 1.0 - float(special.nctdtr(freedom, difference / standard_error, critical))


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
    from fusion_bench.util.special_functions import special  # late, as it is slow

    return float(special.stdtr(freedom, -critical))


def two_sided_p(mean: float, error: float, freedom: float) -> float:
    """Two-sided p of Student's t test that the mean is 0; 1 if the mean is 0 or has no error."""
    if mean == 0 or math.isnan(error):
        return 1.0
    return min(1.0, 2 * upper_tail(abs(mean) / error if error > 0 else math.inf, freedom))


def critical_value(tail: float, freedom: float) -> float:
    """Student's t that is exceeded with this probability."""
    return -t_quantile(freedom, tail)


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
    from fusion_bench.util.special_functions import special  # late, as they are slow

    z = -float(special.ndtri(tail))
    queries = (z + float(special.ndtri(power))) ** 2 * variance + z**2 / 2
    for _ in range(STEPS):
        freedom = max(rate * queries - 1, 1.0)
        needed = float(special.nctdtrinc(freedom, 1 - power, critical_value(tail, freedom)))
        step = (needed**2 * variance - queries) / 2
        queries += step
        if not abs(step) > 1e-6 * queries:  # written so that NaN ends here too
            break
    return max(queries, 2 / rate) if math.isfinite(queries) else math.inf


def _variance_factors(count: float, kurtosis: float | None) -> tuple[float, float]:
    """Ends of the 95 % interval of the variance ÷ the variance (Bonett 2006, equation 1).

    In a long tail, about n ÷ kurtosis values make the variance, and a sample may lack the largest
    ones. So for the upper end, the kurtosis is multiplied by 1 + 2·(kurtosis − 1) ÷ n, and the
    quantile is Student's with n ÷ kurtosis − 1 degrees of freedom.
    """
    from fusion_bench.util.special_functions import special  # late, as it is slow

    z, kurtosis = float(special.ndtri(0.975)), NORMAL if kurtosis is None else kurtosis
    if not count > z + 1:
        return 0.0, math.inf
    correction, raised = count / (count - z), kurtosis * (1 + 2 * (kurtosis - 1) / count)
    low, high = (
        correction * math.sqrt(max(each - (count - 3) / count, 0.0) / (count - 1))
        for each in (kurtosis, raised)
    )
    freedom = count / kurtosis - 1
    upper = math.exp(t_quantile(freedom, 0.975) * high) if freedom > LEAST_FREEDOM else math.inf
    return correction * math.exp(-z * low), correction * upper


@dataclass(frozen=True)
class Spread:
    """How much the differences of two systems vary from query to query.

    Attributes:
        sd: Standard deviation over queries.
        queries: Q; None = the standard deviation is assumed, and no queries are at hand.
        design_effect: Variance of the mean by group ÷ by query; 1 without groups.
        freedom: Degrees of freedom of the standard error; None without queries.
        changed: Queries with a difference; None where the standard deviation is assumed.
        kurtosis: μ₄ ÷ σ⁴ of the differences, or of their sums by group; None where the standard
            deviation is assumed, or nothing tells the kurtosis.
        groups: Groups of the queries; None without.
    """

    sd: float
    queries: int | None = None
    design_effect: float = 1.0
    freedom: float | None = None
    changed: int | None = None
    kurtosis: float | None = None
    groups: int | None = None

    @property
    def standard_error(self) -> float | None:
        """Standard error of the mean difference over the queries at hand; None without queries."""
        if self.queries is None:
            return None
        return self.sd * math.sqrt(self.design_effect / self.queries)

    def needed_queries(
        self, difference: float, critical: float | None, *, power: float = POWER
    ) -> SampleSize | None:
        """Queries at which a true difference exceeds the critical value; see the function.

        Args:
            difference: True difference.
            critical: At the queries at hand; at infinitely many where the spread is assumed.
            power: Above .5 and below 1.
        """
        return needed_queries(
            difference,
            self.sd,
            queries=None if self.changed is None else self.queries,
            changed=self.changed or 0,
            kurtosis=self.kurtosis,
            critical=critical,
            power=power,
            design_effect=self.design_effect,
            freedom=self.freedom,
            groups=self.groups,
        )


def estimate_spread(differences: FloatArray, groups: IntArray | None = None) -> Spread:
    """The spread of paired differences.

    Args:
        differences: Shape (Q,), finite.
        groups: Shape (Q,), integer codes; None = every query alone.
    """
    mean = estimate_mean(differences, groups)
    changed = int((differences != 0).sum())
    spread = Spread(mean.sd, mean.queries, 1.0, mean.freedom, changed)
    if groups is None or mean.groups == mean.queries or not mean.sd > 0:
        return replace(spread, kurtosis=estimate_kurtosis(differences))
    effect = (mean.standard_error / mean.sd) ** 2 * mean.queries
    codes, _ = group_codes(groups, mean.queries)
    sums = np.bincount(codes, weights=differences - mean.mean).astype(np.float64)
    return replace(
        spread, design_effect=effect, kurtosis=estimate_kurtosis(sums), groups=mean.groups
    )


@dataclass(frozen=True)
class DifferencePlan:
    """One true difference under one rule.

    Attributes:
        difference: Above 0.
        needed: Queries for the asked power; None = out of reach, or no spread is known.
        power: Of the queries at hand; None without queries or spread.
    """

    difference: float
    needed: SampleSize | None
    power: float | None


@dataclass(frozen=True)
class RulePlan:
    """What one rule needs and can show.

    Attributes:
        name: What it decides.
        tail: Upper tail probability of its critical value.
        critical_value: At the queries at hand, or at infinitely many where there are none.
        detectable: Smallest difference that the queries at hand show with the asked power; None
            without queries or spread.
        differences: By true difference.
    """

    name: str
    tail: float
    critical_value: float
    detectable: float | None
    differences: tuple[DifferencePlan, ...]


def sidak_tail(systems: int, alpha: float = 0.05) -> float:
    """Upper tail probability of the two-sided critical value for several compared systems.

    (1 − (1 − α)^(1 / K)) / 2: exact for K independent differences, and an upper bound of the
    critical value whatever their correlations (Šidák 1967, "Rectangular confidence regions for the
    means of multivariate normal distributions").

    Args:
        systems: K ≥ 1, without the baseline.
        alpha: Family-wise level.
    """
    if not 0 < alpha < 1:
        raise ConfigError(f"alpha: must be above 0 and below 1, not {alpha}")
    if systems < 1:
        raise ConfigError(f"systems: at least 1 is needed, not {systems}")
    return -math.expm1(math.log1p(-alpha) / systems) / 2


def plan_rule(
    name: str,
    tail: float,
    spread: Spread,
    differences: Sequence[float],
    *,
    critical: float | None = None,
    power: float = POWER,
) -> RulePlan:
    """Queries that a t test of one command needs, and what it shows on the queries at hand.

    Args:
        name: What it decides.
        tail: Upper tail probability of its critical value.
        spread: Of the differences.
        differences: True differences, each above 0.
        critical: Critical value at the queries at hand, where the tail probability does not give
            it: the c of a family. None = Student's quantile.
        power: Above .5 and below 1.

    Raises:
        ConfigError: A difference or power out of its range.
    """
    wrong = [each for each in differences if not 0 < each < math.inf]
    if wrong or not differences:
        raise ConfigError(f"difference: must be above 0, not {wrong[0] if wrong else 'none'}")
    freedom, error = spread.freedom or NORMAL_FREEDOM, spread.standard_error
    if critical is None:
        critical = critical_value(tail, freedom)
    else:
        tail = upper_tail(critical, freedom)
    planned = critical_value(tail, NORMAL_FREEDOM) if spread.changed is None else critical
    plans = tuple(
        DifferencePlan(
            difference,
            spread.needed_queries(difference, planned, power=power),
            compute_power(difference, error, critical, freedom=freedom) if error else None,
        )
        for difference in differences
    )
    detectable = None
    if error is not None:
        detectable = detectable_difference(error, critical, freedom=freedom, power=power)
    return RulePlan(name, tail, critical, detectable, plans)


def power_by_queries(rule: RulePlan, spread: Spread, difference: float, queries: int) -> float:
    """Power at another number of queries, with the tail probability of the rule's critical value.

    Args:
        rule: The rule.
        spread: Of the differences; must be above 0.
        difference: True difference.
        queries: N.

    Returns:
        NaN where N queries leave no degree of freedom, or without a critical value.
    """
    at_hand = spread.freedom or NORMAL_FREEDOM
    rate = 1 / spread.design_effect
    if spread.queries is not None:
        rate = (at_hand + 1) / spread.queries
    freedom = rate * queries - 1
    if not (freedom >= 1 and math.isfinite(rule.critical_value)):
        return math.nan
    critical = critical_value(upper_tail(rule.critical_value, at_hand), freedom)
    error = spread.sd * math.sqrt(spread.design_effect / queries)
    return compute_power(difference, error, critical, freedom=freedom)
