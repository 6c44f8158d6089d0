"""Pull ranked lists from a live engine into a dataset."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.exit_codes import ExitCode
from fusion_bench.config.models import MOST_WORKERS
from fusion_bench.config.options import Argument, Changes, File, Option
from fusion_bench.engines.options import PullOptions

if TYPE_CHECKING:
    from fusion_bench.engines.pull import PulledDataset
    from fusion_bench.report.page import Table


class PullCommand(PullOptions, base.JsonOptions, base.PluginOptions):
    """Options of ``pull``.

    Attributes:
        engine: The engine, such as elasticsearch, qdrant, pgvector, http or python. 'fusion-bench
            methods' lists all of them with their keys.
        queries: JSON Lines: {"id": …, "text": …} a query.
        config: YAML with the engine's keys: its place, legs, fused.
        change: Set a key of the engine, such as url=http://…, legs.bm25.field=body; repeatable.
        concurrency: Most calls at once.
        requests_per_minute: Most calls per minute, evenly spaced.
    """

    engine: Annotated[str, Argument("ENGINE")]
    queries: File
    config: File | None = None
    change: Changes = ()
    concurrency: Annotated[int, Option(min=1, max=MOST_WORKERS)] | None = None
    requests_per_minute: Annotated[float, Option(min=0.01)] | None = None


@base.single_command(ExitCode.DEGRADED)
def command(options: PullCommand) -> None:
    """Pull each leg of a hybrid search alone, and the engine's own fused answer, as a dataset.

    API keys come from environment variables. Run the same command again to resume a pull that was
    interrupted; no answer is asked for twice.

    Examples:
        fusion-bench pull qdrant --queries queries.jsonl --out datasets/mine --config pull.yaml
        fusion-bench pull elasticsearch --queries queries.jsonl --out datasets/mine --config
            pull.yaml --depth 200 --texts
        fusion-bench pull python --queries queries.jsonl --out datasets/mine --set
            legs.mine.function=my_search:search
    """
    from fusion_bench.cli.application.console import print_json
    from fusion_bench.cli.application.progress import progress_bar
    from fusion_bench.engines.engine_settings import read_connector
    from fusion_bench.engines.pull import pull_dataset

    limits = {name: getattr(options, name) for name in ("concurrency", "requests_per_minute")}
    set_limits = [f"{key}={value}" for key, value in limits.items() if value is not None]
    connector = read_connector(options.engine, options.config, [*options.change, *set_limits])
    with progress_bar() as show:
        pulled = pull_dataset(connector, options.queries, options, show)
    if options.json:
        print_json({"folder": pulled.folder, **pulled.record.model_dump(), "notes": pulled.notes})
    else:
        _print_pulled(pulled)
    if pulled.record.is_degraded:
        raise typer.Exit(ExitCode.DEGRADED)


def _print_pulled(pulled: PulledDataset) -> None:
    """Print what was pulled, what is worth knowing, and what to do next."""
    from fusion_bench.cli.application.console import echo, echo_written, print_tables
    from fusion_bench.util.formatting import pluralize

    record = pulled.record
    stored = record.queries * len(record.lists) - record.asked
    known = f", {stored:,} stored before" if stored > 0 else ""
    queries, answers = pluralize(record.queries, "query"), pluralize(record.asked, "answer")
    echo(f"{record.engine}: {queries}, {answers}{known}")
    print_tables(build_pull_table(pulled))
    for notice in pulled.notes:
        echo(f"note: {notice}")
    echo_written(pulled.files)
    folder = quote(str(pulled.folder))
    echo(f"Next: fusion-bench judge {folder}, then fusion-bench eval {folder}/experiment.yaml")


def build_pull_table(pulled: PulledDataset) -> Table:
    """A row a list: hits, empty answers, retries, and the time of a call in milliseconds."""
    from fusion_bench.report.page import make_record_table

    records = [
        {
            "list": each.name,
            "depth": each.depth,
            "hits": each.hits,
            "empty": each.empty,
            "retries": each.retries,
            **{f"{key}, ms": round(value, 1) for key, value in each.latency_ms.items()},
        }
        for each in pulled.record.lists
    ]
    return make_record_table("Lists, and the time of a call", records)
