"""Pull ranked lists from a live engine into a dataset."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli.application.app as base
from fusion_bench.cli.application.process import ExitCode, describe_exit_codes
from fusion_bench.config.models import MOST_RANK, MOST_WORKERS

if TYPE_CHECKING:
    from fusion_bench.engines.pull import PulledDataset
    from fusion_bench.report.page import Table

command = base.command_app()


@command.command(
    epilog=base.format_examples(
        "fusion-bench pull qdrant --queries queries.jsonl --out datasets/mine --config pull.yaml",
        "fusion-bench pull elasticsearch --queries queries.jsonl --out datasets/mine --config "
        "pull.yaml --depth 200 --texts",
        "fusion-bench pull python --queries queries.jsonl --out datasets/mine --set "
        "legs.mine.function=my_search:search",
    )
    + "\n\n"
    + describe_exit_codes(ExitCode.DEGRADED),
)
def pull_command(
    engine: Annotated[
        str,
        typer.Argument(
            help="The engine, such as elasticsearch, qdrant, pgvector, http or python. "
            "'fusion-bench methods' lists all of them with their keys.",
            metavar="ENGINE",
        ),
    ],
    queries: Annotated[
        Path, typer.Option(help='JSON Lines: {"id": …, "text": …} a query.', metavar="FILE")
    ],
    out: Annotated[Path, typer.Option(help="The dataset's folder.", metavar="DIR")],
    config: Annotated[
        Path | None,
        typer.Option(help="YAML with the engine's keys: its place, legs, fused.", metavar="FILE"),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Set a key of the engine, such as url=http://…, legs.bm25.field=body; repeatable.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    depth: Annotated[
        int, typer.Option(help="Most documents per query and list.", min=1, max=MOST_RANK)
    ] = 100,
    texts: Annotated[
        bool, typer.Option("--texts", help="Also write the documents' texts: documents.jsonl.")
    ] = False,
    vectors: Annotated[
        Path | None,
        typer.Option(
            help="Vectors of the queries: .npz with query_ids and query, or JSON Lines.",
            metavar="FILE",
        ),
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(help="Most calls at once.", min=1, max=MOST_WORKERS)
    ] = None,
    requests_per_minute: Annotated[
        float | None, typer.Option(help="Most calls per minute, evenly spaced.", min=0.01)
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="The dataset's name. Default: the folder's.", metavar="NAME")
    ] = None,
    skip_failed: Annotated[
        bool,
        typer.Option(
            "--skip-failed",
            help="Leave out a query of which a list fails for good, and exit with 4. The same "
            "command asks it again later.",
        ),
    ] = False,
    start_over: Annotated[
        bool,
        typer.Option(
            "--start-over",
            help="Forget the answers of an unfinished pull; replace the lists of a finished one.",
        ),
    ] = False,
    json: base.JsonFlag = False,
) -> None:
    """Pull each leg of a hybrid search alone, and the engine's own fused answer, as a dataset.

    API keys come from environment variables. Run the same command again to resume a pull that was
    interrupted; no answer is asked for twice.
    """
    from fusion_bench.cli.application.console import print_json
    from fusion_bench.cli.application.progress import progress_bar
    from fusion_bench.engines.engine_settings import read_connector
    from fusion_bench.engines.pull import PullOptions, pull_dataset

    limits = {"concurrency": concurrency, "requests_per_minute": requests_per_minute}
    set_limits = [f"{key}={value}" for key, value in limits.items() if value is not None]
    options = PullOptions(
        connector=read_connector(engine, config, [*(change or ()), *set_limits]),
        queries=queries,
        out=out,
        name=name,
        depth=depth,
        texts=texts,
        vectors=vectors,
        skip_failed=skip_failed,
        start_over=start_over,
    )
    with progress_bar() as show:
        pulled = pull_dataset(options, show)
    if json:
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
    from fusion_bench.report.table import make_record_table

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
