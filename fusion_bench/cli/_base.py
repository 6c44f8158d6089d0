"""The application, and options and functions that commands share."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from fusion_bench.cli.application.exit_codes import describe_exit_codes
from fusion_bench.cli.application.lazy_group import LazyGroup
from fusion_bench.util.files.real_paths import resolve_path

if TYPE_CHECKING:
    from fusion_bench.config.files.yaml_source import Source
    from fusion_bench.evaluation.run_experiment import Progress
    from fusion_bench.experiment.experiment import Experiment

    OpenedExperiment: TypeAlias = tuple[Experiment, Source, list[Path], Progress]

#: The default experiment.
DEFAULT = Path("experiments/default.yaml")

#: The file name that stands for standard output.
STDOUT = Path("-")

#: Rich help takes four times the start-up time, so it is for terminals only.
RICH = sys.stdout.isatty()


def format_examples(*commands: str) -> str:
    """Epilog of a command with one example per line, in both kinds of help."""
    if RICH:
        return "\n\n".join(["Examples:", *commands])
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])


def command_app(**options: Any) -> typer.Typer:  # noqa: ANN401 - typer.Typer's own options
    """A Typer application, which every command file defines under the name ``command``."""
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
    epilog=describe_exit_codes(),
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
    """Turn the application into a group; :class:`LazyGroup` finds its commands."""


ExperimentFile = Annotated[
    Path, typer.Argument(help="YAML file of the experiment.", metavar="EXPERIMENT")
]
OutFolder = Annotated[
    Path | None,
    typer.Option("--out", help="Output folder. Default: reports/EXPERIMENT.", metavar="DIR"),
]
DatasetFolders = Annotated[
    list[Path] | None,
    typer.Option(
        "--datasets",
        help="Folder of named datasets; repeatable. Default: datasets/ beside the "
        "experiment's folder, ./datasets, then datasets/ in the folders above it.",
        metavar="DIR",
    ),
]


class PlotFormat(StrEnum):
    """The format of plots."""

    PNG = "png"
    SVG = "svg"


PlotFormatOption = Annotated[PlotFormat, typer.Option("--plot-format", help="Format of plots.")]


class TableFormat(StrEnum):
    """The format of tables."""

    LATEX = "latex"
    CSV = "csv"


TableFormats = Annotated[
    list[TableFormat] | None,
    typer.Option(
        "--tables",
        help="Also write each table of the page as a file: latex (booktabs) or csv; repeatable.",
        show_choices=False,
        metavar="FORMAT",
    ),
]


def _require_file(path: Path | None) -> Path | None:
    """A file to write; what is no file is refused before the work begins."""
    from fusion_bench.errors import ConfigError
    from fusion_bench.util.files.regular_files import IrregularFileError, check_regular

    if path is not None and path.is_dir():
        raise ConfigError(f"--markdown {path}: a folder, and a file is needed")
    try:
        check_regular(path or STDOUT)
    except IrregularFileError as error:
        raise ConfigError(f"--markdown {path}: {error}; - is standard output") from None
    except OSError:
        return path  # writing it says why
    return path


MarkdownFile = Annotated[
    Path | None,
    typer.Option(
        "--markdown",
        callback=_require_file,
        help="Write a summary of at most 40 lines to FILE; - prints it instead of the page.",
        metavar="FILE",
    ),
]
HtmlFlag = Annotated[bool, typer.Option("--html/--no-html", help="Write the page for a browser.")]
PlotsFlag = Annotated[bool, typer.Option("--plots/--no-plots", help="Write plots.")]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]


SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Replace a value of the experiment, such as systems.rrf.fusion.k=20; repeatable.",
        metavar="PATH=VALUE",
    ),
]


@contextmanager
def open_experiment(
    experiment: Path, overrides: Sequence[str] | None
) -> Iterator[tuple[Experiment, Source]]:
    """Read an experiment; once the work is done, say on standard error what its aliases became.

    Raises:
        ConfigError: The file or an override breaks a rule.
    """
    from fusion_bench.experiment.experiment import read_experiment
    from fusion_bench.experiment.methods.alias_notes import list_alias_notes

    parsed, source = read_experiment(experiment, overrides=overrides or ())
    if parsed.lint.ignore:
        from fusion_bench.lint import check_ignored

        check_ignored(parsed, source)
    yield parsed, source
    echo_notes(list_alias_notes(source.data))


def echo_notes(notes: Iterable[str]) -> None:
    """Print remarks on standard error, where they disturb no result."""
    from fusion_bench.util.formatting import escape_control_chars

    for note in notes:
        typer.echo(f"note: {escape_control_chars(note)}", err=True)


@contextmanager
def experiment_context(
    experiment: Path, datasets: list[Path] | None, overrides: Sequence[str] | None = None
) -> Iterator[OpenedExperiment]:
    """Read an experiment, and show a progress bar while the context lasts.

    Yields:
        The experiment, its source, folders of named datasets, and the progress bar.

    Raises:
        ConfigError: The file breaks a rule.
    """
    from fusion_bench.cli.progress.bar import progress_bar
    from fusion_bench.io.outputs import refuse_inputs

    opened = open_experiment(experiment, overrides)
    folders = folders_for(datasets, experiment)
    with opened as (parsed, source), progress_bar() as progress:
        refuse_inputs(list_inputs(parsed, source, folders))
        yield parsed, source, folders, progress


def list_inputs(experiment: Experiment, source: Source, folders: Iterable[Path]) -> Iterator[Path]:
    """The file of an experiment, and those of its datasets.

    Raises:
        FusionBenchError: A dataset is not there, or its ``dataset.yaml`` breaks a rule.
    """
    from fusion_bench.evaluation.run_experiment import find_datasets
    from fusion_bench.io.dataset_config import read_spec

    yield source.path
    for _, file in find_datasets(experiment, source, tuple(folders)):
        yield file
        yield from read_spec(file)[0].file_paths(file.parent)


def folders_for(given: list[Path] | None, experiment: Path | None = None) -> list[Path]:
    """Folders that hold named datasets."""
    if given:
        return given
    if experiment is None:
        return [Path("datasets")]
    project = resolve_path(experiment).parent.parent
    # A tuned.yaml lies deeper than the experiment that it comes from.
    above = [folder / "datasets" for folder in project.parents if (folder / "datasets").is_dir()]
    return [project / "datasets", Path("datasets"), *above]


def out_folder(given: Path | None, experiment: Path) -> Path:
    """Folder that a command writes to: ``--out``, or ``reports/EXPERIMENT``.

    The file ``reports/mine/tuning/tuned.yaml`` of ``tune`` has ``reports/mine/tuned``.

    Raises:
        ConfigError: A file is in the way.
    """
    from fusion_bench.util.files.atomic_files import require_folder
    from fusion_bench.util.files.output_folder import name_experiment

    name = name_experiment(experiment)
    place = Path("reports")
    if (experiment.parent / "tuning.json").exists():
        beside = experiment.parent
        place = beside.parent if beside.name == "tuning" else beside
    return require_folder(given or place / name)


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


def refuse_two_outputs(markdown: Path | None, *, as_json: bool) -> None:
    """Refuse JSON and Markdown on one standard output.

    Raises:
        typer.BadParameter: Both were asked for.
    """
    if as_json:
        refuse_options("--json", {"--markdown -": markdown if markdown == STDOUT else None})
