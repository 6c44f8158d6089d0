"""``dataset new``: a user's own files become a checked dataset."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli.application.app as base
from fusion_bench.cli.application.console import echo, echo_written, print_json
from fusion_bench.cli.application.file_options import parse_named_files, parse_rerank_files
from fusion_bench.experiment import DEFAULT_MEASURES

if TYPE_CHECKING:
    from fusion_bench.importers.new_dataset import NewDataset


NEW_EXAMPLES = base.format_examples(
    "fusion-bench dataset new datasets/mine",
    "fusion-bench dataset new datasets/mine bm25=a.trec dense=b.jsonl --qrels judged.csv",
    "fusion-bench dataset new datasets/mine bm25=a.trec dense=b.jsonl --qrels judged.csv "
    "--queries queries.jsonl --documents documents.jsonl",
)


def new_command(
    folder: Annotated[Path, typer.Argument(help="The folder to write.", metavar="DIR")],
    lists: Annotated[
        list[str] | None,
        typer.Argument(help="A ranked list and its name; two or more.", metavar="NAME=FILE"),
    ] = None,
    qrels: Annotated[
        Path | None,
        typer.Option(help="Judgments file. Default: none yet.", metavar="FILE"),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(help="JSON Lines: id, text, type, group, split.", metavar="FILE"),
    ] = None,
    documents: Annotated[
        Path | None, typer.Option(help="JSON Lines: id, title, text.", metavar="FILE")
    ] = None,
    rerank: Annotated[
        list[str] | None,
        typer.Option(help="A reranker's scores; repeatable.", metavar="NAME[:SPACE]=FILE"),
    ] = None,
    binary_relevance: Annotated[
        int, typer.Option(help="Grade from which binary measures count.", min=1)
    ] = 1,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Check what the files hold.")
    ] = True,
    json: base.JsonFlag = False,
) -> None:
    """Make a checked dataset of your own files, and an experiment on it.

    Asks on a terminal for the files that are not named. Checks what the lists cover, duplicates,
    ids that no document has, leaks between splits, and how large a difference the queries can show.
    Without judgments, 'fusion-bench judge DIR' makes them.
    """
    from fusion_bench.cli.application.progress import progress_bar
    from fusion_bench.evaluation.starter import StarterInput, check_free
    from fusion_bench.importers.new_dataset import COMMAND, make_new_dataset

    check_free(folder, COMMAND.option)
    if not lists or (qrels is None and _is_terminal()):
        qrels, lists, queries, documents = _ask_files(qrels, lists, queries, documents)
    given = StarterInput(
        qrels=qrels,
        runs=parse_named_files(lists, "NAME=FILE"),
        rerankers=parse_rerank_files(rerank or [], "--rerank"),
        queries=queries,
        measures=DEFAULT_MEASURES,
        binary_relevance=binary_relevance,
        documents=documents,
    )
    with progress_bar() as progress:
        made = make_new_dataset(given, folder, progress, check=check)
    if json:
        print_json(made)
    else:
        _print_dataset(made)


def _ask_files(
    qrels: Path | None, lists: list[str] | None, queries: Path | None, documents: Path | None
) -> tuple[Path | None, list[str], Path | None, Path | None]:
    """The files that are not named, asked for one after the other.

    Raises:
        typer.BadParameter: Nobody can be asked.
    """
    if not _is_terminal():
        raise typer.BadParameter(
            "two lists, NAME=FILE NAME=FILE: needed where nobody can be asked for it"
        )
    named = list(lists or [])
    if not named:
        echo("Ranked lists, one at a time: NAME=FILE; an empty line ends them.", err=True)
        while answer := _ask_file("List", takes_name=True):
            named.append(answer)
    qrels = qrels or _ask_path("Judgments, qrels (empty: none yet)")
    queries = queries or _ask_path("Queries, JSON Lines (empty: none)")
    documents = documents or _ask_path("Documents, JSON Lines (empty: none)")
    return qrels, named, queries, documents


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
