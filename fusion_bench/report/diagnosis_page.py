"""The failures of an experiment's systems as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TypeAlias

from fusion_bench.checks.collection_warnings import find_warnings, warn_settings
from fusion_bench.checks.records import DataWarning
from fusion_bench.evaluation.diagnosis import (
    ChangeRecord,
    DiagnosedCollection,
    Diagnosis,
    FailureCount,
    FailureRecord,
    SystemDiagnosis,
)
from fusion_bench.evaluation.failures import KINDS, FailureKind
from fusion_bench.evaluation.report_records import format_scope
from fusion_bench.report.answer_texts import DIFFERENCE
from fusion_bench.report.data_warnings import judge_section, list_findings
from fusion_bench.report.page import (
    Column,
    Finding,
    Page,
    Section,
    Table,
    Tone,
    columns_of,
    make_columns,
    make_table,
)
from fusion_bench.stats.inference import MIN_CHANGED
from fusion_bench.util.formatting import (
    UNADJUSTED,
    format_coverage,
    format_interval,
    format_percent,
    pluralize,
)

PLURALS: dict[FailureKind, str] = {
    "dilution": "dilutions",
    "burial": "burials",
    "miss": "misses",
    "inversion": "inversions",
}
#: So many systems are named; more are counted.
MAX_NAMES = 4


def _pluralize_failures(count: int, kind: FailureKind) -> str:
    """A number of failures with their name: ``1 miss``, ``2 burials``."""
    return f"{count:,} {kind if count == 1 else PLURALS[kind]}"


def _name_systems(names: Sequence[str]) -> str:
    """Their names, or the first and how many more."""
    if len(names) <= MAX_NAMES:
        return ", ".join(names)
    return f"{names[0]} and {pluralize(len(names) - 1, 'other')}"


#: A column of nothing else is left out.
NOTHING = {"", "–", "0"}


def _format_rank(rank: int | None) -> str:
    return "–" if rank is None else f"{rank:,}"


def _format_marks(failure: FailureRecord) -> str:
    marks = ["tied"] if failure.is_tied else []
    if failure.is_caused is not None:
        marks.insert(0, "caused" if failure.is_caused else "as the baseline")
    return ", ".join(marks)


LIST_COLUMNS: tuple[Column[FailureRecord], ...] = (
    Column("query", lambda failure: failure.query, is_text=True),
    Column("document", lambda failure: failure.document, is_text=True, is_name=True),
    Column("grade", lambda failure: str(failure.grade), is_optional=True),
    Column("fused rank", lambda failure: _format_rank(failure.fused_rank)),
    Column("rank", lambda failure: _format_rank(failure.rank)),
    Column("baseline rank", lambda failure: _format_rank(failure.baseline_rank)),
    Column("relevant above", lambda failure: f"{failure.relevant_above:,}", is_optional=True),
    Column("not relevant above", lambda failure: f"{failure.not_relevant_above:,}"),
    Column("unjudged above", lambda failure: f"{failure.unjudged_above:,}"),
    Column("notes", _format_marks, is_text=True),
)


def _build_failure_lists(collection: DiagnosedCollection, kind: FailureKind) -> Iterator[Table]:
    """One table a system, with its first failures."""
    for system in collection.systems:
        count = system.count(kind)
        if count.worst:
            more = count.failures - len(count.worst)
            notes = (f"{more:,} more: --top {count.failures} lists all.",) if more else ()
            title = f"{system.name}: {_pluralize_failures(count.failures, kind)}, the worst first"
            table = make_table(title, LIST_COLUMNS, count.worst, notes=notes)
            yield table.without_columns_of(NOTHING)


#: Stands beside such an interval.
FEW_CHANGED = " (few)"
#: A system's name and its failures.
Counted: TypeAlias = tuple[str, FailureCount]


def _format_detail(field: str, row: Counted) -> str:
    return f"{attrgetter(field)(row[1]):,}"


#: Field and header → what it means.
DETAILS = {
    ("change.cures_without_gain", "no gain"): "cures whose final rank is no better than under {}",
    ("change.causes_without_loss", "no loss"): "causes whose final rank is no worse than under {}",
    ("behind_relevant", "behind relevant"): "failures with relevant documents only above",
    (
        "undecided",
        "unjudged above",
    ): "failures with unjudged documents above and none that is judged not relevant",
    ("tied", "tied"): "failures that another order of tied documents would undo",
}
#: Of what a system cures and causes; left out where every number is 0.
DETAIL_COLUMNS: tuple[Column[Counted], ...] = tuple(
    Column(header, partial(_format_detail, field), is_optional=True, legend=legend)
    for (field, header), legend in DETAILS.items()
)


def _count_changed(change: ChangeRecord) -> int:
    return change.improved_queries + change.worsened_queries


def _mark_few(change: ChangeRecord) -> str:
    return FEW_CHANGED if _count_changed(change) < MIN_CHANGED else ""


def _format_changed(change: ChangeRecord) -> str:
    same = change.queries - _count_changed(change)
    return f"{change.improved_queries:,}/{same:,}/{change.worsened_queries:,}"


def _build_change_table(
    diagnosis: Diagnosis, collection: DiagnosedCollection, kind: FailureKind
) -> Table | None:
    """What each system cures and causes; None where none does either.

    Systems that change nothing are named below the table.
    """
    counts = [(system.name, system.count(kind)) for system in collection.systems]
    compared = [(name, count, count.change) for name, count in counts if count.change is not None]
    rows = [(name, count) for name, count, change in compared if change.cures or change.causes]
    if not rows:
        return None
    unchanged = [name for name, _, change in compared if not change.cures + change.causes]
    interval = f"{format_coverage(float(diagnosis.settings['alpha']))} interval{UNADJUSTED}"
    changes: tuple[Column[ChangeRecord], ...] = (
        Column("cures", lambda change: f"{change.cures:,}"),
        Column("causes", lambda change: f"{change.causes:,}"),
        DIFFERENCE,
        Column(interval, lambda c: f"{format_interval(c.low, c.high, signed=True)}{_mark_few(c)}"),
        Column("fewer/same/more", _format_changed, is_optional=True),
    )
    columns: list[Column[Counted]] = [
        Column("system", lambda row: row[0], is_text=True),
        Column(PLURALS[kind], lambda row: _format_failures(row[1]), is_optional=True),
        *columns_of(changes, lambda row: row[1].change),
        *(column for column in DETAIL_COLUMNS if any(column.cell(row) != "0" for row in rows)),
    ]
    title = f"What each system cures and causes: {PLURALS[kind]} against {collection.baseline}"
    table = make_table(title, columns, rows, tone=_change_tone)
    notes = [*_change_notes(collection, kind, table)]
    if unchanged:
        notes.append(f"Without any change: {_name_systems(unchanged)}.")
    return replace(table, notes=tuple(notes))


def _format_failures(count: FailureCount) -> str:
    return "n/a" if count.not_applicable is not None else f"{count.failures:,}"


def _change_tone(row: Counted) -> Tone:
    change = row[1].change
    if change is None or _mark_few(change):
        return "plain"
    if change.high is not None and change.high < 0:
        return "better"
    return "worse" if change.low is not None and change.low > 0 else "plain"


def _change_notes(
    collection: DiagnosedCollection, kind: FailureKind, table: Table
) -> Iterator[str]:
    base = collection.baseline
    groups = ""
    if collection.groups < collection.queries:
        groups = f", by {pluralize(collection.groups, 'group')}"
    yield (
        f"Cures = fails under {base} and not here; causes = the reverse. Difference = "
        f"{PLURALS[kind]} per query, system - {base}, paired{groups}: below 0 is fewer. "
        "Intervals are not adjusted for the number of systems."
    )
    if any(FEW_CHANGED in cell for row in table.rows for cell in row.cells):
        yield (
            f"{FEW_CHANGED.strip()} = fewer than {MIN_CHANGED} queries differ: the interval is not "
            "reliable."
        )
    if table.legends:
        yield f"{'; '.join(table.legends).replace('{}', base)}."
    if kind == "burial" and collection.system(base).count(kind).not_applicable is not None:
        yield (
            f"{base} has no reranker, so it buries nothing. To compare reranked systems: "
            "--set baseline=NAME."
        )


def build_diagnosis_page(diagnosis: Diagnosis, listed: FailureKind | None = None) -> Page:
    """The failures of every system, and what each cures and causes.

    Args:
        diagnosis: What was found.
        listed: The kind whose failures are listed, and the only one whose changes are shown; None =
            the changes of every kind, and lists for those who unfold them.
    """
    warnings = [_find_warnings(diagnosis, collection) for collection in diagnosis.collections]
    sections = [section for each in warnings for section in judge_section(each)]
    for collection, found in zip(diagnosis.collections, warnings, strict=True):
        sections.append(_build_section(diagnosis, collection, listed, found))
        for kind in KINDS if listed is None else (listed,):
            tables = tuple(_build_failure_lists(collection, kind))
            if tables:
                title = f"List of {PLURALS[kind]} on {collection.name}"
                sections.append(Section(title, parts=tables, is_folded=listed is None))
    first, *others = (
        line
        for collection in diagnosis.collections
        for line in _describe(collection, is_alone=len(diagnosis.collections) == 1)
    )
    headline = Finding(first, key="decision", details=tuple(others))
    settings, provenance = diagnosis.settings, diagnosis.provenance
    values = [f"{key} {settings[key]}" for key in ("ties", "seed", "alpha")]
    values += [] if provenance.v2_enabled else ["RAG_FUSION_V2_ENABLED off"]
    values += [f"--set {override}" for override in provenance.overrides]
    facts = {
        **provenance.facts,
        "settings": ", ".join(values),
        **{f"fingerprint of {item.name}": item.fingerprint for item in diagnosis.collections},
    }
    return Page(
        f"Diagnosis: {diagnosis.name}",
        tuple(sections),
        headline,
        Section("Provenance", summary=f"{provenance.origin}; {', '.join(values)}", facts=facts),
    )


def _describe(collection: DiagnosedCollection, *, is_alone: bool) -> Iterator[str]:
    """The baseline's failures, then for each kind the systems with the fewest and the most."""
    baseline = collection.system(collection.baseline)
    counts = ", ".join(
        f"{_pluralize_failures(count.failures, count.kind)} of {count.exposed:,}"
        for count in baseline.counts
        if count.not_applicable is None
    )
    yield f"{baseline.name} on {collection.name}: {counts}."
    for kind in KINDS:
        systems = [s for s in collection.systems if s.count(kind).not_applicable is None]
        totals = {system.name: system.count(kind).failures for system in systems}
        if len(set(totals.values())) > 1:
            few, many = (
                f"{extreme:,} ({_name_systems([n for n in totals if totals[n] == extreme])})"
                for extreme in (min(totals.values()), max(totals.values()))
            )
            place = "" if is_alone else f" on {collection.name}"
            yield f"{kind}{place}: from {few} to {many}."


