"""The table of the Pareto front: quality against rerank effort."""

from __future__ import annotations

import math
from collections.abc import Iterator

from fusion_bench.report.page import Column, Row, Table
from fusion_bench.report.tuning.pareto_findings import EFFORT_NAMES, format_paired
from fusion_bench.report.tuning_records.pareto_front import ParetoFront, ParetoPoint
from fusion_bench.report.tuning_records.tuning_report import TuningReport
from fusion_bench.util.formatting import format_number


def pareto_table(report: TuningReport, front: ParetoFront) -> Table:
    """The efficient points, the default and the choice, with their held-out values.

    An effort that no point knows has no column.
    """
    columns = (
        Column("reranker", is_text=True),
        Column("rerank depth"),
        Column("candidates per query", is_optional=True),
        *map(Column, ("cost of 1,000 queries", "seconds per query")),
        Column("p95 seconds", is_optional=True),
        *map(Column, (f"{report.measure}, tuning", "held out")),
        *map(Column, ("held out: - default", "held out: - best")),
        Column("note", is_text=True),
    )
    rows = tuple(
        Row(tuple(_point_cells(front, point)), "plain" if point.efficient else "warning")
        for point in front.points
        if point.efficient or point.roles
    )
    note = (
        "Each row is the best system of its depth on the tuning queries. Nothing with less effort "
        f"({' and '.join(EFFORT_NAMES[axis] for axis in front.axes)}) is as good there, except "
        "beside rows marked 'not efficient'. Held out: paired intervals against the default and "
        "against the best row, not adjusted for the number of rows."
    )
    notes = (note, *effort_sources(front))
    return Table("Quality against effort", columns, rows, notes).without_empty_columns()


def _point_cells(front: ParetoFront, point: ParetoPoint) -> Iterator[str]:
    yield (point.reranker or "none") if len(front.efforts) > 1 else ""
    yield from (f"{point.depth:,}", f"{point.candidates:.1f}")
    yield from (_format_amount(effort) for effort in (point.cost, point.seconds, point.slow))
    yield from (format_number(point.value), format_number(point.held_out))
    yield from (format_paired(point.over_default), format_paired(point.over_best))
    yield ", ".join((*point.roles, *(() if point.efficient else ("not efficient",))))


def _format_amount(value: float | None, unknown: str = "") -> str:
    return unknown if value is None or math.isnan(value) else f"{value:.4g}"


def effort_sources(front: ParetoFront) -> Iterator[str]:
    """Where each reranker's price and time come from, one note a reranker."""
    for effort in front.efforts:
        name = effort.reranker + ("" if effort.provider is None else f" ({effort.provider})")
        amounts = (
            *(effort.declared_price, effort.recorded_price),
            *(effort.declared_seconds, effort.recorded_seconds),
        )
        declared, recorded, seconds, median = (_format_amount(v, "unknown") for v in amounts)
        yield (
            f"{name}: price of 1,000 candidates: declared {declared}, in the ledger at full depth "
            f"{recorded}; used: {effort.cost or 'none'}. Seconds: declared {seconds} per candidate"
            f", in the ledger {median} per query at full depth (median); used: "
            f"{effort.seconds or 'none'}. Ledger: {effort.queries:,} queries, "
            f"{effort.calls:,} calls of up to {effort.largest_call or 0:,} documents, up "
            f"to {effort.at_once or 1:,} at once."
        )
    yield (
        "Effort counts the calls needed; a small call costs as much as the smallest measured one. "
        "fusion-bench rerank keeps a ledger; 'prefer: declared' uses what tune.effort declares."
    )
