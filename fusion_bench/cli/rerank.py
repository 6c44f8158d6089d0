"""Rerank a system's top candidates and save the scores for offline evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import echo, print_json, print_tables
from fusion_bench.cli.application.exit_codes import ExitCode
from fusion_bench.cli.application.progress import progress_bar
from fusion_bench.models.options import RerankOptions
from fusion_bench.util.formatting import pluralize

if TYPE_CHECKING:
    from fusion_bench.models.call_limits import CostEstimate
    from fusion_bench.models.rerank_run import WrittenList


class CommandOptions(RerankOptions, base.DatasetOptions, base.PluginOptions):
    """Options of ``rerank``."""

    experiment: base.ExperimentFile | None = None


@base.single_command(ExitCode.DEGRADED)
def command(options: CommandOptions) -> None:
    """Rerank a system's top candidates and save the scores for offline evaluation.

    API keys come from environment variables. Run the same command again to resume a run that was
    interrupted or reached --max-cost; stored scores are not paid for twice.

    Examples:
        fusion-bench rerank --dataset mine --system rrf --provider cohere --dry-run
        fusion-bench rerank --dataset mine --system rrf --provider tei --depth 50
        fusion-bench rerank --dataset mine --system rrf --config rerank.yaml --max-cost 5
    """
    import yaml

    from fusion_bench.io.dataset_config import find_dataset, read_spec
    from fusion_bench.models import rerank_run

    folders = base.folders_for(options.datasets, options.experiment)
    dataset = find_dataset(options.dataset, folders)
    if options.dry_run:
        print_estimate(rerank_run.estimate_list(dataset, options), as_json=options.json)
        return
    with progress_bar() as show:
        written = rerank_run.score_list(dataset, options, base.show_price(show, "scoring"))
    if written.path.stem in read_spec(dataset)[0].rerank:
        entries = []
    elif written.path.resolve().is_relative_to(dataset.parent.resolve()):
        entries = base.name_in_dataset(dataset, yaml.safe_load(written.dataset_entry))
    else:
        entries = ["in dataset.yaml:", *written.dataset_entry.splitlines()]
    print_list(written, entries, as_json=options.json)
    if written.meta.degraded:
        raise typer.Exit(ExitCode.DEGRADED)


def print_estimate(estimate: CostEstimate, *, as_json: bool) -> None:
    """Print what a run would ask for and cost."""
    if as_json:
        print_json(estimate)
        return
    usage = estimate.usage
    asked = f"{pluralize(estimate.queries, 'query')}, {pluralize(estimate.documents, 'document')}"
    echo(f"{asked}, {estimate.stored:,} stored")
    _print_repeats(estimate.trials)
    calls = pluralize(estimate.calls, "call")
    echo(f"{calls} of {estimate.provider}, {usage.searches:g} search units")
    echo(f"about {usage.tokens} input tokens, {usage.output_tokens} output tokens")
    unknown = "not known: set price.per_1000_searches or price.per_million_tokens with --set"
    echo(f"price: {unknown if estimate.cost is None else f'about {estimate.cost:.4f}'}")


def print_list(written: WrittenList, entries: Sequence[str], *, as_json: bool) -> None:
    """Print what a run did, and what names the list in the ``dataset.yaml``."""
    from fusion_bench.io.provenance import describe_unread
    from fusion_bench.models.rerank_run import MOST_UNREAD
    from fusion_bench.report.page import make_record_table

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
    _print_repeats(ledger.get("trials", 1))
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
        text = (
            f"{meta.unread_count:,} of {written.scores:,} scores could not be read and stand as "
            f"0.5 (query: positions {describe_unread(meta.unread)})"
        )
        if len(meta.unscored) < len(meta.degraded):
            text = (
                f"degraded: {text}, more than {100 * MOST_UNREAD:g} % of the list: change the "
                "prompt, the batch or the model, and score again"
            )
        echo(text)
    echo(f"Written: {written.path}")
    for line in entries:
        echo(line)


def _print_repeats(repeats: int) -> None:
    """Print that a query has the candidates of several repeats, where it has."""
    if repeats > 1:
        echo(f"candidates of a query: those of {repeats} trials of the lists, each document once")
