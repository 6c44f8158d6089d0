"""How much of the candidate's lists is judged, and what the rest could make of its means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusion_bench.gate.records.check_result import CheckResult
from fusion_bench.report.judging.judged_columns import JudgedColumns, note_unknown_ends
from fusion_bench.report.page import Column, Row, Table


def judged_tables(checks: Sequence[CheckResult]) -> Iterator[Table]:
    """The table, with a row for each check whose judgments are not complete; none without such."""
    known = [check for check in checks if check.bounds is not None]
    if known:
        judged = JudgedColumns.of_rows(check.bounds for check in known)
        rows = tuple(Row((check.display_name, *judged.cells(check.bounds))) for check in known)
        columns = (Column("check", is_text=True), *judged.columns)
        unknown = note_unknown_ends((check.measure, check.bounds) for check in known)
        title = "Judged documents of the candidate"
        yield Table(title, columns, rows, (*judged.notes, *unknown))
