"""How much of the candidate's lists is judged, and what the rest could make of its means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusion_bench.gate.records.check_result import CheckResult
from fusion_bench.report.judging.bounds_columns import BOUNDS_HEADER, BOUNDS_NOTE, bound_cells
from fusion_bench.report.page import Column, Row, Table

COLUMNS = (Column("check", is_text=True), Column("Judged@k"), Column(BOUNDS_HEADER))
JUDGED_NOTE = (
    "Judged@k = share of judged documents among the first k; k is the measure's cutoff, or 10."
)


def judged_tables(checks: Sequence[CheckResult]) -> Iterator[Table]:
    """The table, with a row for each check that has bounds; none with complete judgments."""
    rows = tuple(
        Row((check.display_name, *bound_cells(check.bounds)))
        for check in checks
        if check.bounds is not None
    )
    if rows:
        yield Table("Judged documents of the candidate", COLUMNS, rows, (JUDGED_NOTE, BOUNDS_NOTE))
