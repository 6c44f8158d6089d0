"""What ``rerank`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fusion_bench.cli.output.console import echo, echo_written, print_json, print_tables
from fusion_bench.util.formatting import pluralize

if TYPE_CHECKING:
    from fusion_bench.report.page import Table
    from fusion_bench.rerank.ledger import CostEstimate
    from fusion_bench.rerank.simulation.simulation_result import SimulationPoint, SimulationResult
    from fusion_bench.rerank.written_list import WrittenList

SETTING_HEADINGS = ("provider down", "breaker", "second provider", "deadline, ms")
POINT_HEADINGS = ("share reranked", "latency mean, ms", "median, ms", "95th percentile, ms")


def print_estimate(estimate: CostEstimate, *, as_json: bool) -> None:
    """Print what a run would ask for and cost."""
    if as_json:
        print_json(estimate)
        return
    usage = estimate.usage
    asked = f"{pluralize(estimate.queries, 'query')}, {pluralize(estimate.documents, 'document')}"
    echo(f"{asked}, {estimate.stored:,} stored")
    _print_trials(estimate.trials)
    calls = pluralize(estimate.calls, "call")
    echo(f"{calls} of {estimate.provider}, {usage.searches:g} search units")
    echo(f"about {usage.tokens} input tokens, {usage.output_tokens} output tokens")
    unknown = "not known: set price.per_1000_searches or price.per_million_tokens with --set"
    echo(f"price: {unknown if estimate.cost is None else f'about {estimate.cost:.4f}'}")


def print_list(written: WrittenList, *, as_json: bool) -> None:
    """Print what a run did, and what to write into the ``dataset.yaml``."""
    from fusion_bench.report.record_table import make_record_table

    meta, ledger = written.meta, written.meta.ledger
    if as_json:
        print_json({"list": written.path, **meta.model_dump()})
        return
    cost = ledger["cost"]
    for label, queries in meta.providers.items():
        echo(f"{label}: {pluralize(len(queries), 'query')}")
    nouns = {"calls": "call", "documents": "document", "retries": "retry"}
    done = ", ".join(pluralize(ledger[key], noun) for key, noun in nouns.items())
    echo(f"{done}, price {'not known' if cost is None else f'{cost:.4f}'}")
    _print_trials(ledger.get("trials", 1))
    p50, p95 = ledger["query_ms"].values()
    if p50 is not None:  # nothing was asked where every score was stored
        echo(f"latency per query: median {p50:.0f} ms, 95th percentile {p95:.0f} ms")
    if rows := ledger["by_candidates"]:
        print_tables(make_record_table("Latency by number of candidates", rows))
    if meta.unscored:
        query = meta.unscored[0]
        echo(
            f"degraded: {pluralize(len(meta.unscored), 'query')} without scores of {meta.asked} "
            f"(for example {query}: {meta.degraded[query]}); run the same command again to score "
            "them"
        )
    if meta.unread:
        _print_unread(written)
    echo(f"Written: {written.path}; in dataset.yaml:")
    for line in written.dataset_entry.splitlines():
        echo(line)


def _print_trials(trials: int) -> None:
    """Print that a query has the candidates of several trials, where it has."""
    if trials > 1:
        echo(f"candidates of a query: those of {trials} trials of the lists, each document once")


def _print_unread(written: WrittenList) -> None:
    """Print which scores the provider's answers do not hold, and whether the list is degraded."""
    from fusion_bench.io.provenance import describe_unread
    from fusion_bench.rerank.written_list import MOST_UNREAD

    meta = written.meta
    text = (
        f"{meta.unread_count:,} of {written.scores:,} scores could not be read and stand as 0.5 "
        f"(query: positions {describe_unread(meta.unread)})"
    )
    if len(meta.unscored) < len(meta.degraded):
        text = (
            f"degraded: {text}, more than {100 * MOST_UNREAD:g} % of the list: change the prompt, "
            "the batch or the model, and score again"
        )
    echo(text)


def print_simulation(result: SimulationResult, written: Sequence[Path], *, as_json: bool) -> None:
    """Print two tables and their findings."""
    if as_json:
        print_json(result)
        return
    echo(f"Replayed: {result.first}; second provider: {result.second or 'none'}.")
    print_tables(*build_simulation_tables(result))
    echo(
        f"{result.measure}: reranked {result.reranked:.4f}, fused order {result.fused:.4f}. "
        "Brackets: 95 % interval over the repeats of the simulation."
    )
    for line in (result.answer, *result.notes):
        echo(line)
    echo_written(written)


def build_simulation_tables(result: SimulationResult) -> tuple[Table, Table]:
    """Quality and latency by share of time the provider is down, and by deadline."""
    from fusion_bench.report.page import Column, Row, Table

    columns = (
        *(Column(name, is_text=True, is_name=True) for name in SETTING_HEADINGS),
        *map(Column, (result.measure, *POINT_HEADINGS)),
    )
    points = {
        "By share of time the provider is down": result.by_failure,
        "By deadline": result.by_deadline,
    }
    first, second = (
        Table(title, columns, tuple(Row(_point_cells(point)) for point in group))
        for title, group in points.items()
    )
    return first, second


def _point_cells(point: SimulationPoint) -> tuple[str, ...]:
    from fusion_bench.report.record_table import format_cell

    interval = "" if point.low is None else f" [{point.low:.4f}, {point.high:.4f}]"
    return (
        f"{100 * point.failure_rate:.4g} %",
        "yes" if point.breaker else "no",
        "yes" if point.fallback else "no",
        format_cell(point.deadline_ms),
        f"{point.quality:.4f}{interval}",
        f"{100 * point.reranked:.1f} %",
        *(f"{value:.0f}" for value in (point.mean, point.p50, point.p95)),
    )