def _find_warnings(diagnosis: Diagnosis, collection: DiagnosedCollection) -> list[DataWarning]:
    """What speaks against the judge, the lists and the settings."""
    found = find_warnings(
        collection.runs,
        collection.queries,
        configs={},
        measures=(),
        judge=collection.judge,
        grades=(),
        binary_relevance=collection.binary_relevance,
    )
    v2_enabled = diagnosis.provenance.v2_enabled
    return [*found, *warn_settings(diagnosis.settings, v2_enabled=v2_enabled)]


def _build_section(
    diagnosis: Diagnosis,
    collection: DiagnosedCollection,
    listed: FailureKind | None,
    warnings: Sequence[DataWarning],
) -> Section:
    shown = [kind for kind in KINDS if _is_applicable(collection, kind)]
    changes = [kind for kind in shown if listed in (None, kind)]
    tables = (_build_change_table(diagnosis, collection, kind) for kind in changes)
    scope = format_scope(collection.split, collection.query_type, collection.where)
    queries = pluralize(collection.queries, "query")
    columns: list[Column[SystemDiagnosis]] = [
        Column("system", lambda system: system.name, is_text=True),
        *make_columns({kind: PLURALS[kind] for kind in shown}, _format_exposed),
    ]
    notes = [f"{kind} = {diagnosis.definitions[kind]}." for kind in shown]
    notes.append(
        "Each cell: relevant documents that fail, of those that could. Relevant = grade "
        f"{collection.binary_relevance} or above."
    )
    reasons: dict[str, list[str]] = {}
    for system in collection.systems:
        for kind in shown:
            reason = system.count(kind).not_applicable
            if reason is not None:
                reasons.setdefault(f"{kind} not applicable: {reason}", []).append(system.name)
    notes += [f"{reason}: {_name_systems(names)}." for reason, names in reasons.items()]
    return Section(
        title=f"{collection.name} {collection.version}{scope}: {queries}, "
        f"{pluralize(collection.relevant, 'relevant document')}",
        findings=(*_list_findings(collection), *list_findings(warnings)),
        parts=(
            make_table(
                "Failures",
                columns,
                collection.systems,
                notes=notes,
                tone=lambda system: "baseline" if system.name == collection.baseline else "plain",
            ),
            *(table for table in tables if table is not None),
        ),
    )


