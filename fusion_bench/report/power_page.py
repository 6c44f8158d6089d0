"""The plan of ``fusion-bench power``, as a record with its page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_jsonable_python

from fusion_bench.checks.records import DataWarning
from fusion_bench.measures.aliases import display_measure
from fusion_bench.report.data_warnings import warning_sections
from fusion_bench.report.page import Column, Finding, Page, Section, Table, make_columns, make_table
from fusion_bench.stats.power import MIN_CHANGED_FOR_SPREAD, RulePlan, Spread
from fusion_bench.util.formatting import (
    Columns,
    TableView,
    format_number,
    format_percent,
    pluralize,
)


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
        warnings: What speaks against the report; empty where the spread is assumed.
    """

    comparison: PlannedComparison | None
    systems: int
    checks: int
    alpha: float
    power: float
    spread: Spread
    rules: tuple[RulePlan, ...]
    is_family: bool
    warnings: tuple[DataWarning, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Every field by name."""
        fields: dict[str, Any] = to_jsonable_python(self)
        return fields

    def _summary(self) -> str:
        names = ""
        if self.comparison is not None:
            of = self.comparison
            names = f"{of.candidate} - {of.baseline}, {display_measure(of.measure)}, "
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


#: Which command decides it, and what the difference is.
COMMANDS = {
    "better or worse": "eval, compare",
    "ship": "tune",
    "regressed": "gate",
    "pass": "gate",
}
NOTES = (
    "ship: the first look, one-sided; the queries are the held-out ones.",
    "regressed: the true drop, if max_drop is well below it.",
    "pass: with this max_drop, if there is no true difference.",
)


def build_power_page(plan: PowerPlan) -> Page:
    """The page of a plan."""
    sizes = {i: f"{each.difference:g}" for i, each in enumerate(plan.rules[0].differences)}
    columns: list[Column[RulePlan]] = [*RULE_COLUMNS, *make_columns(sizes, _format_needed)]
    interval = (
        "In brackets: 95 % interval of the number, from the variance of the differences."
        if plan.spread.changed is not None
        else "The standard deviation is assumed, so the numbers have no interval."
    )
    title = f"Queries needed to show a difference (power {_format_power(plan)})"
    kind = "the report's critical value" if plan.is_family else "Šidák's upper bound"
    systems = pluralize(plan.systems, "compared system")
    notes = (interval, f"better or worse: two-sided, {systems}, {kind}.", *NOTES)
    changed, of = plan.spread.changed, plan.comparison
    few = (
        f"Only {pluralize(changed or 0, 'query')} changed. Below {MIN_CHANGED_FOR_SPREAD} the "
        "spread is hardly known, so numbers of queries are lower bounds."
    )
    is_few = changed is not None and changed < MIN_CHANGED_FOR_SPREAD
    section = Section(
        facts=dict(_list_facts(plan)),
        summary="; ".join(f"{name} {value}" for name, value in _list_facts(plan)),
        findings=(Finding(few, "warning", "few changed queries"),) if is_few else (),
        parts=(make_table(title, columns, plan.rules, notes=notes), *_build_hand_tables(plan)),
    )
    first = warning_sections(plan.warnings)
    rule, power = plan.rules[0], _format_power(plan)
    if rule.detectable is not None and plan.spread.queries is not None:
        need = (
            f"{pluralize(plan.spread.queries, 'query')} show a true difference of "
            f"{format_number(rule.detectable)} with power {power}."
        )
    else:
        needs = [f"{each.difference:g} takes {each.needed or 'n/a'}" for each in rule.differences]
        need = f"Queries to show a true difference with power {power}: {', '.join(needs)}."
    headline = Finding(need, key="decision")
    source = f"standard deviation {plan.spread.sd:g}"
    if of is not None:
        source = (
            f"{of.candidate} against {of.baseline}, {display_measure(of.measure)}, {of.collection}"
        )
    return Page(f"Power: {source}", (*first, section), headline)


def _list_facts(plan: PowerPlan) -> Iterator[tuple[str, str]]:
    spread = plan.spread
    yield "standard deviation", format_number(spread.sd)
    if spread.queries is not None:
        yield "queries", f"{spread.queries:,}"
    if spread.changed is not None:
        yield "changed queries", f"{spread.changed:,}"
    if spread.design_effect != 1:
        yield "variance by group", f"{spread.design_effect:.2f} × by query"
    if spread.kurtosis is not None:
        yield "kurtosis", f"{spread.kurtosis:.1f}"
    yield "compared systems", f"{plan.systems:,}"
    yield "checks", f"{plan.checks:,}"


def _format_needed(i: int, rule: RulePlan) -> str:
    return str(rule.differences[i].needed or "n/a")


def _build_hand_tables(plan: PowerPlan) -> Iterator[Table]:
    """What the queries at hand show; nothing without queries."""
    if plan.spread.queries is None:
        return
    rules = plan.rules
    sizes = {i: f"power at {each.difference:g}" for i, each in enumerate(rules[0].differences)}
    header = f"detectable (power {_format_power(plan)})"
    columns: list[Column[RulePlan]] = [
        *RULE_COLUMNS,
        Column(header, lambda rule: format_number(rule.detectable)),
        *make_columns(sizes, lambda i, rule: format_percent(rule.differences[i].power)),
    ]
    yield make_table(f"What {pluralize(plan.spread.queries, 'query')} can show", columns, rules)


def _format_critical(rule: RulePlan) -> str:
    return f"{rule.critical_value:.2f}" if math.isfinite(rule.critical_value) else "none"


RULE_COLUMNS: tuple[Column[RulePlan], ...] = (
    Column("decision", lambda rule: rule.name, is_text=True, is_name=True),
    Column("command", lambda rule: COMMANDS[rule.name], is_text=True),
    Column("critical t", _format_critical, is_optional=True),
)


def _format_power(plan: PowerPlan) -> str:
    return f"{plan.power:g}".removeprefix("0")
