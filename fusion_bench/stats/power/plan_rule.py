"""What a rule of ``eval``, ``tune`` or ``gate`` needs and can show, as a t test.

Each rule has its own critical value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fusion_bench.errors import ConfigError
from fusion_bench.stats.intervals import POWER
from fusion_bench.stats.power.sample_size import (
    NORMAL_FREEDOM,
    SampleSize,
    compute_power,
    critical_value,
    detectable_difference,
    upper_tail,
)
from fusion_bench.stats.power.spread import Spread


@dataclass(frozen=True)
class DecisionRule:
    """A t test of one command.

    Attributes:
        name: What it decides.
        tail: Upper tail probability of its critical value.
        critical_value: At the queries at hand, where the tail probability does not give it: the
            c of a family. None = Student's quantile.
    """

    name: str
    tail: float
    critical_value: float | None = None


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
    rule: DecisionRule, spread: Spread, differences: Sequence[float], power: float = POWER
) -> RulePlan:
    """Queries that a rule needs, and what it shows on the queries at hand.

    Args:
        rule: The rule.
        spread: Of the differences.
        differences: True differences, each above 0.
        power: Above .5 and below 1.

    Raises:
        ConfigError: A difference or power out of its range.
    """
    wrong = [each for each in differences if not 0 < each < math.inf]
    if wrong or not differences:
        raise ConfigError(f"difference: must be above 0, not {wrong[0] if wrong else 'none'}")
    freedom, error = spread.freedom or NORMAL_FREEDOM, spread.standard_error
    critical, tail = rule.critical_value, rule.tail
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
    return RulePlan(rule.name, tail, critical, detectable, plans)


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
