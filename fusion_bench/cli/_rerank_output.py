"""What ``rerank`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fusion_bench.cli._console import echo, echo_table, echo_written, print_json

if TYPE_CHECKING:
    from fusion_bench.rerank.ledger import CostEstimate
    from fusion_bench.rerank.run import WrittenList
    from fusion_bench.rerank.simulation.simulation_result import SimulationPoint, SimulationResult

SETTING_HEADINGS = ("provider down", "breaker", "second provider", "deadline, ms")
POINT_HEADINGS = ("share reranked", "latency mean, ms", "median, ms", "95th percentile, ms")


def print_estimate(estimate: CostEstimate, *, as_json: bool) -> None:
    """Print what a run would ask for and cost."""
    if as_json:
        print_json(estimate)
        return
    usage = estimate.usage
    echo(f"{estimate.queries} queries, {estimate.documents} documents, {estimate.stored} stored")
    echo(f"{estimate.calls} calls of {estimate.provider}, {usage.searches:g} search units")
    echo(f"about {usage.tokens} input tokens, {usage.output_tokens} output tokens")
    unknown = "unknown: set price.per_1000_searches or price.per_million_tokens with --set"
    echo(f"price: {unknown if estimate.cost is None else f'about {estimate.cost:.4f}'}")


def print_list(written: WrittenList, *, as_json: bool) -> None:
    """Print what a run did, and what to write into the ``dataset.yaml``."""
    meta, ledger = written.meta, written.meta.ledger
    if as_json:
        print_json({"list": written.path, **meta.model_dump()})
        return
    for label, queries in meta.providers.items():
        echo(f"{label}: {len(queries)} queries")
    echo(
        f"{ledger['calls']} calls, {ledger['documents']} documents, {ledger['retries']} retries, "
        f"price {ledger['cost']:.4f}"
    )
    p50, p95 = ledger["query_ms"].values()
    if p50 is not None:  # nothing was asked where every score was stored
        echo(f"latency per query: median {p50:.0f} ms, 95th percentile {p95:.0f} ms")
    if rows := ledger["by_candidates"]:
        cells = [[_format_cell(value) for value in row.values()] for row in rows]
        echo_table(list(rows[0]), cells, title="latency by number of candidates")
    if meta.degraded:
        query, reason = next(iter(meta.degraded.items()))
        echo(
            f"degraded: {len(meta.degraded)} queries have no scores of {meta.asked} (for example "
            f"{query}: {reason}); run the same command again to score them"
        )
    echo(f"Written: {written.path}; in dataset.yaml:")
    for line in written.dataset_entry.splitlines():
        echo(line)


def _format_cell(value: Any) -> str:  # noqa: ANN401 - JSON
    return f"{value:.4g}" if isinstance(value, float) else "none" if value is None else str(value)


def print_simulation(result: SimulationResult, written: Sequence[Path], *, as_json: bool) -> None:
    """Print two tables and their findings."""
    if as_json:
        print_json(result)
        return
    echo(f"Replayed: {result.first}; second provider: {result.second or 'none'}.")
    headings = (*SETTING_HEADINGS, result.measure, *POINT_HEADINGS)
    rows = [_point_cells(point) for point in result.by_failure]
    echo_table(headings, rows, title="By share of time the provider is down")
    rows = [_point_cells(point) for point in result.by_deadline]
    echo_table(headings, rows, title="By deadline")
    echo(
        f"{result.measure}: reranked {result.reranked:.4f}, fused order {result.fused:.4f}. "
        "Brackets: 95 % interval over the repeats of the simulation."
    )
    for line in (result.answer, *result.notes):
        echo(line)
    echo_written(written)


def _point_cells(point: SimulationPoint) -> tuple[str, ...]:
    interval = "" if point.low is None else f" [{point.low:.4f}, {point.high:.4f}]"
    return (
        f"{100 * point.failure_rate:.4g} %",
        "yes" if point.breaker else "no",
        "yes" if point.fallback else "no",
        _format_cell(point.deadline_ms),
        f"{point.quality:.4f}{interval}",
        f"{100 * point.reranked:.1f} %",
        *(f"{value:.0f}" for value in (point.mean, point.p50, point.p95)),
    )
