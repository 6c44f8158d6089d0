"""List, show and check datasets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli._base as base
from fusion_bench.cli._console import echo, print_json, print_tables

if TYPE_CHECKING:
    from fusion_bench.io.dataset_config import DatasetSpec
    from fusion_bench.report.page import Table

command = base.command_app(
    help="List, show and check datasets.",
    no_args_is_help=True,
    epilog=base.format_examples(
        "fusion-bench dataset list",
        "fusion-bench dataset show attack",
        "fusion-bench dataset check datasets/mine/dataset.yaml",
    ),
)

Name = Annotated[
    str, typer.Argument(help="A dataset's name, its folder or its dataset.yaml.", metavar="NAME")
]


@command.command("list", epilog=base.format_examples("fusion-bench dataset list --json"))
def list_command(datasets: base.DatasetFolders = None, json: base.JsonFlag = False) -> None:
    """List the datasets that commands find by name."""
    from fusion_bench.io.dataset_config import read_spec
    from fusion_bench.io.dataset_search import list_datasets

    specs: dict[str, DatasetSpec] = {}
    for folder in base.folders_for(datasets):
        for path in list_datasets(folder):
            specs.setdefault(path.parent.name, read_spec(path)[0])
    if json:
        print_json(specs)
        return
    if not specs:
        looked = ", ".join(str(folder) for folder in base.folders_for(datasets))
        echo(f"no dataset in {looked}: name the folder with --datasets")
    else:
        print_tables(build_dataset_table(specs))


def build_dataset_table(specs: Mapping[str, DatasetSpec]) -> Table:
    """A row a dataset: its lists and its description."""
    from fusion_bench.report.record_table import make_record_table

    records = [
        {
            "dataset": name,
            "runs": len(spec.runs),
            "rerank lists": len(spec.rerank),
            "description": spec.description,
        }
        for name, spec in specs.items()
    ]
    return make_record_table("Datasets", records)


@command.command("show", epilog=base.format_examples("fusion-bench dataset show attack"))
def show_command(
    name: Name, datasets: base.DatasetFolders = None, json: base.JsonFlag = False
) -> None:
    """Show a dataset: queries, judgments, lists and their roles."""
    from fusion_bench.evaluation.dataset_summary import describe_dataset
    from fusion_bench.io.dataset import load_dataset
    from fusion_bench.io.dataset_search import find_dataset

    facts = describe_dataset(load_dataset(find_dataset(name, base.folders_for(datasets))))
    if json:
        print_json(facts)
        return
    _print_facts(facts)


@command.command(
    "check", epilog=base.format_examples("fusion-bench dataset check datasets/mine/dataset.yaml")
)
def check_command(
    name: Name, datasets: base.DatasetFolders = None, json: base.JsonFlag = False
) -> None:
    """Check every file of a dataset; exit code 2 at the first error."""
    from fusion_bench.evaluation.dataset_summary import (
        dataset_notices,
        describe_dataset,
        unjudged_shares,
    )
    from fusion_bench.io.dataset import load_dataset
    from fusion_bench.io.dataset_search import find_dataset

    path: Path = find_dataset(name, base.folders_for(datasets))
    dataset = load_dataset(path, cache=False)
    messages = dataset_notices(dataset)
    facts = describe_dataset(dataset) | {"unjudged_share_in_top_10": unjudged_shares(dataset)}
    if json:
        print_json({"file": path, **facts, "notes": messages})
        return
    _print_facts(facts)
    for notice in messages:
        echo(f"note: {notice}")
    echo(f"{path}: no errors, {len(messages)} notes: fusion-bench dataset show {quote(name)}")


def _print_facts(facts: dict[str, object]) -> None:
    from fusion_bench.report.record_table import format_cell

    for key, value in facts.items():
        if not isinstance(value, list):
            echo(f"{key.replace('_', ' ')}: {format_cell(value)}")
    for table in build_list_tables(facts):
        echo("")
        print_tables(table)


def build_list_tables(facts: Mapping[str, object]) -> Iterator[Table]:
    """A table of the runs, and one of the rerank lists."""
    from fusion_bench.report.record_table import make_record_table

    for key, value in facts.items():
        if isinstance(value, list) and value:
            yield make_record_table(key.replace("_", " "), value)
