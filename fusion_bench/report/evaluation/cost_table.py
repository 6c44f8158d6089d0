"""The table of rerank costs: quality against price and latency."""

from __future__ import annotations

import math

from fusion_bench.evaluation.report_records import Collection, ListInfo, SystemResult
from fusion_bench.report.page import Column, Row, Table
from fusion_bench.util.formatting import format_number, format_rounded


def cost_table(collection: Collection) -> Table | None:
    """Quality against cost and latency of the rerank lists; None where no list has a ledger."""
    runs = {run.name: run for run in collection.runs if run.ledger}
    rows = tuple(
        _cost_row(collection, row, runs[name])
        for row in collection.ranked_systems
        if (name := _reranker_name(row)) in runs
    )
    if not rows:
        return None
    columns = (
        Column("system", is_text=True),
        Column("scored by", is_text=True),
        Column(collection.primary_measure),
        Column("difference"),
        *(Column(name) for name in ("p50 ms", "p95 ms", "price / 1,000", "tokens / 1,000")),
        *(Column(name) for name in ("calls", "retries", "degraded")),
    )
    note = (
        "From the runs that scored the lists. p50 and p95: latency of reranking one query. Price "
        "and tokens are for 1,000 queries. degraded = queries that the provider did not score."
    )
    return Table("Quality against cost and latency", columns, rows, (note,))


def _reranker_name(row: SystemResult) -> str:
    """Name of the rerank list that a system blends in; empty = none."""
    blend = (row.config or {}).get("blend")
    return str(blend.get("reranker") or "") if isinstance(blend, dict) else ""


def _cost_row(collection: Collection, row: SystemResult, run: ListInfo) -> Row:
    ledger = run.ledger or {}
    latency = ledger.get("query_ms") or {}
    queries = ledger.get("queries_answered") or 0
    factor = 1000 / queries if queries else math.nan
    comparison = collection.comparison(row.name, collection.primary_measure)
    cells = (
        format_number(row.measures[collection.primary_measure].mean),
        "" if comparison is None else format_number(comparison.difference, signed=True),
        *(format_rounded(latency.get(key)) for key in ("p50", "p95")),
        format_number(factor * float(ledger.get("cost", math.nan))),
        format_rounded(factor * float(ledger.get("tokens", math.nan))),
        *(format_rounded(ledger.get(key)) for key in ("calls", "retries")),
        f"{run.degraded_queries:,}",
    )
    return Row((row.name, run.provider or "unknown", *cells))
