"""List, show and check datasets, and make one of a log, a collection or files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli.application.app as base
from fusion_bench.cli.application.console import echo, echo_written, print_json, print_tables
from fusion_bench.cli.application.dataset_new import NEW_EXAMPLES, new_command
from fusion_bench.config.models import MOST_RANK
from fusion_bench.util.file_paths import resolve_path
from fusion_bench.util.formatting import pluralize

if TYPE_CHECKING:
    from fusion_bench.io.dataset_config import DatasetSpec
    from fusion_bench.report.page import Table


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
    from fusion_bench.cli.application.progress import progress_bar
    from fusion_bench.importers.public_collections import add_dataset

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


command = base.command_app(
    help="List, show and check datasets, and make one of a log, a collection or files.",
    no_args_is_help=True,
    epilog=base.format_examples(
        "fusion-bench dataset list",
        "fusion-bench dataset show attack",
        "fusion-bench dataset check datasets/mine/dataset.yaml",
        "fusion-bench dataset unjudged experiments/mine.yaml > to-judge.tsv",
        "fusion-bench dataset from-logs results.jsonl --out datasets/mine",
        "fusion-bench dataset add beir:downloads/scifact --out datasets/scifact",
        "fusion-bench dataset new datasets/mine bm25=a.trec dense=b.jsonl --qrels judged.csv",
    ),
)
command.command("add", epilog=ADD_EXAMPLES)(add_command)
command.command("new", epilog=NEW_EXAMPLES)(new_command)

Name = Annotated[
    str, typer.Argument(help="A dataset's name, its folder or its dataset.yaml.", metavar="NAME")
]


@command.command("list", epilog=base.format_examples("fusion-bench dataset list --json"))
def list_command(datasets: base.DatasetFolders = None, json: base.JsonFlag = False) -> None:
    """List the datasets that commands find by name."""
    from fusion_bench.io.dataset_config import read_spec
    from fusion_bench.io.dataset_paths import list_datasets

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
    from fusion_bench.report.table import make_record_table

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
    from fusion_bench.checks.dataset_facts import describe_dataset
    from fusion_bench.io.dataset import load_dataset
    from fusion_bench.io.dataset_paths import find_dataset

    path = find_dataset(name, base.folders_for(datasets))
    facts = describe_dataset(load_dataset(path, every_query=None))
    if json:
        print_json(facts)
        return
    _print_facts(facts)


@command.command(
    "check",
    epilog=base.format_examples(
        "fusion-bench dataset check datasets/mine/dataset.yaml",
        "fusion-bench dataset check mine --write-groups datasets/mine/groups.jsonl",
    ),
)
def check_command(
    name: Name,
    datasets: base.DatasetFolders = None,
    write_groups: Annotated[
        Path | None,
        typer.Option(
            help="Write the groups of near-duplicate queries, for 'groups' in the dataset.yaml.",
            metavar="FILE",
        ),
    ] = None,
    json: base.JsonFlag = False,
) -> None:
    """Check every file of a dataset; exit code 2 at the first error."""
    from fusion_bench.checks.dataset_facts import dataset_notices, describe_dataset, unjudged_shares
    from fusion_bench.io.dataset import load_dataset
    from fusion_bench.io.dataset_paths import find_dataset

    path: Path = find_dataset(name, base.folders_for(datasets))
    dataset = load_dataset(path, cache=False, every_query=None)
    if dataset.spec.has_refined_lists:
        load_dataset(path, cache=False, refined=True, every_query=None).aligned([*dataset.runs])
    messages = dataset_notices(dataset)
    facts = describe_dataset(dataset) | {"unjudged_share_in_top_10": unjudged_shares(dataset)}
    if write_groups is not None:
        from fusion_bench.checks.query_warnings import write_found_groups

        own = resolve_path(path.parent / (dataset.spec.group_file or ""))
        is_owned = resolve_path(write_groups) == own
        facts["groups_written"] = write_found_groups(dataset, write_groups, is_owned=is_owned)
    if json:
        print_json({"file": path, **facts, "notes": messages})
        return
    _print_facts(facts)
    for notice in messages:
        echo(f"note: {notice}")
    notes = pluralize(len(messages), "note")
    echo(f"{path}: no errors, {notes}: fusion-bench dataset show {quote(name)}")


@command.command(
    "unjudged",
    epilog=base.format_examples(
        "fusion-bench dataset unjudged experiments/mine.yaml > to-judge.tsv",
        "fusion-bench dataset unjudged experiments/mine.yaml --system rrf --depth 5 --json",
    ),
)
def unjudged_command(
    experiment: base.ExperimentFile = base.DEFAULT,
    system: Annotated[
        list[str] | None,
        typer.Option(help="System, beside the baseline; repeatable. Default: all.", metavar="NAME"),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(help="One of several datasets. Default: each of them.", metavar="NAME"),
    ] = None,
    depth: Annotated[
        int, typer.Option(help="The greatest rank that counts.", min=1, max=MOST_RANK)
    ] = 10,
    datasets: base.DatasetFolders = None,
    overrides: base.SetOption = None,
    json: base.JsonFlag = False,
) -> None:
    """List the unjudged documents that an experiment's systems return, the highest ranks first.

    Judging them is what lets a comparison say more. Prints tab-separated values: dataset, query,
    document, best rank, and the systems that return it within the depth.
    """
    from fusion_bench.explain.documents_to_judge import list_unjudged_documents
    from fusion_bench.util.formatting import escape_control_chars

    context = base.experiment_context(experiment, datasets, overrides)
    with context as (parsed, source, folders, progress):
        documents = list_unjudged_documents(
            *(parsed, source),
            folders=folders,
            systems=system or (),
            dataset=dataset,
            depth=depth,
            progress=progress,
        )
    if json:
        print_json({"depth": depth, "documents": documents})
        return
    typer.echo("dataset\tquery\tdocument\tbest_rank\tsystems")
    for row in documents:
        typer.echo("\t".join(map(escape_control_chars, row.cells)))


class OnDuplicate(StrEnum):
    """What to do about two searches for one page of a query."""

    ERROR = "error"
    LAST = "last"


@command.command(
    "from-logs",
    epilog=base.format_examples(
        "fusion-bench dataset from-logs results.jsonl --out datasets/mine",
        "fusion-bench dataset from-logs results.jsonl --out datasets/mine --qrels qrels.txt "
        "--queries queries.jsonl",
    ),
)
def from_logs_command(
    log: Annotated[
        Path,
        typer.Argument(help="SearchResult records as JSON, one a line.", metavar="LOG"),
    ],
    out: Annotated[Path, typer.Option(help="The folder to write.", metavar="DIR")],
    qrels: Annotated[
        Path | None,
        typer.Option(help="Judgments, which are copied; a log has none.", metavar="FILE"),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            help="JSON Lines with the id and text of each query. Default: q1, q2, …",
            metavar="FILE",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="The dataset's name. Default: the folder's.", metavar="NAME")
    ] = None,
    k: Annotated[
        int, typer.Option(help="Constant of production's RRF.", metavar="K", min=1, max=1000)
    ] = 60,
    on_duplicate: Annotated[
        OnDuplicate,
        typer.Option(help="Two searches for one query that differ: an error, or the last counts."),
    ] = OnDuplicate.ERROR,
    json: base.JsonFlag = False,
) -> None:
    """Make a dataset of logged searches, and an experiment that replays production."""
    from fusion_bench.importers.log_dataset import LogOptions, write_log_dataset

    options = LogOptions(out, qrels, queries, name, k, on_duplicate.value)
    made = write_log_dataset(log, options)
    if json:
        print_json(made)
        return
    lists = ", ".join(f"{name} ({count:,})" for name, count in made.lists.items())
    echo(f"{pluralize(made.queries, 'query')}; lists with their documents: {lists}")
    echo(f"replay: {made.check.same_order:,} of {made.check.queries:,} queries in the logged order")
    for notice in made.notes:
        echo(f"note: {notice}")
    echo_written(made.files)
    if qrels is not None:
        echo(f"Next: fusion-bench eval {quote(str(out / 'experiment.yaml'))}")


def _print_facts(facts: dict[str, object]) -> None:
    from fusion_bench.report.table import format_cell

    for key, value in facts.items():
        if not isinstance(value, list):
            echo(f"{key.replace('_', ' ')}: {format_cell(value)}")
    for table in build_list_tables(facts):
        echo("")
        print_tables(table)


def build_list_tables(facts: Mapping[str, object]) -> Iterator[Table]:
    """A table of the runs, and one of the rerank lists."""
    from fusion_bench.report.table import make_record_table

    for key, value in facts.items():
        if isinstance(value, list) and value:
            yield make_record_table(key.replace("_", " "), value)
