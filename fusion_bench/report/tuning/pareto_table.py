"""The table of the Pareto front: quality against rerank effort."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.report.page import Column, Row, Table, Tone
from fusion_bench.report.tuning.pareto_findings import EFFORT_NAMES, format_difference
from fusion_bench.report.tuning_records import (
    ParetoFront,
    ParetoPoint,
    RerankerEffort,
    TuningReport,
)
from fusion_bench.util.formatting import format_number, is_known

#: Columns shown where an effort is known.
EFFORT_COLUMNS = {
    "cost": Column("cost of 1,000 queries"),
    "seconds": Column("seconds per query"),
    "slow": Column("p95 seconds", is_optional=True),
}


def pareto_table(report: TuningReport, front: ParetoFront) -> Table:
    """The efficient points, the default and the choice, with their held-out values."""
    has_rerankers = len(front.efforts) > 1
    reranked = [point for point in front.points if point.depth]
    efforts = [
        key for key in EFFORT_COLUMNS if any(is_known(getattr(point, key)) for point in reranked)
    ]
    columns = (
        *([Column("reranker", is_text=True)] if has_rerankers else ()),
        Column("rerank depth"),
        Column("candidates per query", is_optional=True),
        *(EFFORT_COLUMNS[key] for key in efforts),
        Column(f"{report.measure}, tuning"),
        Column("held out"),
        Column("held out: - default"),
        Column("held out: - best"),
        Column("", is_text=True),
    )
    rows = []
    for point in front.points:
        if point.efficient or point.roles:
            reranker = [point.reranker or "none"] if has_rerankers else []
            tone: Tone = "plain" if point.efficient else "warning"
            rows.append(Row((*reranker, *_point_cells(point, efforts)), tone))
    return Table("Quality against effort", columns, tuple(rows), tuple(_notes(front)))


def _point_cells(point: ParetoPoint, efforts: list[str]) -> Iterator[str]:
    yield from (f"{point.depth:,}", f"{point.candidates:.1f}")
    yield from (_format_amount(getattr(point, key)) for key in efforts)
    yield from (format_number(point.value), format_number(point.held_out))
    yield from (format_difference(point.over_default), format_difference(point.over_best))
    yield ", ".join((*point.roles, *(() if point.efficient else ("not efficient",))))


def _format_amount(value: float | None) -> str:
    return f"{value:.4g}" if value is not None and is_known(value) else "n/a"


def _notes(front: ParetoFront) -> Iterator[str]:
    efforts = " and ".join(EFFORT_NAMES[axis] for axis in front.axes)
    yield (
        "Each row is the best system of its depth on the tuning queries. Nothing with less effort "
        f"({efforts}) is as good there, except beside rows marked 'not efficient'. Held out: "
        "paired intervals against the default and against the best row, not adjusted for the "
        "number of rows."
    )
    yield from effort_sources(front)


def effort_sources(front: ParetoFront) -> Iterator[str]:
    """Where each reranker's price and time come from, one note a reranker."""
    for effort in front.efforts:
        parts = [*_cost_source(effort), *_time_source(effort)]
        name = effort.reranker + ("" if effort.provider is None else f" ({effort.provider})")
        if not parts:
            yield (
                f"{name}: price and time are unknown. Declare tune.effort, or score the list with "
                "fusion-bench rerank, which keeps a ledger."
            )
        else:
            yield f"{name}: {'; '.join(parts)}.{_ledger_note(effort)}"


def _ledger_note(effort: RerankerEffort) -> str:
    if "ledger" not in {effort.cost, effort.seconds}:
        return ""
    return (
        f" Ledger: {effort.queries:,} queries, {effort.calls:,} calls of up to "
        f"{effort.largest_call or 0:,} documents, up to {effort.at_once or 1:,} at once. Effort "
        "counts the calls needed; a small call costs as much as the smallest measured one."
    )


def _cost_source(effort: RerankerEffort) -> Iterator[str]:
    declared = _format_source(effort.declared_price, "per 1,000 candidates")
    recorded = _format_source(effort.recorded_price, "per 1,000 candidates at full depth")
    yield from _format_sources("cost", effort.cost, declared, recorded)


def _time_source(effort: RerankerEffort) -> Iterator[str]:
    declared = _format_source(effort.declared_seconds, "s per candidate")
    recorded = _format_source(effort.recorded_seconds, "s per query at full depth (median)")
    yield from _format_sources("time", effort.seconds, declared, recorded)


def _format_source(value: float | None, unit: str) -> str:
    return "" if value is None else f"{_format_amount(value)} {unit}"


def _format_sources(what: str, source: str | None, declared: str, recorded: str) -> Iterator[str]:
    """Which of the two is used, and what the other one says."""
    if source == "ledger":
        unused = f" (declared but unused: {declared}; 'prefer: declared' uses it)"
        yield f"{what} from the ledger, {recorded}{unused if declared else ''}"
    elif source == "declared":
        unused = f" (ledger: {recorded})" if recorded else ""
        yield f"{what} as declared, {declared}{unused}"
