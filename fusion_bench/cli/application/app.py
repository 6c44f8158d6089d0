"""The application: a group that imports a command's file when it runs; the options they share."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer
from typer.core import TyperCommand, TyperGroup

from fusion_bench.cli.application.process import CommandInterruptedError, describe_exit_codes
from fusion_bench.config.plugins import load_reference, read_entry_points
from fusion_bench.errors import UnknownNameError
from fusion_bench.util.file_paths import resolve_path
from fusion_bench.util.formatting import is_decimal

SPELLING = "a number has plain digits, such as 12, 0.005 or 1e-3"
#: What Python makes of bytes that are no UTF-8, as it writes them in quotes.
SURROGATE = re.compile(r"(?<!\\)(?:\\\\)*\\ud[89a-f]")
UNREADABLE = "not UTF-8 text; a file or folder of such a name has to be renamed"
EMPTY = "an empty name, perhaps of a variable that is not set: name a file or a folder"


def check_spelling(command: Any) -> None:  # noqa: ANN401 - vendored types
    """Let the options of a command and of its subcommands refuse other spellings.

    Typer takes what Python does: ``1_000``, ``inf``, blanks around. ``--max-cost 1_5`` would be 15,
    and an empty path the working directory.
    """
    for parameter in command.params:
        _check_parameter(parameter)
    for subcommand in getattr(command, "commands", {}).values():
        check_spelling(subcommand)


def _check_parameter(parameter: Any) -> None:  # noqa: ANN401 - vendored types
    convert = parameter.process_value

    def process_value(context: typer.Context, text: Any) -> Any:  # noqa: ANN401 - any option's
        value = convert(context, text)
        if SURROGATE.search(repr(text)):
            raise typer.BadParameter(UNREADABLE, ctx=context, param=parameter)
        if _is_number(value) and isinstance(text, str) and not is_decimal(text):
            raise typer.BadParameter(f"{SPELLING}, given {text!r}", ctx=context, param=parameter)
        is_path = isinstance(value[0] if isinstance(value, list) and value else value, Path)
        if is_path and (text == "" or (isinstance(text, list | tuple) and "" in text)):
            raise typer.BadParameter(EMPTY, ctx=context, param=parameter)
        return value

    parameter.process_value = process_value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


#: Options of all commands that name a file or a folder to write.
OUTPUTS: Final = frozenset(
    {
        *("--out", "--save", "--save-vectors", "--save-passages", "--records", "--plot"),
        *("--markdown", "--comment", "--junit", "--export", "--write-qrels", "--write-groups"),
    }
)
#: Those whose commands decide which files are their own.
OWNED: Final = frozenset({"--export", "--write-qrels", "--write-groups"})
#: Stands for standard output.
STANDARD_OUTPUT: Final = Path("-")

_template = typer.Typer(add_completion=False)


@_template.command()
def _force_option(
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that this program did not write.")
    ] = False,
) -> None:
    """Has the option that commands are given."""


def guard_outputs(command: Any) -> None:  # noqa: ANN401 - vendored types
    """Give a command that writes files, and its subcommands, ``--force`` and what it stands for."""
    for subcommand in getattr(command, "commands", {}).values():
        guard_outputs(subcommand)
    options = {each.name: each.opts[0] for each in command.params}
    if OUTPUTS.isdisjoint(options.values()):
        return
    checked = {each.opts[0] for each in command.params if each.metavar == "FILE"} - OWNED
    run, (force, *_) = command.invoke, typer.main.get_command(_template).params
    command.params.append(force)

    def invoke(context: Any) -> Any:  # noqa: ANN401 - vendored types
        from fusion_bench.io.outputs import guard_outputs as guard

        is_forced = context.params.pop(force.name)
        given = {
            options[name]: value
            for name, value in context.params.items()
            if isinstance(value, Path) and value != STANDARD_OUTPUT
        }
        outputs = {option: path for option, path in given.items() if option in OUTPUTS}
        inputs = [path for option, path in given.items() if option not in OUTPUTS]
        files = [path for path in inputs if not path.is_dir()]
        with guard(outputs, files, is_forced=is_forced, checked=checked):
            return run(context)

    command.invoke = invoke


PACKAGE = "fusion_bench.cli"
#: The folder of this package, whose modules are the commands.
FOLDER = Path(__file__).parent.parent
#: Entry points of other distributions: a name, and a Typer application with one command.
ENTRY_POINTS = "fusion_bench.commands"


class LazyGroup(TyperGroup):
    """Commands are the files of :data:`FOLDER`, and entry points of other distributions.

    The overview reads only each file's first line. A file of the folder takes precedence over an
    entry point of the same name.
    """

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override] # noqa: ARG002
        """Names of all commands."""
        return sorted({*_command_files(), *read_entry_points(ENTRY_POINTS)})

    def get_command(self, ctx: typer.Context, cmd_name: str) -> TyperCommand | None:  # type: ignore[override] # noqa: ARG002
        """The command with its help line only, unless it is the one to run."""
        if cmd_name in self.commands:
            return self.commands[cmd_name]  # type: ignore[return-value]
        if cmd_name in _command_files():
            text = (FOLDER / f"{cmd_name}.py").read_text(encoding="utf-8")
            return TyperCommand(cmd_name, help=text.partition("\n")[0].strip('"'))
        reference = read_entry_points(ENTRY_POINTS).get(cmd_name)
        return TyperCommand(cmd_name, help=f"Added by {reference}.") if reference else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - vendored types
        """Import the command that was named, then resolve as any group does."""
        name = args[0] if args else ""
        if name in self.list_commands(ctx):
            self.commands[name] = typer.main.get_command(_load_application(name))
            self.commands[name].name = name
            check_spelling(self.commands[name])
            guard_outputs(self.commands[name])
        elif name and not name.startswith("-"):
            ctx.fail(str(UnknownNameError("command", name, self.list_commands(ctx))))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - vendored types
        """Run the command; Typer would turn Ctrl-C into an exit code that a result may have too."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise CommandInterruptedError from error


def _load_application(name: str) -> typer.Typer:
    if name in _command_files():
        application = importlib.import_module(f"{PACKAGE}.{name}").command
    else:
        application = load_reference(read_entry_points(ENTRY_POINTS)[name])
    if not isinstance(application, typer.Typer):
        raise typer.BadParameter(f"command {name!r} is no typer.Typer application")
    return application


@cache
def _command_files() -> frozenset[str]:
    modules = [module for module in pkgutil.iter_modules([str(FOLDER)]) if not module.ispkg]
    return frozenset(module.name for module in modules if not module.name.startswith("_"))


if TYPE_CHECKING:
    from fusion_bench.config.yaml_files import Source
    from fusion_bench.experiment.experiment import Experiment
    from fusion_bench.util.formatting import Progress

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
    from fusion_bench.util.files import IrregularFileError, check_regular

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
    from fusion_bench.experiment.method_table import list_alias_notes

    parsed, source = read_experiment(experiment, overrides=overrides or ())
    if parsed.lint.ignore:
        from fusion_bench.checks.lint import check_ignored

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
    from fusion_bench.cli.application.progress import progress_bar
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
    from fusion_bench.experiment.experiment import find_datasets
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
    from fusion_bench.util.file_paths import name_experiment
    from fusion_bench.util.files import require_folder

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
