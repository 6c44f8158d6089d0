"""What changed since the last report: settings, data, systems and queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusion_bench.evaluation.report_changes.records import (
    CollectionChange,
    ReportChange,
    SettingChange,
    SystemChange,
)
from fusion_bench.report.answer_texts import (
    describe_few_changes,
    find_answer_tone,
    format_adjusted_p,
    format_answer,
    format_compared_interval,
)
from fusion_bench.report.page import Column, Finding, Row, Section, Table
from fusion_bench.util.formatting import format_coverage, format_number, pluralize

ABSENT = "absent"
#: What the intervals of changes account for.
PAIRED = "they hold together for all systems that both reports have"


def change_section(change: ReportChange, min_gain: float) -> Section:
    """The section of a page.

    Args:
        change: From the last report to this one.
        min_gain: The least gain, as answers name it.
    """
    findings = tuple(_describe(change))
    tables = tuple(_tables(change, min_gain))
    title = f"Since the report of {change.then}"
    return Section(title, findings=findings, parts=tables, key="change")


def _describe(change: ReportChange) -> Iterator[Finding]:
    if not change.is_changed:
        yield Finding("No setting, system, list or value changed.", key="change")
    for each in change.collections:
        yield from describe_collection(each)


def describe_collection(change: CollectionChange) -> Iterator[Finding]:
    """What changed on one collection, and what speaks against comparing it."""
    if change.status != "both":
        text = "is new" if change.status == "new" else "is not evaluated any more"
        yield Finding(f"{change.name} {text}.", key="change")
        return
    systems = [system for system in change.systems if system.is_changed]
    if systems or change.queries.changed:
        yield Finding(
            f"{change.name}: {pluralize(len(systems), 'system')} of {len(change.systems):,} and "
            f"the values of {pluralize(change.queries.changed, 'query')} changed.",
            key="change",
        )
    if change.data:
        yield Finding(
            f"{change.name}: the contents of {', '.join(change.data)} changed.", "warning", "change"
        )
    if change.queries_added or change.queries_removed:
        yield Finding(
            f"{change.name}: {pluralize(change.queries_added, 'query')} added, "
            f"{change.queries_removed:,} removed. Differences are over those of both reports.",
            "warning",
            "change",
        )


def _tables(change: ReportChange, min_gain: float) -> Iterator[Table]:
    settings = setting_table(change)
    if settings is not None:
        yield settings
    for collection in change.collections:
        yield from value_tables(collection, min_gain)


def setting_table(change: ReportChange) -> Table | None:
    """Every value of a configuration that changed; systems that changed alike share a row."""
    owners: dict[SettingChange, list[str]] = {}
    for kind, changes in (("setting", change.settings), ("version", change.versions)):
        for each in changes:
            owners.setdefault(each, []).append(kind)
    for collection in change.collections:
        for system in collection.systems:
            for each in system.config:
                names = owners.setdefault(each, [])
                names += [] if system.name in names else [system.name]
    rows = tuple(
        Row((", ".join(names), each.path, each.then or ABSENT, each.now or ABSENT))
        for each, names in owners.items()
    )
    title = "Configuration then and now"
    return Table(title, _text_columns("of", "path", "then", "now"), rows) if rows else None


def value_tables(
    collection: CollectionChange, min_gain: float, *, alpha: float = 0.05
) -> Iterator[Table]:
    """The systems that changed, and the queries.

    Args:
        collection: What changed on it.
        min_gain: The least gain, as answers name it.
        alpha: 1 − coverage of the intervals, where there are some.
    """
    systems = [system for system in collection.systems if system.is_changed]
    if systems:
        yield _system_table(collection, systems, min_gain, alpha)
    if collection.queries.rows:
        yield _query_table(collection)


def _text_columns(*headers: str) -> tuple[Column, ...]:
    return tuple(Column(header, is_text=True) for header in headers)


def _system_table(
    collection: CollectionChange, systems: Sequence[SystemChange], min_gain: float, alpha: float
) -> Table:
    """Columns that no row fills are left out."""
    columns = (
        Column("system", is_text=True),
        *map(Column, ("then", "now", "difference", "interval", "adj. p", "better", "worse")),
        *_text_columns("change", "verdict then", "verdict now"),
    )
    rows = tuple(_system_row(system, min_gain, alpha) for system in systems)
    note = (
        "Means over all queries of each report; the difference is now - then over the queries that "
        "both have. better, worse = queries whose value is greater or less now."
    )
    comparisons = [row.comparison for row in collection.systems if row.comparison is not None]
    coverage = format_coverage(alpha)
    notes = [note, describe_few_changes(comparisons, coverage)]
    if comparisons:
        notes.insert(1, f"interval, adj. p = paired by query; {PAIRED}.")
    title = f"{collection.measure} on {collection.name}"
    return Table(title, columns, rows, tuple(filter(None, notes))).without_empty_columns()


def _system_row(system: SystemChange, min_gain: float, alpha: float) -> Row:
    then, now = (
        ABSENT if mean is None else format_number(mean) for mean in (system.then, system.now)
    )
    difference, counts = "", ("", "")
    if system.difference is not None:
        difference = format_number(system.difference, signed=True)
        counts = (f"{system.better:,}", f"{system.worse:,}")
    comparison, tested = system.comparison, ("", "")
    if comparison is not None:
        p = format_adjusted_p(comparison, alpha)
        tested = (format_compared_interval(comparison), p)
    answers = (
        format_answer(answer, min_gain, alpha=alpha)
        for answer in (system.answer, system.answer_then, system.answer_now)
    )
    answer = system.answer_now if comparison is None else system.answer
    cells = (system.name, then, now, difference, *tested, *counts, *answers)
    return Row(cells, find_answer_tone(answer))


def _query_table(collection: CollectionChange) -> Table:
    rows = tuple(
        Row(
            (
                row.query,
                row.system,
                format_number(row.then),
                format_number(row.now),
                format_number(row.now - row.then, signed=True),
            )
        )
        for row in collection.queries.rows
    )
    columns = (*_text_columns("query", "system"), *map(Column, ("then", "now", "difference")))
    count = pluralize(collection.queries.changed, "changed query")
    note = f"Of {count}, each with the system on which it changed most."
    return Table(f"Queries of {collection.name} that changed most", columns, rows, (note,))
