"""Columns that say how much is judged, and what the rest could make of a mean."""

from __future__ import annotations

from collections.abc import Iterable

from fusion_bench.evaluation.report_records.results.system import CompletionBounds
from fusion_bench.report.page import Column
from fusion_bench.util.formatting import format_number, format_percent

#: Header of the least and the greatest mean over completions.
BOUNDS_HEADER = "if judged"
#: What that column means.
BOUNDS_NOTE = (
    f"{BOUNDS_HEADER} = least and greatest mean if each unjudged document of the system had some "
    "grade of the scale, ideals computed again."
)


def bound_columns(rows: Iterable[CompletionBounds | None]) -> tuple[Column, ...]:
    """``Judged@10`` and ``if judged``; none where no row has bounds, as with complete judgments."""
    depth = next((bounds.depth for bounds in rows if bounds is not None), None)
    if depth is None:
        return ()
    return (Column(f"Judged@{depth}", is_optional=True), Column(BOUNDS_HEADER, is_optional=True))


def bound_cells(bounds: CompletionBounds | None) -> tuple[str, str]:
    """The cells of these columns; blank where nothing is known."""
    if bounds is None:
        return ("", "")
    ends = f"{format_number(bounds.low)}…{format_number(bounds.high)}"
    return format_percent(bounds.judged), ends


def describe_bounds(rows: Iterable[CompletionBounds | None]) -> str:
    """What the columns mean; empty where there are none."""
    columns = bound_columns(rows)
    if not columns:
        return ""
    return f"{columns[0].header} = share of judged documents. {BOUNDS_NOTE}"
