"""Write the final lists of a system, or of a fusion of run files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli.application.app as base
from fusion_bench.cli.application.console import echo, print_json
from fusion_bench.cli.application.file_options import (
    RunColumns,
    parse_named_files,
    parse_run_columns,
)

if TYPE_CHECKING:
    from fusion_bench.ranking.final_lists import FinalLists

#: Suffixes of an experiment's file.
YAML = {".yaml", ".yml"}

command = base.command_app()


@command.command(
    "fuse",
    epilog=base.format_examples(
        "fusion-bench fuse experiments/mine.yaml --system rrf --out rrf.trec",
        "fusion-bench fuse experiments/mine.yaml --system rrf --out rrf.csv --split test --sources",
        "fusion-bench fuse bm25=a.jsonl dense=b.jsonl --method rrf --set k=20 --out rrf.trec",
    ),
)
def fuse_command(
    inputs: Annotated[
        list[str],
        typer.Argument(
            help="YAML file of an experiment, or two or more ranked lists with their names.",
            metavar="EXPERIMENT | NAME=FILE…",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="The file. Its suffix names the format: .trec .run .jsonl .csv .tsv .parquet; "
            ".gz may follow.",
            metavar="FILE",
        ),
    ],
    system: Annotated[
        str | None, typer.Option(help="System of the experiment.", metavar="NAME")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Dataset, if the experiment has several.", metavar="NAME")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="Only queries of this split. Default: every query that a run answers.",
            metavar="NAME",
        ),
    ] = None,
    trial: Annotated[
        int | None,
        typer.Option(
            help="Which file of each list that has several. Default: the first.",
            min=1,
            metavar="N",
        ),
    ] = None,
    sources: Annotated[
        bool,
        typer.Option("--sources", help="Write the rank and score of each document in each list."),
    ] = False,
    method: Annotated[
        str | None,
        typer.Option(help="Fusion of run files, such as rrf or convex. Default: rrf."),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Set a key of --method, or replace a value of the experiment, such as "
            "systems.rrf.fusion.k=20; repeatable.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    run_columns: RunColumns = None,
    datasets: base.DatasetFolders = None,
    json: base.JsonFlag = False,
) -> None:
    """Write the final lists of a system, or of a fusion of run files.

    Ranks begin at 1. Whoever sorts a list by its scores finds the same order.
    """
    from fusion_bench.api.fuse_lists import fuse_experiment, fuse_files, make_run_rows
    from fusion_bench.experiment.method_table import describe_fusion_alias
    from fusion_bench.io.outputs import refuse_inputs, write_output
    from fusion_bench.io.write_run import encode_run, find_writer

    find_writer(out, has_sources=sources)
    if len(inputs) == 1 and Path(inputs[0]).suffix.lower() in YAML:
        base.refuse_options("an experiment", {"--method": method, "--run-columns": run_columns})
        if system is None:
            raise typer.BadParameter("name a system of the experiment", param_hint="--system")
        path = Path(inputs[0])
        folders = base.folders_for(datasets, path)
        with base.open_experiment(path, change) as (experiment, source):
            lists = fuse_experiment(
                *(experiment, source, system),
                folders=folders,
                dataset=dataset,
                split=split,
                trial=trial or 1,
            )
    else:
        given = {"--system": system, "--dataset": dataset, "--split": split, "--datasets": datasets}
        base.refuse_options("run files", {**given, "--trial": trial})
        layout = parse_run_columns(run_columns)
        fusion = {"method": "rrf" if method is None else method, **_parse_keys(change or [])}
        files = parse_named_files(inputs, "NAME=FILE")
        refuse_inputs(files.values())
        lists = fuse_files(files, fusion, layout)
        base.echo_notes(filter(None, [describe_fusion_alias(fusion)]))
    write_output(out, encode_run(out, make_run_rows(lists, has_sources=sources)))
    _print_summary(lists, out, as_json=json)


def _parse_keys(changes: list[str]) -> dict[str, object]:
    """``k=20`` as a key and its value in YAML.

    Raises:
        typer.BadParameter: It is no key with a value.
        ConfigError: The value is no YAML.
    """
    from fusion_bench.experiment.overrides import parse_value

    keys: dict[str, object] = {}
    for change in changes:
        key, has_value, value = change.partition("=")
        if not key or not has_value:
            raise typer.BadParameter(f"{change!r} is not KEY=VALUE", param_hint="--set")
        keys[key] = parse_value(value, change)
    return keys


def _print_summary(lists: FinalLists, out: Path, *, as_json: bool) -> None:
    import numpy as np

    answered = int(np.count_nonzero(np.diff(lists.offsets)))
    record = {
        "file": out,
        "system": lists.system,
        "queries": answered,
        "documents": len(lists.documents),
        "sources": lists.sources,
    }
    if as_json:
        print_json(record)
        return
    echo(
        f"Written: {out} ({lists.system} over {', '.join(lists.sources)}: {answered:,} queries, "
        f"{len(lists.documents):,} documents)"
    )
