"""What changed since the last report: settings, data, systems and queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fusion_bench.evaluation.report_changes.records import (
    CollectionChange,
    ReportChange,
    SettingChange,
    SystemChange,
)
from fusion_bench.report.answer_texts import find_answer_tone, format_answer
from fusion_bench.report.page import Column, Finding, Row, Section, Table
from fusion_bench.util.formatting import format_number, pluralize

ABSENT = "absent"


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
        yield from _describe_collection(each)


def _describe_collection(change: CollectionChange) -> Iterator[Finding]:
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
    settings = {"setting": change.settings, "version": change.versions}
    rows = [_setting_row(kind, each) for kind, rows in settings.items() for each in rows]
    for collection in change.collections:
        rows += _config_rows(collection)
    if rows:
        yield Table(
            "Configuration then and now", _text_columns("of", "path", "then", "now"), tuple(rows)
        )
    for collection in change.collections:
        systems = [system for system in collection.systems if system.is_changed]
        if systems:
            yield _system_table(collection, systems, min_gain)
        if collection.queries.rows:
            yield _query_table(collection)


def _text_columns(*headers: str) -> tuple[Column, ...]:
    return tuple(Column(header, is_text=True) for header in headers)


def _setting_row(owner: str, change: SettingChange) -> Row:
    return Row((owner, change.path, change.then or ABSENT, change.now or ABSENT))


def _config_rows(collection: CollectionChange) -> Iterator[Row]:
    for system in collection.systems:
        yield from (_setting_row(system.name, change) for change in system.config)


def _system_table(
    collection: CollectionChange, systems: Iterable[SystemChange], min_gain: float
) -> Table:
    columns = (
        Column("system", is_text=True),
        *map(Column, ("then", "now", "difference", "better", "worse")),
        *_text_columns("verdict then", "verdict now"),
    )
    rows = []
    for system in systems:
        answers = (format_answer(a, min_gain) for a in (system.answer_then, system.answer_now))
        then, now = (
            ABSENT if mean is None else format_number(mean) for mean in (system.then, system.now)
        )
        numbers: tuple[str, ...] = ("", "", "")
        if system.difference is not None:
            difference = format_number(system.difference, signed=True)
            numbers = (difference, f"{system.better:,}", f"{system.worse:,}")
        rows.append(
            Row((system.name, then, now, *numbers, *answers), find_answer_tone(system.answer_now))
        )
    note = (
        "Means over all queries of each report; the difference is now - then over the queries that "
        "both have. better, worse = queries whose value is greater or less now."
    )
    return Table(f"{collection.measure} on {collection.name}", columns, tuple(rows), (note,))


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
