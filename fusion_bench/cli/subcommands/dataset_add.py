"""``dataset add``: a published test collection becomes a dataset."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

import fusion_bench.cli._base as base
from fusion_bench.cli.output.console import echo, echo_written, print_json

ADD_EXAMPLES = base.format_examples(
    "fusion-bench dataset add beir:downloads/nfcorpus --out datasets/nfcorpus --split test",
    "fusion-bench dataset add ir_datasets:beir/nfcorpus/test --out datasets/nfcorpus",
    "fusion-bench dataset add mteb:~/.cache/huggingface/hub/datasets--mteb--scifact "
    "--out datasets/scifact",
)


def add_command(
    collection: Annotated[
        str,
        typer.Argument(
            help="Where it is: ir_datasets:ID, beir:FOLDER or mteb:FOLDER.", metavar="COLLECTION"
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder to write.", metavar="DIR")],
    split: Annotated[
        list[str] | None,
        typer.Option(help="Only this split; repeatable. Default: all.", metavar="NAME"),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="The dataset's name. Default: the collection's.", metavar="NAME"),
    ] = None,
    any_counts: Annotated[
        bool, typer.Option("--any-counts", help="Accept counts that differ from the stated ones.")
    ] = False,
    download: Annotated[
        bool, typer.Option("--download", help="Let ir_datasets download what its cache lacks.")
    ] = False,
    json: base.JsonFlag = False,
) -> None:
    """Make a dataset of a published test collection: queries, judgments and documents.

    Reads a folder, or the cache of ir_datasets, and uses no network without --download. Compares
    the numbers of queries, judgments and documents with those that the collection's makers state.
    """
    from fusion_bench.cli.progress.bar import progress_bar
    from fusion_bench.datasets.add_dataset import add_dataset

    with progress_bar() as progress:
        added = add_dataset(
            collection,
            out,
            splits=split or (),
            name=name,
            any_counts=any_counts,
            download=download,
            progress=progress,
        )
    if json:
        print_json(added)
        return
    counts = ", ".join(
        f"{count:,} {what.replace('_', ' ')}" for what, count in added.counts.items()
    )
    echo(f"{added.name}: {counts}")
    echo(f"license: {added.license or 'not stated'}")
    equal = [each for each in added.compared if each not in added.differing]
    comparison = {"as stated": equal, "not as stated": added.differing}
    listed = [f"{status}: {', '.join(names)}" for status, names in comparison.items() if names]
    echo(f"counts: {'; '.join(listed) or 'none is stated'}")
    for note in added.notes:
        echo(f"note: {note}")
    echo_written(added.files)
    echo(f"Next: fusion-bench retrieve bm25 --dataset {quote(str(added.files[0]))}")
