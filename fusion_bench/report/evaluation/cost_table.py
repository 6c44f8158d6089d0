"""The table of rerank costs: quality against price and latency."""

from __future__ import annotations

import math
from typing import Final

from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.list_info import ListInfo
from fusion_bench.evaluation.report_records.results.system import SystemResult
from fusion_bench.report.page import Column, Row, Table
from fusion_bench.util.formatting import format_number, format_rounded

NOTE: Final = (
    "From the runs that scored the lists. p50 and p95: latency of reranking one query. Price "
    "and tokens are for 1,000 queries. degraded = queries that the provider did not score."
)


def cost_table(collection: Collection) -> Table | None:
    """Quality against cost and latency of the rerank lists; None where no list has a ledger."""
    runs = {run.name: run for run in collection.runs if run.ledger and run.trial in {None, 1}}
    rows, notes = [], [NOTE]
    for row in collection.ranked_systems:
        blend = (row.config or {}).get("blend")
        run = runs.get(str(blend.get("reranker"))) if isinstance(blend, dict) else None
        if run is not None:
            rows.append(_cost_row(collection, row, run))
            if trials := (run.ledger or {}).get("trials"):
                notes.append(
                    f"{run.name}: scored for the candidates of {trials} trials together. Latency, "
                    "price and tokens of one trial are lower."
                )
    columns = (
        Column("system", is_text=True),
        Column("scored by", is_text=True),
        *map(Column, (collection.primary_measure, "difference", "p50 ms", "p95 ms")),
        *map(Column, ("price / 1,000", "tokens / 1,000", "calls", "retries", "degraded")),
    )
    title = "Quality against cost and latency"
    return Table(title, columns, tuple(rows), tuple(dict.fromkeys(notes))) if rows else None


def _cost_row(collection: Collection, row: SystemResult, run: ListInfo) -> Row:
    ledger = run.ledger or {}
    latency = ledger.get("query_ms") or {}
    queries = ledger.get("queries_answered") or 0
    factor = 1000 / queries if queries else math.nan
    cost = ledger.get("cost")
    comparison = collection.comparison(row.name, collection.primary_measure)
    cells = (
        format_number(row.measures[collection.primary_measure].mean),
        "" if comparison is None else format_number(comparison.difference, signed=True),
        *(format_rounded(latency.get(key)) for key in ("p50", "p95")),
        "not known" if cost is None else format_number(factor * float(cost)),
        format_rounded(factor * float(ledger.get("tokens", math.nan))),
        *(format_rounded(ledger.get(key)) for key in ("calls", "retries")),
        f"{run.degraded_queries:,}",
    )
    return Row((row.name, run.provider or "unknown", *cells))
