"""The page of ``fusion-bench power``."""

from __future__ import annotations

import math
from collections.abc import Iterator

from fusion_bench.checks.records import DataWarning
from fusion_bench.report.data_warnings import judge_section
from fusion_bench.report.page import Column, Finding, Page, Row, Section, Table
from fusion_bench.stats.power import MIN_CHANGED_FOR_SPREAD, PowerPlan, RulePlan
from fusion_bench.util.formatting import format_number, format_percent, pluralize

#: Which command decides it, and what the difference is.
COMMANDS = {
    "better or worse": "eval, compare",
    "ship": "tune",
    "alarm": "gate",
    "pass on these queries": "gate",
}
NOTES = (
    "ship: the first look, one-sided; the queries are the held-out ones.",
    "alarm: the true drop at which the gate says fell, if max_drop is well below it.",
    "pass on these queries: with this max_drop, where there is no true difference. Plain pass "
    "needs more: at least ln .05 ÷ ln(1 − max_drop) queries (598 for .005, 299 for .01, 149 for "
    ".02).",
)


def build_power_page(plan: PowerPlan) -> Page:
    """The page of a plan."""
    section = Section(
        facts=dict(_list_facts(plan)),
        summary="; ".join(f"{name} {value}" for name, value in _list_facts(plan)),
        findings=tuple(_list_findings(plan)),
        parts=(_build_needs_table(plan), *_build_hand_tables(plan)),
    )
    first = judge_section(DataWarning(key=each.key, text=each.text) for each in plan.warnings)
    return Page(f"Power: {_describe_source(plan)}", (*first, section))


def _describe_source(plan: PowerPlan) -> str:
    if plan.comparison is None:
        return f"standard deviation {plan.spread.sd:g}"
    of = plan.comparison
    return f"{of.candidate} against {of.baseline}, {of.measure}, {of.collection}"


def _list_facts(plan: PowerPlan) -> Iterator[tuple[str, str]]:
    spread = plan.spread
    yield "standard deviation", format_number(spread.sd)
    if spread.queries is not None:
        yield "queries", f"{spread.queries:,}"
    if spread.changed is not None:
        yield "changed queries", f"{spread.changed:,}"
    if spread.design_effect != 1:
        yield "design effect of groups", f"{spread.design_effect:.2f}"
    if spread.kurtosis is not None:
        yield "kurtosis", f"{spread.kurtosis:.1f}"
    yield "compared systems", f"{plan.systems:,}"
    yield "checks", f"{plan.checks:,}"


def _list_findings(plan: PowerPlan) -> Iterator[Finding]:
    changed = plan.spread.changed
    if changed is not None and changed < MIN_CHANGED_FOR_SPREAD:
        text = (
            f"Only {pluralize(changed, 'query')} changed. Below {MIN_CHANGED_FOR_SPREAD} the "
            "spread is hardly known, so numbers of queries are lower bounds."
        )
        yield Finding(text, "warning", "few changed queries")


def _build_needs_table(plan: PowerPlan) -> Table:
    """Queries needed, one row a rule, one column a difference."""
    sizes = (each.difference for each in plan.rules[0].differences)
    rows = tuple(
        Row((*_rule_cells(rule), *(str(each.needed or "n/a") for each in rule.differences)))
        for rule in plan.rules
    )
    interval = (
        "In brackets: 95 % interval of the number, from the variance of the differences."
        if plan.spread.changed is not None
        else "The standard deviation is assumed, so the numbers have no interval."
    )
    columns = (*_rule_columns(), *(Column(f"{size:g}") for size in sizes))
    title = f"Queries needed to show a difference (power {_format_power(plan)})"
    return Table(title, columns, rows, notes=(interval, *_describe_rules(plan)))


def _build_hand_tables(plan: PowerPlan) -> Iterator[Table]:
    """What the queries at hand show; nothing without queries."""
    queries = plan.spread.queries
    if queries is None:
        return
    sizes = (each.difference for each in plan.rules[0].differences)
    rows = tuple(
        Row(
            (
                *_rule_cells(rule),
                format_number(rule.detectable),
                *(format_percent(each.power) for each in rule.differences),
            )
        )
        for rule in plan.rules
    )
    detectable = Column(f"detectable (power {_format_power(plan)})")
    columns = (*_rule_columns(), detectable, *(Column(f"power at {size:g}") for size in sizes))
    yield Table(f"What {pluralize(queries, 'query')} can show", columns, rows)


def _rule_columns() -> tuple[Column, ...]:
    return (
        Column("decision", is_text=True, is_name=True),
        Column("command", is_text=True),
        Column("critical t", is_optional=True),
    )


def _rule_cells(rule: RulePlan) -> tuple[str, ...]:
    critical = f"{rule.critical_value:.2f}" if math.isfinite(rule.critical_value) else "none"
    return rule.name, COMMANDS[rule.name], critical


def _describe_rules(plan: PowerPlan) -> Iterator[str]:
    better = f"better or worse: two-sided, {pluralize(plan.systems, 'compared system')}, "
    kind = "the report's critical value" if plan.is_family else "Šidák's upper bound"
    yield f"{better}{kind}."
    yield from NOTES


def _format_power(plan: PowerPlan) -> str:
    return f"{plan.power:g}".removeprefix("0")
