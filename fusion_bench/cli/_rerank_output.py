"""What ``rerank`` prints."""

from __future__ import annotations

import json as encoder
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fusion_bench.cli._console import echo, echo_table

if TYPE_CHECKING:
    from fusion_bench.io.provenance import ListMeta
    from fusion_bench.rerank.clients import Provider
    from fusion_bench.rerank.plan import CostEstimate

__all__ = ["print_plan", "print_result", "print_rows"]


def print_plan(plan: CostEstimate, provider: Provider, *, as_json: bool) -> None:
    """What a run would ask for and cost."""
    if as_json:
        typer.echo(encoder.dumps(plan.as_json()))
        return
    echo(
        f"{plan.queries} queries, {plan.documents} pairs of query and document, "
        f"{plan.stored} of them scored already"
    )
    echo(
        f"{plan.calls} calls of {provider.model_identity.label}: "
        f"{plan.usage.searches:g} search units, about {plan.usage.tokens} tokens, "
        f"{plan.usage.output_tokens} tokens written"
    )
    unknown = "not known: say --set price.per_1000_searches=… or price.per_million_tokens=…"
    echo(f"price: {unknown if plan.cost is None else f'about {plan.cost:.4f}'}")


def print_result(place: Path, folder: Path, meta: ListMeta, *, as_json: bool) -> None:
    """What a run did, and what to write into the ``dataset.yaml``."""
    from fusion_bench.rerank.write import dataset_entry

    if as_json:
        typer.echo(encoder.dumps({"list": str(place), **meta.model_dump(mode="json")}))
        return
    ledger = meta.ledger
    for label, queries in meta.providers.items():
        echo(f"{label}: {len(queries)} queries")
    echo(
        f"{ledger['calls']} calls, {ledger['documents']} documents, {ledger['retries']} retries, "
        f"price {ledger['cost']:.4f}; a query took {_ms(ledger['query_ms'])}"
    )
    if ledger["by_candidates"]:  # empty where a run with another ledger had scored everything
        print_rows("latency by number of candidates asked about", ledger["by_candidates"])
    if meta.degraded:
        query, why = next(iter(meta.degraded.items()))
        echo(
            f"degraded: {len(meta.degraded)} queries do not have {meta.asked}'s scores (for "
            f"example {query}: {why}); run the same command again to score them"
        )
    echo(f"Written: {place}; in dataset.yaml:")
    for line in dataset_entry(place, folder, meta).split("\n"):
        echo(line)


def _ms(latency: dict[str, Any]) -> str:
    if latency["p50"] is None:
        return "no time: all of it was stored"
    return f"{latency['p50']:.0f} ms (median), {latency['p95']:.0f} ms (95th percentile)"


def print_rows(title: str, rows: list[dict[str, Any]]) -> None:
    """A table of records that all have the same keys."""
    cells = [[_cell(value) for value in row.values()] for row in rows]
    echo_table(list(rows[0]), cells, title=title)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else "none" if value is None else str(value)
