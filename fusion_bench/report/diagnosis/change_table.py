"""What each system cures and causes, against the baseline."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.explain.diagnose_failures import FailureKind
from fusion_bench.explain.diagnosis import (
    ChangeRecord,
    DiagnosedCollection,
    Diagnosis,
    FailureCount,
)
from fusion_bench.report.diagnosis.failure_names import PLURALS, name_systems
from fusion_bench.report.page import Column, Row, Table, Tone
from fusion_bench.util.formatting import (
    UNADJUSTED,
    format_coverage,
    format_interval,
    format_number,
    pluralize,
)

#: Below this number of changed queries an interval is marked.
MIN_CHANGED = 10
#: Stands beside such an interval.
FEW_CHANGED = "‡"
#: Optional columns of what a system cures and causes; left out where every number is 0.
LEGENDS = {
    "no gain": "cures whose final rank is no better than under {baseline}",
    "no loss": "causes whose final rank is no worse than under {baseline}",
    "behind relevant": "failures with relevant documents only above",
    "undecided": "failures with unjudged documents above and none that is judged not relevant",
    "tied": "failures that another order of tied documents would undo",
}


def build_change_table(
    diagnosis: Diagnosis, collection: DiagnosedCollection, kind: FailureKind
) -> Table | None:
    """What each system cures and causes; None where none does either.

    Systems that change nothing are named below the table.
    """
    counts = {system.name: system.count(kind) for system in collection.systems}
    changes = {name: count.change for name, count in counts.items() if count.change is not None}
    rows = [
        _change_row(name, counts[name], change)
        for name, change in changes.items()
        if change.cures or change.causes
    ]
    if not rows:
        return None
    unchanged = [name for name, change in changes.items() if not change.cures + change.causes]
    interval = f"{format_coverage(float(diagnosis.settings['alpha']))} interval{UNADJUSTED}"
    columns = (
        Column("system", is_text=True),
        Column(PLURALS[kind], is_optional=True),
        *map(Column, ("cures", "causes", "difference", interval)),
        Column("fewer/same/more", is_optional=True),
        *(Column(name, is_optional=True) for name in LEGENDS),
    )
    table = Table("", columns, tuple(rows)).select_columns(
        lambda i: columns[i].header not in LEGENDS or any(row.cells[i] != "0" for row in rows)
    )
    notes = [*_change_notes(collection, kind, table)]
    if unchanged:
        notes.append(f"Without any change: {name_systems(unchanged)}.")
    title = f"What each system cures and causes: {PLURALS[kind]} against {collection.baseline}"
    return Table(title, table.columns, table.rows, tuple(notes))


def _change_row(name: str, count: FailureCount, change: ChangeRecord) -> Row:
    changed = change.improved_queries + change.worsened_queries
    mark = FEW_CHANGED if changed < MIN_CHANGED else ""
    same = change.queries - changed
    cells = (
        name,
        "n/a" if count.not_applicable is not None else f"{count.failures:,}",
        f"{change.cures:,}",
        f"{change.causes:,}",
        format_number(change.difference, signed=True),
        f"{format_interval(change.low, change.high, signed=True)}{mark}",
        f"{change.improved_queries:,}/{same:,}/{change.worsened_queries:,}",
        *(f"{n:,}" for n in (change.cures_without_gain, change.causes_without_loss)),
        *(f"{n:,}" for n in (count.behind_relevant, count.undecided, count.tied)),
    )
    return Row(cells, "plain" if mark else _change_tone(change))


def _change_tone(change: ChangeRecord) -> Tone:
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
        f"{UNADJUSTED} not adjusted for the number of systems."
    )
    if any(FEW_CHANGED in cell for row in table.rows for cell in row.cells):
        yield (
            f"{FEW_CHANGED} fewer than {MIN_CHANGED} queries differ: the interval is not reliable."
        )
    headers = {column.header for column in table.columns}
    shown = [f"{name} = {text}" for name, text in LEGENDS.items() if name in headers]
    if shown:
        yield f"{'; '.join(shown).replace('{baseline}', base)}."
    if kind == "burial" and collection.system(base).count(kind).not_applicable is not None:
        yield (
            f"{base} has no reranker, so it buries nothing. To compare reranked systems: "
            "--set baseline=NAME."
        )
