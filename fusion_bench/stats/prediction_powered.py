"""A mean of people's values over N queries, of which people judged n but a machine all.

Prediction-powered inference (Angelopoulos, Bates, Fannjiang, Jordan & Zrnic, "Prediction-powered
inference", Science 2023): the machine's mean over all queries, plus a rectifier from the queries
that people judged too. With the weight λ of Angelopoulos, Duchi & Zrnic 2023 ("PPI++")::

    estimate = λ·F̄ + (ȳ − λ·f̄)

y are people's values and f the machine's on the n queries of people, F̄ is the machine's mean over
all N. These n are part of the N. So with independent queries::

    variance = V(y − λ·f)/n + 2·λ·C(y − λ·f, f)/N + λ²·V(f)/N

It is least at λ = C(y, f)/V(f), where the middle term is 0. That λ is the slope of y on f, and the
estimate is the regression estimator of double sampling (Cochran 1977, "Sampling techniques",
chapter 12). λ is estimated from n queries, which makes the plug-in variance too small where n is
small. The interval takes account of this::

    s² = Σ(y − line)² / (n − 2)
    model = s²·(1/n + (F̄ − f̄)² / Σ(f − f̄)²)             exact where y is a line plus normal noise
    jackknife = Σ_g (estimate − estimate without group g)²
    variance = max(model, jackknife) + λ²·V(F̄)

The jackknife is HC3's variance with one query a group (MacKinnon & White 1985), and CR3's with
larger ones (Bell & McCaffrey 2002). V(F̄) is the CR2 variance of ``stats.intervals``. The
interval is ± t·√variance. Its degrees of freedom are Satterthwaite's for the sum of the two parts,
with G − 2 for the first, G the groups that people judged, and Bell & McCaffrey's for the second.

docs/studies/judges.md holds a simulation of this interval and of others. The machine's errors may
depend on query, system and grade. The n queries have to be a random sample of the N, and enough of
them have to show its errors: rare and large ones that the sample lacks widen nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fusion_bench.config.json_records import ReportRecord
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean, group_codes, t_quantile
from fusion_bench.stats.power import two_sided_p
from fusion_bench.util.formatting import pluralize

#: The machine's values are equal, but for rounding, where their squared deviations sum to less.
NO_SPREAD = 1e-20


class Line(NamedTuple):
    """People's values as a line of the machine's, by least squares.

    Attributes:
        slope: b; 0 where the machine's values are all equal.
        mean: Its height at the machine's mean over all queries: ȳ + b·(F̄ − f̄).
        squared_distance: (F̄ − f̄)² ÷ Σ(f − f̄)²; 0 where the machine's values are all equal.
        residual_squares: Σ(y − line)².
    """

    slope: float
    mean: float
    squared_distance: float
    residual_squares: float


def fit_line(people: FloatArray, machine: FloatArray, machine_mean: float) -> Line:
    """Fit the line through the queries that both judged.

    Args:
        people: y, shape (n,).
        machine: f, shape (n,), the same queries.
        machine_mean: F̄, over all queries that the machine judged.
    """
    y, f = people - people.mean(), machine - machine.mean()
    squares = float(f @ f)
    distance = machine_mean - float(machine.mean())
    slope = float(y @ f) / squares if squares > NO_SPREAD else 0.0
    return Line(
        slope=slope,
        mean=float(people.mean()) + slope * distance,
        squared_distance=distance**2 / squares if squares > NO_SPREAD else 0.0,
        residual_squares=float(((y - slope * f) ** 2).sum()),
    )


def means_without_groups(
    people: FloatArray, machine: FloatArray, machine_mean: float, groups: IntArray
) -> FloatArray:
    """The height of the line at the machine's mean, fitted without each group in turn.

    Args:
        people: y, shape (n,).
        machine: f, shape (n,), the same queries.
        machine_mean: F̄, over all queries that the machine judged, those of the group included.
        groups: Shape (n,): codes 0 … G−1, each used; G is at least 2.

    Returns:
        Shape (G,).
    """
    y, f = people - people.mean(), machine - machine.mean()

    def sums_without(values: FloatArray) -> FloatArray:
        return np.asarray(values.sum() - np.bincount(groups, weights=values))

    count = sums_without(np.ones_like(y))
    y_mean, f_mean = sums_without(y) / count, sums_without(f) / count
    squares = sums_without(f * f) - count * f_mean**2
    products = sums_without(y * f) - count * y_mean * f_mean
    has_spread = squares > NO_SPREAD
    slopes = np.where(has_spread, products / np.where(has_spread, squares, 1.0), 0.0)
    distance = machine_mean - float(machine.mean()) - f_mean
    return np.asarray(float(people.mean()) + y_mean + slopes * distance)


#: Fewest groups of queries that people judged: two degrees of freedom are left.
LEAST_GROUPS = 4


@dataclass(frozen=True)
class PoweredMean:
    """A mean of people's values, estimated from theirs and a machine's.

    Attributes:
        mean: The estimate.
        low: Lower end of its interval.
        high: Upper end.
        half_width: Half the width of the interval, before it is cut to where means can be.
        standard_error: Of the estimate.
        freedom: Degrees of freedom of the interval.
        p: Two-sided, of a mean of 0, by Student's t.
        weight: λ: how much of the machine's mean over all queries counts; 0 = nothing.
        sample_variance: The part of the variance that more queries of people make smaller.
        people: People's values alone, on their queries.
        machine: The machine's values alone, on all queries; only more queries make its part of the
            variance smaller.
    """

    mean: float
    low: float
    high: float
    half_width: float
    standard_error: float
    freedom: float
    p: float
    weight: float
    sample_variance: float
    people: MeanEstimate
    machine: MeanEstimate

    def clip(self, least: float, most: float) -> PoweredMean:
        """Clip the estimate and the intervals to where means can be."""
        mean, low, high = (min(max(each, least), most) for each in (self.mean, self.low, self.high))
        people, machine = self.people.clip(least, most), self.machine.clip(least, most)
        return replace(self, mean=mean, low=low, high=high, people=people, machine=machine)


def estimate_powered_mean(
    people: FloatArray,
    machine: FloatArray,
    sampled: IntArray,
    groups: IntArray | None = None,
    *,
    alpha: float = 0.05,
) -> PoweredMean:
    """The mean of people's values over all queries.

    Args:
        people: Shape (n,), finite: people's values of a random sample of the queries.
        machine: Shape (N,), finite: the machine's values of all queries.
        sampled: Shape (n,): the position of each query of ``people`` in ``machine``.
        groups: Shape (N,): codes of the groups of dependent queries; None = every query alone.
        alpha: 1 − coverage.

    Raises:
        ConfigError: Positions that are repeated or out of range, or too few groups.
        DataError: A value that is not finite.
    """
    _check_sample(people, machine, sampled)
    codes, _ = group_codes(groups, len(machine))
    own_codes, count = group_codes(codes[sampled], len(people))
    if count < LEAST_GROUPS:
        judged = pluralize(count, "query")
        if count < len(people):
            judged = f"queries of {pluralize(count, 'group')}"
        raise ConfigError(
            f"people judged {judged}, and at least {LEAST_GROUPS} are needed: let them judge more"
        )
    total, known = estimate_mean(machine, codes, alpha=alpha), machine[sampled]
    line = fit_line(people, known, total.mean)
    without = means_without_groups(people, known, total.mean, own_codes)
    jackknife = math.fsum(((without - line.mean) ** 2).tolist())
    residual_variance = line.residual_squares / (len(people) - 2)
    model = residual_variance * (1 / len(people) + line.squared_distance)
    sample = max(model, jackknife)
    machine_part = (line.slope * total.standard_error) ** 2
    freedom = satterthwaite_freedom(sample, machine_part, count - 2, total.freedom)
    error = math.sqrt(sample + machine_part)
    half_width = t_quantile(freedom, 1 - alpha / 2) * error
    return PoweredMean(
        mean=line.mean,
        low=line.mean - half_width,
        high=line.mean + half_width,
        half_width=half_width,
        standard_error=error,
        freedom=freedom,
        p=two_sided_p(line.mean, error, freedom),
        weight=line.slope,
        sample_variance=sample,
        people=estimate_mean(people, own_codes, alpha=alpha),
        machine=total,
    )


def satterthwaite_freedom(
    first: float, second: float, first_freedom: float, second_freedom: float
) -> float:
    """Degrees of freedom of the sum of two independent variances (Satterthwaite 1946).

    Args:
        first: The one.
        second: The other.
        first_freedom: Degrees of freedom of the first.
        second_freedom: Of the second.

    Returns:
        ``first_freedom`` where both are 0; at least the smaller, at most the sum of both.
    """
    total = first + second
    if total <= 0:
        return first_freedom
    return total**2 / (first**2 / first_freedom + second**2 / second_freedom)


def _check_sample(people: FloatArray, machine: FloatArray, sampled: IntArray) -> None:
    """Refuse values that do not belong together.

    Raises:
        ConfigError: Positions that are repeated, out of range, or not one a value.
        DataError: A value that is not finite.
    """
    if people.ndim != 1 or machine.ndim != 1 or sampled.shape != people.shape:
        raise ConfigError(
            f"values of shapes {people.shape} and {machine.shape} with {sampled.shape} positions: "
            "one value a query, and one position for each query of people"
        )
    is_inside = (sampled >= 0) & (sampled < len(machine))
    if not is_inside.all() or len(np.unique(sampled)) != len(sampled):
        raise ConfigError(
            "positions of people's queries: each query of the machine at most once, from 0 to "
            f"{len(machine) - 1}"
        )
    for name, values in (("people's", people), ("the machine's", machine)):
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            raise DataError(f"{name} value {wrong[0]} is {values[wrong[0]]}: a number is needed")


#: Confidence of the range of a number of queries.
CONFIDENCE = 0.95


class PeoplePlan(ReportRecord):
    """What more judging by people would do to the interval of one difference.

    Their queries stay a random sample.

    Attributes:
        half_width: Of the interval at hand, before it is cut to where means can be.
        halving: Queries that people would have to judge in all for half the width; None = judging
            all queries at hand would not do.
        added: How many more that are; None likewise.
        added_range: The same with the spread of people's values at the ends of its 95 % interval.
        least_half_width: Half width where people judge all queries at hand.
        expected: Number of queries of people → expected half width.
        people_alone: Queries that people would need for this interval without the machine.
    """

    half_width: float
    halving: int | None
    added: int | None
    added_range: tuple[int | None, int | None]
    least_half_width: float
    expected: dict[int, float]
    people_alone: int


def plan_judging(
    estimate: PoweredMean, sizes: Sequence[int] = (), *, alpha: float = 0.05
) -> PeoplePlan:
    """Expected half widths with more queries of people.

    λ, the residuals and the machine's error stay as they are. The part of the variance that people
    make smaller goes as 1/m + (1/m − 1/N)/(m − 3) with m of N queries: the expectation of its
    formula for normal values. That part is known from few queries, so a number of queries has a
    range: the part times (G − 2)/χ² at the ends of χ²'s interval with G − 2 degrees of freedom.

    Args:
        estimate: At hand.
        sizes: Numbers of queries to plan for, each from the one at hand to N.
        alpha: 1 − coverage.
    """
    at_hand, total = estimate.people.queries, estimate.machine.queries
    present = _half_width(estimate, at_hand, alpha)
    scale = estimate.half_width / present if present > 0 else 1.0
    factors = (1.0, *_variance_factors(estimate))
    halving, least, most = (_find_halving(estimate, alpha, factor) for factor in factors)
    added, *ends = (None if size is None else size - at_hand for size in (halving, least, most))
    return PeoplePlan(
        half_width=estimate.half_width,
        halving=halving,
        added=added,
        added_range=(ends[0], ends[1]),
        least_half_width=scale * _half_width(estimate, total, alpha),
        expected={
            size: scale * _half_width(estimate, size, alpha)
            for size in sizes
            if at_hand <= size <= total
        },
        people_alone=_people_alone(estimate, alpha),
    )


def _variance_factors(estimate: PoweredMean) -> tuple[float, float]:
    """The ends of the interval of the true variance of the sample ÷ the estimated one."""
    from fusion_bench.util.special_functions import special  # late, as it is slow

    freedom = estimate.people.groups - 2
    tail = (1 - CONFIDENCE) / 2
    low, high = (freedom / float(special.chdtri(freedom, part)) for part in (tail, 1 - tail))
    return low, high


def _find_halving(estimate: PoweredMean, alpha: float, factor: float = 1.0) -> int | None:
    """The least number of queries of people for half of the present width; None = not even all.

    Args:
        estimate: At hand.
        alpha: 1 − coverage.
        factor: The true variance of the sample ÷ the estimated one.
    """
    at_hand, total = estimate.people.queries, estimate.machine.queries
    goal = _half_width(estimate, at_hand, alpha) / 2
    if not 0 < _half_width(estimate, total, alpha, factor) <= goal:
        return None
    low, high = at_hand, total  # the first counts as too few, the second is enough
    while high - low > 1:
        middle = (low + high) // 2
        is_enough = _half_width(estimate, middle, alpha, factor) <= goal
        low, high = (low, middle) if is_enough else (middle, high)
    return high


def _half_width(estimate: PoweredMean, size: int, alpha: float, factor: float = 1.0) -> float:
    """Half width of an interval with ``size`` queries of people; see ``_find_halving``."""
    at_hand, total = estimate.people.queries, estimate.machine.queries
    groups = max(3.0, estimate.people.groups * size / at_hand)
    sample = factor * estimate.sample_variance * _spread(size, total) / _spread(at_hand, total)
    machine = (estimate.weight * estimate.machine.standard_error) ** 2
    freedom = satterthwaite_freedom(sample, machine, groups - 2, estimate.machine.freedom)
    return t_quantile(freedom, 1 - alpha / 2) * math.sqrt(sample + machine)


def _spread(size: int, total: int) -> float:
    """1/m + (1/m − 1/N)/(m − 3); the last divisor is at least 1."""
    return 1 / size + (1 / size - 1 / total) / max(size - 3, 1)


def _people_alone(estimate: PoweredMean, alpha: float) -> int:
    """Queries of people whose t interval alone is as narrow; at least those at hand for λ = 0."""
    people, goal = estimate.people, estimate.half_width
    if goal <= 0:
        return people.queries
    variance = people.standard_error**2 * people.queries
    size = max(2, math.ceil((t_quantile(1e6, 1 - alpha / 2) / goal) ** 2 * variance))
    while t_quantile(size - 1, 1 - alpha / 2) * math.sqrt(variance / size) > goal:
        size += 1
    return size
