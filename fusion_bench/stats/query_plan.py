"""What a number of queries can show: power, detectable differences, and queries needed.

The rules are those of ``eval``, ``tune`` and ``gate``, each as a t test with its own critical
value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError
from fusion_bench.stats.intervals import POWER, estimate_mean
from fusion_bench.stats.resampling import group_codes
from fusion_bench.stats.sample_size import (
    NORMAL_FREEDOM,
    SampleSize,
    compute_power,
    critical_value,
    detectable_difference,
    estimate_kurtosis,
    needed_queries,
    upper_tail,
)
from fusion_bench.util.table_view import Columns, TableView


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
        """Of the mean difference over the queries at hand; None without queries."""
        if self.queries is None:
            return None
        return self.sd * math.sqrt(self.design_effect / self.queries)

    def needed_queries(
        self, difference: float, critical: float | None, *, power: float = POWER
    ) -> SampleSize | None:
        """Queries at which a true difference exceeds the critical value; see ``sample_size``.

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


@dataclass(frozen=True)
class PlannedComparison:
    """Whose differences tell the spread.

    Attributes:
        collection: The dataset.
        measure: Of the differences.
        baseline: The system compared with.
        candidate: The compared system.
    """

    collection: str
    measure: str
    baseline: str
    candidate: str


@dataclass(frozen=True, repr=False)
class PowerPlan(TableView):
    """Queries that each rule needs, and what the queries at hand can show.

    Attributes:
        comparison: Whose differences tell the spread; None where it is assumed.
        systems: Compared systems of the family, without the baseline.
        checks: Checks of the gate.
        alpha: Family-wise level.
        power: As asked for.
        spread: Of the differences.
        rules: One a decision.
        is_family: The first rule's critical value is that of a report's family; otherwise Šidák's
            upper bound.
    """

    comparison: PlannedComparison | None
    systems: int
    checks: int
    alpha: float
    power: float
    spread: Spread
    rules: tuple[RulePlan, ...]
    is_family: bool

    def to_dict(self) -> dict[str, Any]:
        """Every field by name."""
        return asdict(self)

    def _summary(self) -> str:
        names = ""
        if self.comparison is not None:
            of = self.comparison
            names = f"{of.candidate} - {of.baseline}, {of.measure}, "
        return f"PowerPlan({names}sd {self.spread.sd:.4g})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a rule and difference."""
        rows = [(rule, each) for rule in self.rules for each in rule.differences][:limit]
        needed = [each.needed for _, each in rows]
        return {
            "rule": [rule.name for rule, _ in rows],
            "difference": [each.difference for _, each in rows],
            "queries": [None if size is None else size.queries for size in needed],
            "low": [None if size is None else size.low for size in needed],
            "high": [None if size is None else size.high for size in needed],
            "power": [each.power for _, each in rows],
        }


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


def assume_spread(
    sd: float,
    queries: int | None = None,
    groups: int | None = None,
    design_effect: float | None = None,
) -> Spread:
    """A spread that is assumed.

    Args:
        sd: Standard deviation of the differences over queries.
        queries: Queries at hand; None = none.
        groups: Groups among these queries, of equal size; None = every query alone.
        design_effect: None = the worst that groups can do, queries ÷ groups: a group says no
            more than one query.

    Raises:
        ConfigError: A number out of its range, or groups without queries.
    """
    if not (sd > 0 and math.isfinite(sd)):
        raise ConfigError(f"sd: must be above 0, not {sd}")
    if queries is not None and queries < 2:
        raise ConfigError(f"queries: at least 2 are needed, not {queries}")
    if groups is not None and queries is None:
        raise ConfigError("groups: the number of queries is needed too")
    if groups is not None and queries is not None and not 2 <= groups <= queries:
        raise ConfigError(f"groups: from 2 to the number of queries, {queries}, not {groups}")
    effect = design_effect
    if effect is None:
        effect = 1.0 if groups is None or queries is None else queries / groups
    if not (effect > 0 and math.isfinite(effect)):
        raise ConfigError(f"design_effect: must be above 0, not {effect}")
    if queries is None:
        return Spread(sd, design_effect=effect)
    freedom = queries / effect - 1 if groups is None else groups - 1
    return Spread(sd, queries, effect, max(freedom, 1.0), groups=groups)


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
