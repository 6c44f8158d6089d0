"""What ``rerank`` prints."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fusion_bench.cli._console import echo, echo_table, echo_written

if TYPE_CHECKING:
    from fusion_bench.rerank.ledger import CostEstimate
    from fusion_bench.rerank.run import WrittenList
    from fusion_bench.rerank.simulation.simulation_result import SimulationPoint, SimulationResult


def print_estimate(estimate: CostEstimate, *, as_json: bool) -> None:
    """Print what a run would ask for and cost."""
    if as_json:
        typer.echo(json.dumps(asdict(estimate)))
        return
    usage = estimate.usage
    echo(
        f"{estimate.queries} queries, {estimate.documents} pairs of query and document, "
        f"{estimate.stored} of them stored"
    )
    echo(
        f"{estimate.calls} calls of {estimate.provider}: {usage.searches:g} search units, about "
        f"{usage.tokens} input tokens and {usage.output_tokens} output tokens"
    )
    unknown = "unknown: set price.per_1000_searches or price.per_million_tokens with --set"
    echo(f"price: {unknown if estimate.cost is None else f'about {estimate.cost:.4f}'}")


def print_list(written: WrittenList, *, as_json: bool) -> None:
    """Print what a run did, and what to write into the ``dataset.yaml``."""
    meta, ledger = written.meta, written.meta.ledger
    if as_json:
        typer.echo(json.dumps({"list": str(written.path), **meta.model_dump(mode="json")}))
        return
    for label, queries in meta.providers.items():
        echo(f"{label}: {len(queries)} queries")
    latency = ledger["query_ms"]
    echo(
        f"{ledger['calls']} calls, {ledger['documents']} documents, {ledger['retries']} retries, "
        f"price {ledger['cost']:.4f}"
    )
    if latency["p50"] is not None:  # nothing was asked where every score was stored
        echo(
            f"latency per query: median {latency['p50']:.0f} ms, "
            f"95th percentile {latency['p95']:.0f} ms"
        )
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
        typer.echo(json.dumps(asdict(result)))
        return
    echo(f"Replayed: {result.first}; second provider: {result.second or 'none'}.")
    columns: dict[str, Callable[[SimulationPoint], str]] = {
        "provider down": lambda point: f"{100 * point.failure_rate:.4g} %",
        "breaker": lambda point: "yes" if point.breaker else "no",
    }
    if result.second is not None:
        columns["second provider"] = lambda point: "yes" if point.fallback else "no"
    _print_points("By share of time the provider is down", result, result.by_failure, columns)
    deadline = {"deadline, ms": lambda point: _format_cell(point.deadline_ms)}
    title = "By deadline, without failures, with a breaker"
    _print_points(title, result, result.by_deadline, deadline)
    echo(
        f"{result.measure}: reranked {result.reranked:.4f}, fused order {result.fused:.4f}. "
        "Brackets: 95 % interval over the repeats of the simulation."
    )
    for line in (result.answer, *result.notes):
        echo(line)
    echo_written(written)


def _print_points(
    title: str,
    result: SimulationResult,
    points: Sequence[SimulationPoint],
    first_columns: dict[str, Callable[[SimulationPoint], str]],
) -> None:
    columns: dict[str, Callable[[SimulationPoint], str]] = {
        **first_columns,
        result.measure: _format_quality,
        "share reranked": lambda point: f"{100 * point.reranked:.1f} %",
        "latency mean, ms": lambda point: f"{point.mean:.0f}",
        "median, ms": lambda point: f"{point.p50:.0f}",
        "95th percentile, ms": lambda point: f"{point.p95:.0f}",
    }
    rows = [[column(point) for column in columns.values()] for point in points]
    echo_table(list(columns), rows, title=title)


def _format_quality(point: SimulationPoint) -> str:
    if point.low is None or point.high is None:
        return f"{point.quality:.4f}"
    return f"{point.quality:.4f} [{point.low:.4f}, {point.high:.4f}]"
