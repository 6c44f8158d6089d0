"""The failures of each system, the worst first."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.explain.diagnose_failures import FailureKind
from fusion_bench.explain.diagnosis import DiagnosedCollection, FailureRecord
from fusion_bench.report.diagnosis.failure_names import pluralize_failures
from fusion_bench.report.page import Column, Row, Table

#: A column of nothing else is left out.
NOTHING = {"", "–", "0"}

LIST_COLUMNS = (
    Column("query", is_text=True),
    Column("document", is_text=True, is_name=True),
    Column("grade", is_optional=True),
    *map(Column, ("fused rank", "rank", "baseline rank")),
    Column("relevant above", is_optional=True),
    Column("not relevant above"),
    Column("unjudged above"),
    Column("notes", is_text=True),
)


def build_failure_lists(collection: DiagnosedCollection, kind: FailureKind) -> Iterator[Table]:
    """One table a system, with its first failures."""
    for system in collection.systems:
        count = system.count(kind)
        if count.worst:
            rows = tuple(Row(_failure_cells(failure)) for failure in count.worst)
            more = count.failures - len(rows)
            notes = (f"{more:,} more: --top {count.failures} lists all.",) if more else ()
            title = f"{system.name}: {pluralize_failures(count.failures, kind)}, the worst first"
            kept = {i for row in rows for i, cell in enumerate(row.cells) if cell not in NOTHING}
            yield Table(title, LIST_COLUMNS, rows, notes).select_columns(kept.__contains__)


def _failure_cells(failure: FailureRecord) -> tuple[str, ...]:
    """The cells of :data:`LIST_COLUMNS`."""
    marks = ["tied"] if failure.is_tied else []
    if failure.is_caused is not None:
        marks.insert(0, "caused" if failure.is_caused else "as the baseline")
    ranks = (failure.fused_rank, failure.rank, failure.baseline_rank)
    above = (failure.relevant_above, failure.not_relevant_above, failure.unjudged_above)
    return (
        failure.query,
        failure.document,
        str(failure.grade),
        *("–" if rank is None else f"{rank:,}" for rank in ranks),
        *(f"{count:,}" for count in above),
        ", ".join(marks),
    )
