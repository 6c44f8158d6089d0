"""The page of two reports: what changed in configuration, in numbers, in queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from fusion_bench.checks.collection_warnings import (
    V2_DISABLED,
    join_collections,
    merge_warnings,
    warn_v2,
)
from fusion_bench.evaluation.compared_reports import SystemGain, explain_untested, find_list_gain
from fusion_bench.evaluation.report_changes import (
    CollectionChange,
    QueryChange,
    ReportChange,
    SettingChange,
    SystemChange,
)
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.report_records import Collection
from fusion_bench.measures.aliases import display_measure
from fusion_bench.report import answer_texts, page
from fusion_bench.report.data_warnings import find_report_warnings, warning_sections
from fusion_bench.stats.comparison import BETTER, WORSE
from fusion_bench.stats.intervals import MeanEstimate
from fusion_bench.util.formatting import (
    format_difference,
    format_number,
    pluralize,
)

ABSENT = "absent"
#: What the intervals of changes account for.
PAIRED = "they hold together for all systems that both reports have"


def change_section(change: ReportChange, min_gain: float) -> page.Section:
    """The section of a page.

    Args:
        change: From the last report to this one.
        min_gain: The least gain, as answers name it.
    """
    findings: list[page.Finding] = []
    if not change.is_changed:
        findings.append(page.Finding("No setting, system, list or value changed.", key="change"))
    settings = _setting_table(change)
    tables = [] if settings is None else [settings]
    for each in change.collections:
        findings += _describe_collection(each)
        tables += _value_tables(each, min_gain)
    title = f"Since the report of {change.then}"
    return page.Section(title, findings=tuple(findings), parts=tuple(tables), key="change")


def _describe_collection(change: CollectionChange) -> Iterator[page.Finding]:
    """What changed on one collection, and what speaks against comparing it."""
    if change.status != "both":
        text = "is new" if change.status == "new" else "is not evaluated any more"
        yield page.Finding(f"{change.name} {text}.", key="change")
        return
    systems = [system for system in change.systems if system.is_changed]
    if systems or change.queries.changed:
        yield page.Finding(
            f"{change.name}: {pluralize(len(systems), 'system')} of {len(change.systems):,} and "
            f"the values of {pluralize(change.queries.changed, 'query')} changed.",
            key="change",
        )
    if change.data:
        yield page.Finding(
            f"{change.name}: the contents of {', '.join(change.data)} changed.", "warning", "change"
        )
    if change.queries_added or change.queries_removed:
        yield page.Finding(
            f"{change.name}: {pluralize(change.queries_added, 'query')} added, "
            f"{change.queries_removed:,} removed. Differences are over those of both reports.",
            "warning",
            "change",
        )


def _setting_table(change: ReportChange) -> page.Table | None:
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
    columns: list[page.Column[tuple[SettingChange, list[str]]]] = [
        page.Column("of", lambda pair: ", ".join(pair[1]), is_text=True),
        page.Column("path", lambda pair: pair[0].path, is_text=True),
        page.Column("then", lambda pair: pair[0].then or ABSENT, is_text=True),
        page.Column("now", lambda pair: pair[0].now or ABSENT, is_text=True),
    ]
    return (
        page.make_table("Configuration then and now", columns, owners.items()) if owners else None
    )


def _value_tables(
    collection: CollectionChange, min_gain: float, *, alpha: float = 0.05
) -> Iterator[page.Table]:
    """The systems that changed, and the queries.

    Args:
        collection: What changed on it.
        min_gain: The least gain, as answers name it.
        alpha: 1 − coverage of the intervals, where there are some.
    """
    systems = [system for system in collection.systems if system.is_changed]
    if systems:
        answer = partial(answer_texts.format_answer, min_gain=min_gain)
        columns: list[page.Column[SystemChange]] = [
            page.Column("system", lambda row: row.name, is_text=True),
            page.Column("then", lambda row: _format_mean(row.then)),
            page.Column("now", lambda row: _format_mean(row.now)),
            answer_texts.DIFFERENCE.of(_find_moved),
            page.Column("interval", answer_texts.format_compared_interval).of(
                lambda row: row.comparison
            ),
            answer_texts.p_column(alpha).of(lambda row: row.comparison),
            page.Column[SystemChange]("better", lambda row: f"{row.better:,}").of(_find_moved),
            page.Column[SystemChange]("worse", lambda row: f"{row.worse:,}").of(_find_moved),
            page.Column("change", lambda row: answer(row.answer), is_text=True),
            page.Column("verdict then", lambda row: answer(row.answer_then), is_text=True),
            page.Column("verdict now", lambda row: answer(row.answer_now), is_text=True),
        ]
        note = (
            "Means over all queries of each report; the difference is now - then over the queries "
            "that both have. better, worse = queries whose value is greater or less now."
        )
        comparisons = [row.comparison for row in collection.systems if row.comparison is not None]
        notes = [note, answer_texts.describe_missing_intervals(comparisons)]
        if comparisons:
            notes.insert(1, f"interval, p = paired by query; {PAIRED}.")
        title = f"{display_measure(collection.measure)} on {collection.name}"
        yield page.make_table(
            title, columns, systems, notes=filter(None, notes), tone=_system_tone
        ).without_empty_columns()
    if collection.queries.rows:
        count = pluralize(collection.queries.changed, "changed query")
        note = f"Of {count}, each with the system on which it changed most."
        title = f"Queries of {collection.name} that changed most"
        yield page.make_table(title, QUERY_COLUMNS, collection.queries.rows, notes=(note,))


def _find_moved(row: SystemChange) -> SystemChange | None:
    """The row itself, where it has a difference."""
    return None if row.difference is None else row


def _format_mean(mean: float | None) -> str:
    return ABSENT if mean is None else format_number(mean)


def _system_tone(system: SystemChange) -> page.Tone:
    answer = system.answer_now if system.comparison is None else system.answer
    return answer_texts.find_answer_tone(answer)


#: The queries that changed most.
QUERY_COLUMNS: tuple[page.Column[QueryChange], ...] = (
    page.Column("query", lambda row: row.query, is_text=True),
    page.Column("system", lambda row: row.system, is_text=True),
    page.Column("then", lambda row: format_number(row.then)),
    page.Column("now", lambda row: format_number(row.now)),
    page.Column("difference", lambda row: format_number(row.now - row.then, signed=True)),
)


def _change_in_words(change: ReportChange) -> str:
    """The verdict as a title: ``2 systems better, 1 worse than before``."""
    rows = [row for each in change.collections for row in each.systems]
    if all(row.difference is None for row in rows):
        return "The reports cannot be compared"
    if all(row.comparison is None for row in rows):
        changed = sum(row.is_changed for row in rows)
        return f"{pluralize(changed, 'system')} changed, not tested" if changed else "No change"
    better, worse = (len(_with_answer(rows, answers)) for answers in (BETTER, WORSE))
    if better or worse:
        return f"{pluralize(better, 'system')} better, {worse:,} worse than before"
    is_moved = any(row.better or row.worse for row in rows)
    return "No difference to before is shown" if is_moved else "No value changed"


def _with_answer(rows: Sequence[SystemChange], answers: Sequence[str]) -> list[SystemChange]:
    return [row for row in rows if row.answer in answers]


def _describe_verdict(change: CollectionChange, min_gain: float) -> page.Finding:
    """Counts, then the greatest gain and loss, then the best system then and now."""
    rows = [row for row in change.systems if row.status == "both"]
    moved = [row for row in rows if row.better or row.worse]
    where = f"{display_measure(change.measure)} on {change.name}"
    extremes: list[str] = []
    known = [row for row in moved if row.difference is not None]
    gain = max(known, key=lambda row: row.difference or 0, default=None)
    loss = min(known, key=lambda row: row.difference or 0, default=None)
    for name, row, sign in (("gain", gain, 1), ("loss", loss, -1)):
        if row is not None and row.difference is not None and row.difference * sign > 0:
            size = format_number(row.difference, signed=True)
            if row.comparison is not None:
                size = format_difference(row.difference, row.low, row.high)
            answer = answer_texts.format_answer(row.answer, min_gain)
            verdict = f": {answer}" if answer else ""
            extremes.append(
                f"Greatest {name}: {row.name}, {format_number(row.then)} → "
                f"{format_number(row.now)} ({size}){verdict}."
            )
    lines = (*extremes, *_describe_best(change))
    if all(row.difference is None for row in rows):
        missing = "query with values of the measure" if rows else "system"
        text = f"{where} cannot be compared: the reports have no {missing} in common."
        return page.Finding(text, "warning", "decision")
    if not moved:
        text = f"No value of {pluralize(len(rows), 'system')} changed in {where}."
        return page.Finding(text, "plain", "decision", lines)
    if all(row.comparison is None for row in rows):
        text = f"{len(moved):,} of {pluralize(len(rows), 'system')} changed in {where}: not tested."
        return page.Finding(text, "warning", "decision", lines)
    better, worse = _with_answer(moved, BETTER), _with_answer(moved, WORSE)
    open_count = len(moved) - len(better) - len(worse)
    text = (
        f"{len(better):,} better, {len(worse):,} worse, {open_count:,} not shown, "
        f"{len(rows) - len(moved):,} with the same values: {where}."
    )
    tone: page.Tone = "plain"
    if better and not worse:
        tone = "better"
    if worse and not better:
        tone = "worse"
    return page.Finding(text, tone, "decision", lines)


def _describe_best(change: CollectionChange) -> Iterator[str]:
    """The highest means; they need not be proven."""
    then = [row for row in change.systems if row.then is not None]
    now = [row for row in change.systems if row.now is not None]
    if not then or not now:
        return
    before = max(then, key=lambda row: row.then or 0)
    after = max(now, key=lambda row: row.now or 0)
    means = f"{format_number(before.then)} then, {format_number(after.now)} now"
    if before.name == after.name:
        yield f"The highest mean is that of {after.name} in both reports: {means}."
    else:
        yield (
            f"The highest mean is that of {after.name}, {format_number(after.now)}; it was that of "
            f"{before.name}, {format_number(before.then)}."
        )


SAME_SETTINGS = (
    "Nothing: the settings of the experiment, and of each system that both reports have, are the "
    "same."
)


def build_change_page(
    change: ReportChange, old: Report, new: Report, origins: Sequence[str] = ()
) -> page.Page:
    """Verdict, who gave the grades, configuration then and now, each collection, provenance last.

    Args:
        change: From the old to the new report, with its paired comparisons.
        old: The report before.
        new: The report now.
        origins: Where each report comes from, the old one first.
    """
    before = {each.name: each for each in old.collections}
    after = {each.name: each for each in new.collections}
    sides = {"old report": old, "new report": new}
    merged = merge_warnings(
        {side: [*join_collections(find_report_warnings(each))] for side, each in sides.items()}
    )
    warnings = (
        *(each for each in merged if each.key != V2_DISABLED),
        *warn_v2({f"the {side}": each.provenance.v2_enabled for side, each in sides.items()}),
    )
    sections = [
        _collection_section(each, before.get(each.name), after.get(each.name), new)
        for each in change.collections
    ]
    table = _setting_table(change)
    findings: list[page.Finding] = []
    if table is None:
        findings.insert(0, page.Finding(SAME_SETTINGS))
    for each in change.collections:
        for status, text in (("new", "Only in the new report"), ("gone", "Only in the old one")):
            names = [row.name for row in each.systems if row.status == status]
            if names and each.status == "both":
                findings.insert(0, page.Finding(f"{text}, on {each.name}: {', '.join(names)}."))
    parts = () if table is None else (replace(table, title="Settings then and now"),)
    shared = [each for each in change.collections if each.status == "both"]
    if not shared:
        headline = page.Finding("The reports have no collection in common.", "warning", "decision")
    else:
        headline = page.join_decisions(
            "Changes", [_describe_verdict(each, new.min_gain) for each in shared]
        )
    return page.Page(
        f"Comparison: {new.name}" if old.name == new.name else f"{old.name} → {new.name}",
        (
            *warning_sections(warnings),
            page.Section(
                "What changed in the configuration", findings=tuple(findings), parts=parts
            ),
            *sections,
        ),
        headline,
        _provenance(old, new, origins),
        answer=_change_in_words(change),
    )


def shared_collections(change: ReportChange) -> tuple[CollectionChange, ...]:
    """Those that a browser draws: with systems and queries of both reports, of which one moved."""
    return tuple(
        each
        for each in change.collections
        if each.status == "both" and any(row.better or row.worse for row in each.systems)
    )


def _collection_section(
    change: CollectionChange, old: Collection | None, new: Collection | None, report: Report
) -> page.Section:
    findings = [*_describe_collection(change)]
    reason = None if old is None or new is None else explain_untested(old, new)
    if reason is not None:
        text = f"{change.name}: {reason}, so no difference has an interval or a verdict."
        findings.append(page.Finding(text, "warning", "not tested"))
    if not findings:
        findings.append(page.Finding("No value of any system changed."))
    tables = [*_value_tables(change, report.min_gain, alpha=report.alpha)]
    gain = None if old is None or new is None else find_list_gain(old, new)
    if gain is not None:
        tables.append(list_gain_table(*gain))
    return page.Section(change.name, findings=tuple(findings), parts=tuple(tables))


def list_gain_table(name: str, gains: Sequence[SystemGain]) -> page.Table:
    """What the change of one list is worth alone, fused and reranked."""
    columns: list[page.Column[SystemGain]] = [
        page.Column("system", lambda row: row.system, is_text=True),
        page.Column("gain", lambda row: _format_estimate(row.gain)),
        page.Column("gain − that of the list alone", lambda row: _format_estimate(row.beyond)),
        page.Column(
            "share of it",
            lambda row: ("" if row.share is None else "{:.0%} [{:.0%}, {:.0%}]".format(*row.share)),
        ),
    ]
    note = (
        f"gain = what a system gains by the new {name}, {name} alone first; intervals "
        "are not adjusted. A share is given where the gain of the list alone is shown (Fieller)."
    )
    title = f"What the new {name} is worth"
    return page.make_table(title, columns, gains, notes=(note,)).without_empty_columns()


def _format_estimate(estimate: MeanEstimate | None) -> str:
    return "" if estimate is None else format_difference(estimate.mean, estimate.low, estimate.high)


def _provenance(old: Report, new: Report, origins: Sequence[str]) -> page.Section:
    facts: dict[str, str] = {}
    for i, (side, report) in enumerate((("then", old), ("now", new))):
        data = (f"{each.name} {each.fingerprint[:12]}" for each in report.collections)
        own = {
            "report": report.name,
            **({"file": origins[i]} if origins else {}),
            **report.provenance.facts,
            "data": ", ".join(data),
        }
        facts |= {f"{side}: {key}": value for key, value in own.items()}
    return page.Section("Provenance", facts=facts)
