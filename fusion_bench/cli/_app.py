"""The application that every command registers with, and what they share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fusion_bench.cli._lazy import LazyGroup
from fusion_bench.switches import v2_enabled

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "DatasetFolders",
    "JsonFlag",
    "app",
    "command_app",
    "console",
    "examples",
    "folders_for",
    "v2_enabled",
]

#: Columns where no terminal sets a limit: enough for every table without folding.
PIPE_WIDTH = 200
#: Rich help costs four times the start-up; through a pipe nobody sees its colours.
RICH = sys.stdout.isatty()


def examples(*commands: str) -> str:
    """A command's epilog: example lines that stay lines in both kinds of help."""
    if RICH:
        return "\n\n".join(["Examples:", *commands])
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])


def command_app(**options: Any) -> typer.Typer:  # noqa: ANN401 - typer.Typer's own options
    """A Typer application as every command file defines one, under the name ``command``."""
    return typer.Typer(
        add_completion=False,
        rich_markup_mode="rich" if RICH else None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        **options,
    )


app = command_app(
    cls=LazyGroup,
    help="Compare ways to fuse ranked lists and to blend in a reranker, on judged queries.",
    no_args_is_help=True,
    epilog="Exit codes: 0 done or passed, 1 the gate found a regression, 2 could not do it, "
    "3 the gate cannot tell and its policy blocks, 130 interrupted.",
)


def _version(asked: bool) -> None:
    if asked:
        from fusion_bench._version import __version__

        typer.echo(f"fusion-bench {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Make the application a group; its commands are found by :class:`LazyGroup`."""


JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for programs to read.")]
DatasetFolders = Annotated[
    list[Path] | None,
    typer.Option(
        "--datasets",
        help="Folder of named datasets; may be given again. Default: datasets/ beside the "
        "experiment's folder, then ./datasets.",
        metavar="DIR",
        show_default=False,
    ),
]


def folders_for(given: list[Path] | None, experiment: Path | None = None) -> list[Path]:
    """Where named datasets are looked for."""
    if given:
        return given
    beside = [] if experiment is None else [experiment.resolve().parent.parent / "datasets"]
    return [*beside, Path("datasets")]


def console() -> Console:
    """Standard output: coloured on a terminal, plain and wide enough through a pipe."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)
