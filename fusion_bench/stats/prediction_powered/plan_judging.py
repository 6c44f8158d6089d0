"""How many more queries people would have to judge for a narrower interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fusion_bench.stats.intervals import t_quantile
from fusion_bench.stats.prediction_powered.powered_mean import PoweredMean, satterthwaite_freedom

#: Confidence of the range of a number of queries.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class JudgingPlan:
    """What more judging would do to the interval, if people's queries stay a random sample.

    Attributes:
        half_width: Of the interval at hand.
        halving: Queries that people would judge in all for half of it; None = not even all.
        halving_range: The same with the residual variance at the ends of its 95 % interval; None
            likewise.
        least_half_width: Where people judge all queries at hand.
        expected: Number of queries of people → expected half width.
        people_alone: Queries that people would need for the interval at hand without the machine.
    """

    half_width: float
    halving: int | None
    halving_range: tuple[int | None, int | None]
    least_half_width: float
    expected: dict[int, float]
    people_alone: int


def plan_judging(
    estimate: PoweredMean, sizes: Sequence[int] = (), *, alpha: float = 0.05
) -> JudgingPlan:
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
    low, high = (_find_halving(estimate, alpha, factor) for factor in _variance_factors(estimate))
    return JudgingPlan(
        half_width=estimate.half_width,
        halving=_find_halving(estimate, alpha),
        halving_range=(low, high),
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
    from scipy.special import chdtri  # late, as it is slow

    freedom = estimate.people.groups - 2
    tail = (1 - CONFIDENCE) / 2
    return freedom / float(chdtri(freedom, tail)), freedom / float(chdtri(freedom, 1 - tail))


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
    """Of an interval with ``size`` queries of people; for ``factor`` see ``_find_halving``."""
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
