"""How many more queries people would have to judge for a narrower interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fusion_bench.stats.intervals import t_quantile
from fusion_bench.stats.prediction_powered.powered_mean import PoweredMean, satterthwaite_freedom


@dataclass(frozen=True)
class JudgingPlan:
    """What more judging would do to the interval, if people's queries stay a random sample.

    Attributes:
        half_width: Of the interval at hand.
        halving: Queries that people would judge in all for half of it; None = not even all.
        least_half_width: Where people judge all queries at hand.
        expected: Number of queries of people → expected half width.
        people_alone: Queries that people would need for the interval at hand without the machine.
    """

    half_width: float
    halving: int | None
    least_half_width: float
    expected: dict[int, float]
    people_alone: int


def plan_judging(
    estimate: PoweredMean, sizes: Sequence[int] = (), *, alpha: float = 0.05
) -> JudgingPlan:
    """Expected half widths with more queries of people.

    λ, the residuals and the machine's error stay as they are. The part of the variance that people
    make smaller goes as 1/m + (1/m − 1/N)/(m − 3) with m of N queries: the expectation of its
    formula for normal values.

    Args:
        estimate: At hand.
        sizes: Numbers of queries to plan for, each from the one at hand to N.
        alpha: 1 − coverage.
    """
    at_hand, total = estimate.people.queries, estimate.machine.queries

    def expect(size: int) -> float:
        return _half_width(estimate, size, alpha)

    scale = estimate.half_width / expect(at_hand) if expect(at_hand) > 0 else 1.0
    halving = None
    if 0 < expect(total) <= expect(at_hand) / 2:
        low, high = at_hand, total  # the first is too few, the second enough
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if expect(middle) <= expect(at_hand) / 2 else (middle, high)
        halving = high
    return JudgingPlan(
        half_width=estimate.half_width,
        halving=halving,
        least_half_width=scale * expect(total),
        expected={size: scale * expect(size) for size in sizes if at_hand <= size <= total},
        people_alone=_people_alone(estimate, alpha),
    )


def _half_width(estimate: PoweredMean, size: int, alpha: float) -> float:
    """Of an interval with ``size`` queries of people."""
    at_hand, total = estimate.people.queries, estimate.machine.queries
    groups = max(3.0, estimate.people.groups * size / at_hand)
    sample = estimate.sample_variance * _spread(size, total) / _spread(at_hand, total)
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
