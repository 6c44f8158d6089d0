"""``dataset new``: a user's own files become a checked dataset."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application import file_options
from fusion_bench.cli.application.console import echo, echo_written, print_json
from fusion_bench.config.options import Argument, Count, File
from fusion_bench.experiment import DEFAULT_MEASURES

if TYPE_CHECKING:
    from fusion_bench.importers.new_dataset import NewDataset


class NewOptions(base.JsonOptions):
    """Options of ``dataset new``.

    Attributes:
        folder: The folder to write.
        lists: A ranked list and its name; two or more.
        qrels: Judgments file. Default: none yet.
        queries: JSON Lines: id, text, type, group, split.
        documents: JSON Lines: id, title, text.
        rerank: A reranker's scores; repeatable.
        binary_relevance: Grade from which binary measures count.
        check: Check what the files hold.
    """

    folder: Annotated[Path, Argument("DIR")]
    lists: Annotated[Sequence[str], Argument("NAME=FILE")] = ()
    qrels: File | None = None
    queries: File | None = None
    documents: File | None = None
    rerank: file_options.RerankFiles = ()
    binary_relevance: Count = 1
    check: bool = True


def new_command(options: NewOptions) -> None:
    """Make a checked dataset of your own files, and an experiment on it.

    Asks on a terminal for the files that are not named. Checks what the lists cover, duplicates,
    ids that no document has, leaks between splits, and how large a difference the queries can show.
    Without judgments, 'fusion-bench judge DIR' makes them.

    Examples:
        fusion-bench dataset new datasets/mine
        fusion-bench dataset new datasets/mine bm25=a.trec dense=b.jsonl --qrels judged.csv
        fusion-bench dataset new datasets/mine bm25=a.trec dense=b.jsonl --qrels judged.csv
            --queries queries.jsonl --documents documents.jsonl
    """
    from fusion_bench.cli.application.progress import progress_bar
    from fusion_bench.evaluation.starter import StarterInput, check_free
    from fusion_bench.importers.new_dataset import COMMAND, make_new_dataset

    check_free(options.folder, COMMAND.option)
    if not options.lists or (options.qrels is None and _is_terminal()):
        options = _ask_files(options)
    given = options.call(
        StarterInput,
        runs=file_options.parse_named_files(options.lists, "NAME=FILE"),
        rerankers=file_options.parse_rerank_files(options.rerank, "--rerank"),
        measures=DEFAULT_MEASURES,
    )
    with progress_bar() as progress:
        made = make_new_dataset(given, options.folder, progress, check=options.check)
    if options.json:
        print_json(made)
    else:
        _print_dataset(made)


def _ask_files(options: NewOptions) -> NewOptions:
    """With the files that are not named, asked for one after the other.

    Raises:
        typer.BadParameter: Nobody can be asked.
    """
    if not _is_terminal():
        raise typer.BadParameter(
            "two lists, NAME=FILE NAME=FILE: needed where nobody can be asked for it"
        )
    named = list(options.lists)
    if not named:
        echo("Ranked lists, one at a time: NAME=FILE; an empty line ends them.", err=True)
        while answer := _ask_file("List", takes_name=True):
            named.append(answer)
    return replace(
        options,
        lists=tuple(named),
        qrels=options.qrels or _ask_path("Judgments, qrels (empty: none yet)"),
        queries=options.queries or _ask_path("Queries, JSON Lines (empty: none)"),
        documents=options.documents or _ask_path("Documents, JSON Lines (empty: none)"),
    )


def _ask_path(what: str) -> Path | None:
    answer = _ask_file(what)
    return Path(answer) if answer else None


def _ask_file(what: str, *, takes_name: bool = False) -> str:
    """Ask until a file exists, or nothing is answered; a typing error costs no other answer."""
    while answer := _ask(what):
        file = answer.partition("=")[2] if takes_name and "=" in answer else answer
        if Path(answer).exists() or Path(file).exists():
            break
        echo(f"{file}: no such file", err=True)
    return answer


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _ask(what: str) -> str:
    answer: str = typer.prompt(what, default="", show_default=False, err=True)
    return answer.strip()


def _print_dataset(made: NewDataset) -> None:
    echo(f"Dataset {made.name}")
    width = max((len(each.status) for each in made.findings), default=0)
    if not made.findings:
        echo(f"  not checked: fusion-bench dataset check {quote(str(made.files[0]))}")
    for each in made.findings:
        echo(f"  {each.status:<{width}}  {each.check}: {each.text}")
        if each.advice:
            echo(f"  {'':<{width}}  → {each.advice}")
    for note in made.notes:
        echo(f"note: {note}")
    echo_written(made.files)
    experiment = quote(str(made.files[1]))
    if made.is_judged:
        echo(f"Next: fusion-bench eval {experiment}")
        return
    folder = quote(str(made.files[0].parent))
    echo("No judgments yet: systems cannot be compared. judge makes some, here of grades 0 to 3.")
    echo(f"Next: fusion-bench judge {folder} --max-grade 3, then fusion-bench eval {experiment}")
