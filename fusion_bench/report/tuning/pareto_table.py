"""The table of the Pareto front: quality against rerank effort."""

from __future__ import annotations

import math
from collections.abc import Iterator, Set

from fusion_bench.report.judging.judged_columns import JudgedColumns
from fusion_bench.report.page import Column, Row, Table
from fusion_bench.report.tuning.pareto_findings import EFFORT_NAMES, format_paired
from fusion_bench.report.tuning_records.pareto_front import ParetoFront, ParetoPoint
from fusion_bench.report.tuning_records.tuning_report import TuningReport
from fusion_bench.util.formatting import format_number

#: What a point may cost: of 1,000 queries, per query, and per query at the 95th percentile.
AMOUNTS = ("cost", "seconds", "slow")


def pareto_table(report: TuningReport, front: ParetoFront) -> Table:
    """The efficient points, the default and the choice, with their held-out values.

    An effort that no point knows has no column.
    """
    amounts = {amount for amount in AMOUNTS if _is_known_of_any(front, amount)}
    points = [point for point in front.points if point.is_shown]
    judged = JudgedColumns.of_rows(point.bounds for point in points)
    columns = (
        Column("reranker", is_text=True),
        Column("rerank depth"),
        Column("candidates per query", is_optional=bool(amounts)),
        *map(Column, ("cost of 1,000 queries", "seconds per query")),
        Column("p95 seconds", is_optional=True),
        *map(Column, (f"{report.measure}, tuning", "held out")),
        *judged.columns,
        *map(Column, ("held out: - default", "held out: - best")),
        Column("note", is_text=True),
    )
    rows = tuple(
        Row(
            tuple(_point_cells(front, point, amounts, judged)),
            "plain" if point.efficient else "warning",
        )
        for point in points
    )
    note = (
        "Each row is the best system of its depth on the tuning queries. Nothing with less effort "
        f"({' and '.join(EFFORT_NAMES[axis] for axis in front.axes)}) is as good there, except "
        "beside rows marked 'not efficient'. Held out: paired intervals against the default and "
        "against the best row, not adjusted for the number of rows."
    )
    notes = (note, *judged.notes, *effort_sources(front))
    return Table("Quality against effort", columns, rows, notes).without_empty_columns()


def _is_known_of_any(front: ParetoFront, amount: str) -> bool:
    """Whether it is known of a point that reranks; without a reranker everything is free."""
    return any(getattr(point, amount) is not None for point in front.points if point.depth)


def _point_cells(
    front: ParetoFront, point: ParetoPoint, amounts: Set[str], judged: JudgedColumns
) -> Iterator[str]:
    yield (point.reranker or "none") if len(front.efforts) > 1 else ""
    yield from (f"{point.depth:,}", f"{point.candidates:.1f}")
    for amount in AMOUNTS:
        yield _format_amount(getattr(point, amount)) if amount in amounts else ""
    yield from (format_number(point.value), format_number(point.held_out))
    yield from judged.cells(point.bounds)
    yield from (format_paired(point.over_default), format_paired(point.over_best))
    yield ", ".join((*point.roles, *(() if point.efficient else ("not efficient",))))


def _format_amount(value: float | None, unknown: str = "") -> str:
    return unknown if value is None or math.isnan(value) else f"{value:.4g}"


def effort_sources(front: ParetoFront) -> Iterator[str]:
    """Where each reranker's price and time come from, one note a reranker."""
    for effort in front.efforts:
        name = effort.reranker + ("" if effort.provider is None else f" ({effort.provider})")
        if effort.cost is None and effort.seconds is None:
            yield f"{name}: price and time are unknown, so its effort is its candidates alone."
            continue
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
    if all(effort.cost is None and effort.seconds is None for effort in front.efforts):
        yield "fusion-bench rerank keeps a ledger of both; tune.effort declares them."
        return
    yield (
        "Effort counts the calls needed; a small call costs as much as the smallest measured one. "
        "fusion-bench rerank keeps a ledger; 'prefer: declared' uses what tune.effort declares."
    )
