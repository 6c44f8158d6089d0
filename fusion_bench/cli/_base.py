"""The application that every command registers with, and what they share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypedDict

import typer

from fusion_bench.cli._lazy_group import LazyGroup

if TYPE_CHECKING:
    from rich.console import Console

    from fusion_bench.config.models import Source
    from fusion_bench.evaluation.run_experiment import Progress
    from fusion_bench.experiment.experiment import Experiment

__all__ = [
    "DEFAULT",
    "DatasetFolders",
    "ExperimentFile",
    "JsonFlag",
    "OutFolder",
    "PlotsFlag",
    "app",
    "command_app",
    "experiment_context",
    "folders_for",
    "format_examples",
    "make_console",
    "out_folder",
    "refuse_options",
    "require_folder",
]

#: The experiment where none is named.
DEFAULT = Path("experiments/default.yaml")

#: Columns where no terminal sets a limit: enough for every table without folding.
PIPE_WIDTH = 200
#: Rich help costs four times the start-up; through a pipe nobody sees its colours.
RICH = sys.stdout.isatty()


def format_examples(*commands: str) -> str:
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
    "3 inconclusive and the policy blocks, 4 done but degraded, 130 interrupted.",
)


def _print_version(asked: bool) -> None:
    if asked:
        from fusion_bench._version import __version__

        typer.echo(f"fusion-bench {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Make the application a group; its commands are found by :class:`LazyGroup`."""


ExperimentFile = Annotated[
    Path, typer.Argument(help="The experiment's YAML file.", metavar="EXPERIMENT")
]
OutFolder = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="Folder for what is written. Default: reports/EXPERIMENT.",
        metavar="DIR",
        show_default=False,
    ),
]
DatasetFolders = Annotated[
    list[Path] | None,
    typer.Option(
        "--datasets",
        help="Folder of named datasets; may be given again. Default: datasets/ beside the "
        "experiment's folder, ./datasets, then datasets/ further up from the experiment.",
        metavar="DIR",
        show_default=False,
    ),
]
PlotsFlag = Annotated[bool, typer.Option("--plots/--no-plots", help="Draw the PNG plots.")]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for programs to read.")]


class RunOptions(TypedDict):
    """What every walk over an experiment is told, by the names of its arguments."""

    folders: list[Path]
    progress: Progress


class ExperimentContext(NamedTuple):
    """An experiment, where it says what, and how it is walked."""

    experiment: Experiment
    source: Source
    options: RunOptions


@contextmanager
def experiment_context(
    experiment: Path, datasets: list[Path] | None
) -> Iterator[ExperimentContext]:
    """Read an experiment, and show a progress bar for as long as the work on it lasts.

    Raises:
        ConfigError: The file breaks a rule.
    """
    from fusion_bench.cli._progress import progress_bar
    from fusion_bench.experiment.experiment import read_experiment

    parsed, source = read_experiment(experiment)
    folders = folders_for(datasets, experiment)
    with progress_bar() as progress:
        yield ExperimentContext(parsed, source, {"folders": folders, "progress": progress})


def folders_for(given: list[Path] | None, experiment: Path | None = None) -> list[Path]:
    """Where named datasets are looked for."""
    if given:
        return given
    if experiment is None:
        return [Path("datasets")]
    project = experiment.resolve().parent.parent
    # A tuned.yaml lies deeper than the experiment that it was made from.
    further = (folder / "datasets" for folder in project.parents)
    found = (folder for folder in further if folder.is_dir())
    return [project / "datasets", Path("datasets"), *found]


def out_folder(given: Path | None, experiment: Path) -> Path:
    """Where a command writes: what ``--out`` says, or ``reports/EXPERIMENT``.

    What ``tune`` wrote, such as ``reports/mine/tuning/tuned.yaml``, has the same name for every
    experiment: its place is ``reports/mine/tuned``.

    Raises:
        ConfigError: A file stands in the way.
    """
    name = experiment.stem.strip(".") or "experiment"  # "...yaml" is a file, ".." another folder
    place = Path("reports")
    if (experiment.parent / "tuning.json").exists():
        beside = experiment.parent
        place = beside.parent if beside.name == "tuning" else beside
    return require_folder(given or place / name)


def require_folder(folder: Path) -> Path:
    """The folder itself, if it is there or can be made: said before the work begins.

    Raises:
        ConfigError: A file stands in the way.
    """
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            from fusion_bench.errors import ConfigError

            raise ConfigError(f"--out {folder}: {path} is a file: name a folder")
    return folder


def refuse_options(purpose: str, given: Mapping[str, object]) -> None:
    """Refuse options that have no effect, so that none is ignored silently.

    Args:
        purpose: What they do not go with.
        given: Option → its value; None or empty = not given.

    Raises:
        typer.BadParameter: One was given.
    """
    for option, value in given.items():
        if value not in (None, [], ()):
            raise typer.BadParameter(f"does not go with {purpose}", param_hint=option)


def make_console() -> Console:
    """Standard output: coloured on a terminal, plain and wide enough through a pipe.

    Who sets ``COLUMNS`` for a pipe gets what a terminal of that width gets, without its colours.
    """
    from rich.console import Console

    if sys.stdout.isatty():
        return Console(highlight=False)
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked):
        return Console(highlight=False, width=int(asked), force_terminal=True, color_system=None)
    return Console(highlight=False, width=PIPE_WIDTH)
