"""Write the final lists of a system, or of a fusion of run files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.api.fuse import fuse_experiment, fuse_files, make_run_rows
from fusion_bench.cli.application import file_options
from fusion_bench.cli.application.console import echo, print_json
from fusion_bench.config.options import Argument, Changes, File, Name, Number
from fusion_bench.experiment.overrides import parse_value
from fusion_bench.io.outputs import refuse_inputs, write_output
from fusion_bench.io.write_run import encode_run, find_writer

if TYPE_CHECKING:
    from fusion_bench.ranking.final_lists import FinalLists

#: Suffixes of an experiment's file.
YAML = {".yaml", ".yml"}


class FuseOptions(
    file_options.ReadingOptions, file_options.RoleOptions, base.DatasetOptions, base.PluginOptions
):
    """Options of ``fuse``.

    Attributes:
        inputs: YAML file of an experiment, or two or more ranked lists with their names.
        out: The file. Its suffix names the format: .trec .run .jsonl .csv .tsv .parquet; .gz may
            follow.
        system: System of the experiment.
        dataset: Dataset, if the experiment has several.
        split: Only queries of this split. Default: every query that a run answers.
        trial: Which file of each list that has several. Default: the first.
        sources: Write the rank and score of each document in each list.
        method: Fusion of run files, such as rrf or convex. Default: rrf.
        change: Set a key of --method, or replace a value of the experiment, such as
            systems.rrf.fusion.k=20; repeatable.
    """

    inputs: Annotated[Sequence[str], Argument("EXPERIMENT | NAME=FILE…")]
    out: File
    system: Name | None = None
    dataset: Name | None = None
    split: Name | None = None
    trial: Number | None = None
    sources: bool = False
    method: str | None = None
    change: Changes = ()


@base.single_command()
def command(options: FuseOptions) -> None:
    """Write the final lists of a system, or of a fusion of run files.

    Ranks begin at 1. Sorting a list by its scores gives the same order.

    Examples:
        fusion-bench fuse experiments/mine.yaml --system rrf --out rrf.trec
        fusion-bench fuse experiments/mine.yaml --system rrf --out rrf.csv --split test --sources
        fusion-bench fuse bm25=a.jsonl dense=b.jsonl --method rrf --set k=20 --out rrf.trec
    """
    import numpy as np

    out, inputs = options.out, options.inputs
    find_writer(out, has_sources=options.sources)
    first = Path(inputs[0])
    is_experiment = len(inputs) == 1 and (first.suffix.lower() in YAML or first.is_dir())
    lists = _fuse_experiment(options) if is_experiment else _fuse_files(options)
    write_output(out, encode_run(out, make_run_rows(lists, has_sources=options.sources)))
    answered = int(np.count_nonzero(np.diff(lists.offsets)))
    record = {
        "file": out,
        "system": lists.system,
        "queries": answered,
        "documents": len(lists.documents),
        "sources": lists.sources,
    }
    if options.json:
        print_json(record)
        return
    echo(
        f"Written: {out} ({lists.system} over {', '.join(lists.sources)}: {answered:,} queries, "
        f"{len(lists.documents):,} documents)"
    )


def _fuse_experiment(options: FuseOptions) -> FinalLists:
    base.refuse(options, "does not go with an experiment", "method", "role", *file_options.READING)
    if options.system is None:
        raise typer.BadParameter("name a system of the experiment", param_hint="--system")
    given = options.call(
        base.ExperimentOptions,
        experiment=base.find_experiment(Path(options.inputs[0])),
        overrides=options.change,
    )
    with given.read() as (experiment, source):
        return options.call(
            fuse_experiment,
            *(experiment, source, options.system),
            folders=given.folders,
            trial=options.trial or 1,
        )


def _fuse_files(options: FuseOptions) -> FinalLists:
    from fusion_bench.experiment.method_table import describe_fusion_alias

    of_experiments = ("system", "dataset", "split", "datasets", "trial")
    base.refuse(options, "does not go with run files", *of_experiments)
    method = "rrf" if options.method is None else options.method
    keys: dict[str, object] = {}
    for change in options.change:
        key, has_value, value = change.partition("=")
        if not key or not has_value:
            raise typer.BadParameter(f"{change!r} is not KEY=VALUE", param_hint="--set")
        keys[key] = parse_value(value, change)
    fusion = {"method": method, **keys}
    files = file_options.parse_named_files(options.inputs, "NAME=FILE")
    settings = options.state_files(files)
    refuse_inputs(files.values())
    lists = fuse_files(files, fusion, settings, roles=options.parse_roles())
    base.echo_notes(filter(None, [describe_fusion_alias(fusion)]))
    return lists