def _is_applicable(collection: DiagnosedCollection, kind: FailureKind) -> bool:
    return any(system.count(kind).not_applicable is None for system in collection.systems)


def _list_findings(collection: DiagnosedCollection) -> Iterator[Finding]:
    """What no table says: kinds that cannot occur, and what no list has."""
    baseline = collection.system(collection.baseline)
    if collection.trial is not None:
        yield Finding(f"The failures are those of {collection.trial}.", key="trial")
    for kind in KINDS:
        reason = baseline.count(kind).not_applicable
        if not _is_applicable(collection, kind):
            text = f"{kind}: not applicable to any system: {reason}."
            yield Finding(text, key="not_applicable")
        elif len(collection.systems) > 1 and (finding := _find_no_change(collection, kind)):
            yield finding
    if collection.missed_by_all:
        share = format_percent(collection.missed_by_all / collection.relevant)
        documents = pluralize(collection.missed_by_all, "relevant document")
        text = f"No list that these systems read has {documents} ({share}): no fusion finds them."
        yield Finding(text, key="missed_by_all")


def _find_no_change(collection: DiagnosedCollection, kind: FailureKind) -> Finding | None:
    """Why no table compares a kind; None where one does."""
    base = collection.baseline
    changes = [system.count(kind).change for system in collection.systems]
    known = [change for change in changes if change is not None]
    if not known:
        reason = collection.system(base).count(kind).not_applicable
        why = f"not applicable to {base}: {reason}" if reason else f"applicable to {base} alone"
        return Finding(f"{kind}: not compared, as it is {why}.", key="not_compared")
    if not any(change.cures + change.causes for change in known):
        return Finding(f"{kind}: no system cures or causes any against {base}.", key="no_change")
    return None


def _format_exposed(kind: FailureKind, system: SystemDiagnosis) -> str:
    count = system.count(kind)
    return f"{_format_failures(count)}{'' if count.not_applicable else f' of {count.exposed:,}'}"
