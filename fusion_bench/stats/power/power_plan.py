"""What every rule needs, and what the queries at hand can show."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from fusion_bench.stats.power.plan_rule import RulePlan
from fusion_bench.stats.power.spread import Spread
from fusion_bench.util.table_view import Columns, TableView


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


@dataclass(frozen=True)
class PlanWarning:
    """What speaks against the values that a plan rests on.

    Attributes:
        key: For programs.
        text: A sentence or more.
    """

    key: str
    text: str


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
        warnings: What speaks against the judge of the report; empty where the spread is assumed.
    """

    comparison: PlannedComparison | None
    systems: int
    checks: int
    alpha: float
    power: float
    spread: Spread
    rules: tuple[RulePlan, ...]
    is_family: bool
    warnings: tuple[PlanWarning, ...] = ()

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
