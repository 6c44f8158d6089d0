"""The failures of an experiment's systems as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusion_bench.evaluation.dataset_checks.data_warnings import find_list_warnings
from fusion_bench.evaluation.judge_checks.judge_warnings import find_judge_warnings
from fusion_bench.evaluation.report_records.scope import format_scope
from fusion_bench.explain.diagnose_failures import KINDS, FailureKind
from fusion_bench.explain.diagnosis import DiagnosedCollection, Diagnosis, FailureCount
from fusion_bench.report.diagnosis.change_table import build_change_table
from fusion_bench.report.diagnosis.failure_list import build_failure_lists
from fusion_bench.report.diagnosis.failure_names import PLURALS, name_systems, pluralize_failures
from fusion_bench.report.evaluation.data_warnings import list_findings, setting_warnings
from fusion_bench.report.judging.judge_section import judge_section
from fusion_bench.report.page import Column, Finding, Page, Row, Section, Table, Tone
from fusion_bench.util.formatting import format_percent, pluralize


def build_diagnosis_page(diagnosis: Diagnosis, listed: FailureKind | None = None) -> Page:
    """The failures of every system, and what each cures and causes.

    Args:
        diagnosis: What was found.
        listed: The kind whose failures are listed, and the only one whose changes are shown; None =
            the changes of every kind, and lists for those who unfold them.
    """
    sections = [
        section
        for collection in diagnosis.collections
        for section in judge_section(find_judge_warnings(collection.judge, collection.runs))
    ]
    for collection in diagnosis.collections:
        sections.append(_build_section(diagnosis, collection, listed))
        for kind in KINDS if listed is None else (listed,):
            tables = tuple(build_failure_lists(collection, kind))
            if tables:
                title = f"List of {PLURALS[kind]} on {collection.name}"
                sections.append(Section(title, parts=tables, is_folded=listed is None))
    first, *others = (
        line
        for collection in diagnosis.collections
        for line in _describe(collection, is_alone=len(diagnosis.collections) == 1)
    )
    headline = Finding(first, key="decision", details=tuple(others))
    return Page(f"Diagnosis: {diagnosis.name}", tuple(sections), headline, _provenance(diagnosis))


def _provenance(diagnosis: Diagnosis) -> Section:
    settings, provenance = diagnosis.settings, diagnosis.provenance
    origin = f"{provenance.source}, {provenance.created}"
    values = [f"{key} {settings[key]}" for key in ("ties", "seed", "alpha")]
    values += [] if provenance.v2_enabled else ["RAG_FUSION_V2_ENABLED off"]
    values += [f"--set {override}" for override in provenance.overrides]
    facts = {
        "created": provenance.created,
        "experiment": f"{provenance.source} (SHA-256 {provenance.source_sha256})",
        "settings": ", ".join(values),
        "versions": ", ".join(f"{name} {v}" for name, v in provenance.versions.items()),
        **{f"fingerprint of {item.name}": item.fingerprint for item in diagnosis.collections},
    }
    return Section("Provenance", summary=f"{origin}; {', '.join(values)}", facts=facts)


def _describe(collection: DiagnosedCollection, *, is_alone: bool) -> Iterator[str]:
    """The baseline's failures, then for each kind the systems with the fewest and the most."""
    baseline = collection.system(collection.baseline)
    counts = ", ".join(
        f"{pluralize_failures(count.failures, count.kind)} of {count.exposed:,}"
        for count in baseline.counts
        if count.not_applicable is None
    )
    yield f"{baseline.name} on {collection.name}: {counts}."
    for kind in KINDS:
        systems = [s for s in collection.systems if s.count(kind).not_applicable is None]
        totals = {system.name: system.count(kind).failures for system in systems}
        if len(set(totals.values())) > 1:
            few, many = (
                f"{extreme:,} ({name_systems([n for n in totals if totals[n] == extreme])})"
                for extreme in (min(totals.values()), max(totals.values()))
            )
            place = "" if is_alone else f" on {collection.name}"
            yield f"{kind}{place}: from {few} to {many}."


def _build_section(
    diagnosis: Diagnosis, collection: DiagnosedCollection, listed: FailureKind | None
) -> Section:
    shown = [kind for kind in KINDS if _is_applicable(collection, kind)]
    changes = [kind for kind in shown if listed in (None, kind)]
    tables = (build_change_table(diagnosis, collection, kind) for kind in changes)
    scope = format_scope(collection.split, collection.query_type, collection.where)
    queries = pluralize(collection.queries, "query")
    return Section(
        title=f"{collection.name} {collection.version}{scope}: {queries}, "
        f"{pluralize(collection.relevant, 'relevant document')}",
        findings=(
            *_list_findings(collection),
            *setting_warnings(diagnosis.settings, diagnosis.provenance),
            *list_findings(find_list_warnings(collection.runs, collection.queries)),
        ),
        parts=(
            _count_table(diagnosis, collection, shown),
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


def _count_table(
    diagnosis: Diagnosis, collection: DiagnosedCollection, kinds: Sequence[FailureKind]
) -> Table:
    columns = (Column("system", is_text=True), *(Column(PLURALS[kind]) for kind in kinds))
    rows = []
    for system in collection.systems:
        cells = (_count_cell(system.count(kind)) for kind in kinds)
        tone: Tone = "baseline" if system.name == collection.baseline else "plain"
        rows.append(Row((system.name, *cells), tone))
    notes = [f"{kind} = {diagnosis.definitions[kind]}." for kind in kinds]
    notes.append(
        "Each cell: relevant documents that fail, of those that could. Relevant = grade "
        f"{collection.binary_relevance} or above."
    )
    reasons: dict[str, list[str]] = {}
    for system in collection.systems:
        for kind in kinds:
            reason = system.count(kind).not_applicable
            if reason is not None:
                reasons.setdefault(f"{kind} not applicable: {reason}", []).append(system.name)
    notes += [f"{reason}: {name_systems(names)}." for reason, names in reasons.items()]
    return Table("Failures", columns, tuple(rows), tuple(notes))


def _count_cell(count: FailureCount) -> str:
    if count.not_applicable is not None:
        return "n/a"
    return f"{count.failures:,} of {count.exposed:,}"
