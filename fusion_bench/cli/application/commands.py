"""Declare a command: its options are a class, and its help is their docstrings."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import MISSING
from enum import StrEnum
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import typer
from pydantic import BaseModel

from fusion_bench.cli.application.app import RICH, STDOUT, command_app
from fusion_bench.cli.application.exit_codes import ExitCode, describe_exit_codes
from fusion_bench.config.models import parse_model
from fusion_bench.config.options import (
    Argument,
    Changes,
    File,
    Folder,
    Names,
    Option,
    OptionField,
    Options,
    list_options,
)
from fusion_bench.errors import ConfigError
from fusion_bench.util import files
from fusion_bench.util.formatting import escape_control_chars, wrap_line

if TYPE_CHECKING:
    from fusion_bench.config.yaml_files import Source
    from fusion_bench.experiment.experiment import Experiment
    from fusion_bench.report.terminal import Detail
    from fusion_bench.util.formatting import Progress

    OpenedExperiment: TypeAlias = tuple[Experiment, Source, list[Path], Progress]

#: The file of a dataset, in its folder.
DATASET_FILE = "dataset.yaml"
#: The default experiment.
DEFAULT = Path("experiments/default.yaml")
OptionsT = TypeVar("OptionsT", bound=Options)
ResultT = TypeVar("ResultT")
ModelT = TypeVar("ModelT", bound=BaseModel)

Folders: TypeAlias = Sequence[Folder]
Systems: TypeAlias = Annotated[Names, Option("--system")]


def command_group(docstring: str | None, **options: Any) -> typer.Typer:  # noqa: ANN401 - typer's own
    """The application of a file with several commands, described by its docstring."""
    text, examples = _read_docstring(docstring)
    return command_app(help=text, no_args_is_help=True, epilog=examples, **options)


def single_command(
    *codes: ExitCode,
) -> Callable[[Callable[[OptionsT], None]], typer.Typer]:
    """The application of a file with one command; see :func:`add_command`."""

    def make(function: Callable[[OptionsT], None]) -> typer.Typer:
        application = command_app()
        add_command(application, *codes)(function)
        return application

    return make


def add_command(
    group: typer.Typer, *codes: ExitCode, name: str | None = None
) -> Callable[[Callable[[OptionsT], None]], Callable[[OptionsT], None]]:
    """Make a command of a function of one argument, the class of its options.

    Its docstring is the command's help; the section ``Examples:`` has a command a line.

    Args:
        group: The application that it is a command of.
        codes: Exit codes beside those of every command.
        name: The command's name, in a group.
    """

    def register(function: Callable[[OptionsT], None]) -> Callable[[OptionsT], None]:
        [kind] = [t for n, t in get_type_hints(function).items() if n != "return"]
        fields = list(list_options(kind))
        text, epilog = _read_docstring(function.__doc__)
        if codes:
            epilog = f"{epilog}\n\n{describe_exit_codes(*codes)}"

        def run(**values: Any) -> None:  # noqa: ANN401 - an option's value
            given = {key: _plain_value(value) for key, value in values.items() if value is not None}
            options = kind(**given)
            with options.load_plugins() if isinstance(options, PluginOptions) else nullcontext():
                function(options)

        setattr(run, "__signature__", inspect.Signature([*map(_make_parameter, fields)]))  # noqa: B010 - mypy knows none of a function
        group.command(name, help=text, epilog=epilog)(run)
        return function

    return register


def _read_docstring(docstring: str | None) -> tuple[str, str]:
    """The help of a command, and its examples with one a line, in both kinds of help."""
    text, _, section = inspect.cleandoc(docstring or "").partition("Examples:\n")
    examples = section.replace("\n" + 8 * " ", " ").splitlines()
    lines = ["Examples:", *(line.strip() if RICH else f"  {line.strip()}" for line in examples)]
    return text.strip(), "\n\n".join(lines) if RICH else "\n".join(["\b", *lines])


def _make_parameter(field: OptionField) -> inspect.Parameter:
    """A parameter as Typer reads it."""
    kind, is_list = field.hint, False
    while (origin := get_origin(kind)) not in (None, Literal):
        is_list = is_list or origin is Sequence
        kind = get_args(kind)[0]
    names = next((mark.names for mark in field.marks if mark.names), ())
    settings: dict[str, Any] = {"help": field.help}
    for mark in reversed(field.marks):
        settings |= mark.settings
    is_required = field.default is MISSING
    default: Any = None if is_list or is_required else field.default
    if kind is bool and not names:
        flag = field.name.replace("_", "-")
        names = (f"--{flag}" if default is False else f"--{flag}/--no-{flag}",)
    if get_origin(kind) is Literal:
        kind = _make_choice(get_args(kind))
        default = default if default is None else kind(default)
    hint: Any = list[kind] if is_list else kind  # type: ignore[valid-type]
    hint = hint if is_required or default is not None else hint | None
    make = typer.Argument if any(mark.is_argument for mark in field.marks) else typer.Option
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if is_required else default,
        annotation=Annotated[hint, make(*names, **settings)],
    )


def _make_choice(values: Sequence[str]) -> Any:  # noqa: ANN401 - a class made of the values
    members = [(value, value) for value in values]
    return StrEnum("Choice", members)


def _plain_value(value: Any) -> Any:  # noqa: ANN401 - an option's value
    """Choices as plain text, and what may be repeated as a tuple."""
    if isinstance(value, list):
        return tuple(map(_plain_value, value))
    return value.value if isinstance(value, StrEnum) else value


def _require_file(path: Path | None) -> Path | None:
    """A file to write; what is no file is refused before the work begins."""
    if path is not None and path.is_dir():
        raise ConfigError(f"--markdown {path}: a folder, and a file is needed")
    try:
        files.check_regular(path or STDOUT)
    except files.IrregularFileError as error:
        raise ConfigError(f"--markdown {path}: {error}; - is standard output") from None
    except OSError:
        return path  # writing it says why
    return path


MarkdownFile: TypeAlias = Annotated[File, Option(callback=_require_file)]


class JsonOptions(Options):
    """Options of every command that prints a result.

    Attributes:
        json: Print JSON.
    """

    json: bool = False


class BriefOptions(JsonOptions):
    """Options of a command that prints a page in brief.

    Attributes:
        verbose: Print every table of the page.
        quiet: Print the answer alone.
    """

    verbose: Annotated[bool, Option("--verbose", "-v")] = False
    quiet: Annotated[bool, Option("--quiet", "-q")] = False

    @property
    def shown(self) -> Detail:
        """How much of a page is printed."""
        if self.verbose:
            return "full"
        return "answer" if self.quiet else "brief"

    def __post_init__(self) -> None:
        """Refuse all of a page and its answer alone."""
        if self.verbose and self.quiet:
            raise typer.BadParameter("does not go with --quiet", param_hint="--verbose")


class PageOptions(BriefOptions):
    """Options of a command that prints a page.

    Attributes:
        markdown: Write a summary of at most 40 lines to FILE; - prints it instead of the page.
    """

    markdown: MarkdownFile | None = None

    def __post_init__(self) -> None:
        """Refuse JSON and Markdown on one standard output, too."""
        super().__post_init__()
        if self.json and self.markdown == STDOUT:
            raise typer.BadParameter("does not go with --json", param_hint="--markdown -")


class PluginOptions(Options):
    """Options of a command that runs methods.

    Attributes:
        plugins: Execute this Python file, and know its methods by their names; repeatable.
    """

    plugins: Annotated[Sequence[Path], Option("--plugin", metavar="FILE.py")] = ()

    def known_plugins(self) -> Collection[str] | None:
        """The origins of plugins that may be executed; None = all that are named."""
        return None

    def load_plugins(self) -> AbstractContextManager[None]:
        """Execute the plugins, whose methods are known while the context lasts.

        Raises:
            ConfigError: One may not be executed, or fails.
        """
        if not self.plugins:
            return nullcontext()
        from fusion_bench.config.plugin_files import loaded_plugins

        importlib.import_module("fusion_bench.experiment.system")  # the kinds of methods
        return loaded_plugins(self.plugins, self.known_plugins())


def find_dataset_file(name: str, folders: Sequence[Path] = ()) -> Path:
    """The ``dataset.yaml`` of a dataset.

    Args:
        name: Its name, its folder or its file.
        folders: Of named datasets; by default those that commands look into.

    Raises:
        FusionBenchError: There is none.
    """
    from fusion_bench.io.dataset_config import find_dataset

    return find_dataset(name, folders_for(folders))


def name_in_dataset(path: Path, changes: Mapping[str, Any]) -> list[str]:
    """Name written files in a ``dataset.yaml``: what every command does that writes some.

    Args:
        path: The ``dataset.yaml``.
        changes: Key → value; of ``judges`` and ``rerank`` what is added, by name.

    Returns:
        Lines that say so; where there is no place for an entry, those to add by hand.
    """
    from fusion_bench.config.yaml_files import format_compact_yaml
    from fusion_bench.io.dataset_edits import name_in_dataset

    if not changes:
        return []
    is_named = name_in_dataset(path, changes)
    title = f"{path} names what was written:" if is_named else f"add to {path}:"
    return [title, *format_compact_yaml(dict(changes)).splitlines()]


class DatasetOptions(JsonOptions):
    """Options of a command that finds datasets by name.

    Attributes:
        datasets: Folder of named datasets; repeatable. Default: datasets/ beside the experiment's
            folder, ./datasets, then datasets/ in the folders above it.
    """

    datasets: Folders = ()

    def find(self, name: str) -> Path:
        """The ``dataset.yaml`` of a dataset.

        Raises:
            FusionBenchError: There is none.
        """
        return find_dataset_file(name, self.datasets)


def find_experiment(path: Path | None) -> Path | None:
    """The experiment's file, also of the folder that ``try --save`` wrote.

    Raises:
        ConfigError: The folder holds none, or the file is a dataset's.
    """
    if path is None:
        return None
    if path == DEFAULT and not path.exists():
        raise ConfigError(
            f"no EXPERIMENT is named, and {path} is not there: name a file, or write one with "
            "fusion-bench try --save mine"
        )
    from fusion_bench.io.raw_files import read_head

    if path.suffix == ".json" and path.is_file() and '"format"' in read_head(path, MOST_RECORD):
        raise ConfigError(
            f"{path}: a record, and an experiment (YAML) is needed; a report goes to compare, a "
            "baseline to gate EXPERIMENT --baseline-file"
        )
    if not path.is_dir() and path.name != DATASET_FILE:
        return path
    from fusion_bench.experiment.experiment import EXPERIMENT_FILE

    beside = (path if path.is_dir() else path.parent) / EXPERIMENT_FILE
    if path.is_dir():
        if beside.is_file():
            return beside
        raise ConfigError(
            f"{path}: a folder without {EXPERIMENT_FILE}; name an experiment's file, or write one "
            "with fusion-bench try --save"
        )
    known = f"; its experiment is {beside}" if beside.is_file() else ""
    raise ConfigError(f"{path}: this is a dataset, and an experiment is needed{known}")


#: Bytes of a record of one line that are looked at.
MOST_RECORD = 1 << 26


#: An experiment's file, or the folder that holds it.
ExperimentFile: TypeAlias = Annotated[Path, Argument("EXPERIMENT", callback=find_experiment)]


class NamedExperimentOptions(DatasetOptions, PluginOptions):
    """Options of a command that reads an experiment.

    Attributes:
        experiment: YAML file of the experiment.
        out: Output folder. Default: reports/EXPERIMENT.
        overrides: Replace a value of the experiment, such as systems.rrf.fusion.k=20; repeatable.
    """

    experiment: ExperimentFile
    overrides: Changes = ()

    @property
    def folders(self) -> list[Path]:
        """Folders that hold named datasets."""
        return folders_for(self.datasets, self.experiment)

    @contextmanager
    def read(self, *more: str) -> Iterator[tuple[Experiment, Source]]:
        """Read the experiment; once the work is done, say what its aliases became.

        Args:
            more: Further values of the experiment to replace.

        Raises:
            ConfigError: The file or an override breaks a rule.
        """
        from fusion_bench.experiment.experiment import read_experiment
        from fusion_bench.experiment.method_table import list_alias_notes

        parsed, source = read_experiment(self.experiment, overrides=(*self.overrides, *more))
        if parsed.lint.ignore:
            from fusion_bench.checks.lint import check_rules

            check_rules(parsed, source)
        yield parsed, source
        echo_notes(list_alias_notes(source.data))

    @contextmanager
    def open(self, *more: str) -> Iterator[OpenedExperiment]:
        """Read the experiment, and show a progress bar while the context lasts.

        Yields:
            The experiment, its source, folders of named datasets, and the progress bar.

        Raises:
            ConfigError: As for :meth:`read`.
        """
        from fusion_bench.cli.application.progress import progress_bar
        from fusion_bench.io.outputs import refuse_inputs

        with self.read(*more) as (parsed, source), progress_bar() as progress:
            refuse_inputs(list_inputs(parsed, source, self.folders))
            yield parsed, source, self.folders, progress

    def run(
        self, function: Callable[..., ResultT], *values: object, more: Sequence[str] = ()
    ) -> ResultT:
        """Read the experiment, and call a function with it and with these options.

        Args:
            function: Takes the experiment, its source, values, folders and a progress bar.
            values: Its further arguments by position.
            more: Further values of the experiment to replace.

        Raises:
            ConfigError: As for :meth:`read`.
        """
        with self.open(*more) as (parsed, source, folders, progress):
            named = {"folders": folders, "progress": progress}
            return self.call(function, parsed, source, *values, **named)


class ExperimentOptions(NamedExperimentOptions):
    """Options of a command that reads the default experiment if you name none."""

    experiment: ExperimentFile = DEFAULT


def out_folder(given: Path | None, experiment: Path) -> Path:
    """Folder that a command writes to: ``--out``, or ``reports/EXPERIMENT``.

    The file ``reports/mine/tuning/tuned.yaml`` of ``tune`` has ``reports/mine/tuned``.

    Raises:
        ConfigError: A file is in the way.
    """
    beside, place = experiment.parent, Path("reports")
    if (beside / "tuning.json").exists():
        place = beside.parent if beside.name == "tuning" else beside
    return files.require_folder(given or place / files.name_experiment(experiment))


def echo_notes(notes: Iterable[str]) -> None:
    """Print remarks on standard error, where they disturb no result."""
    for note in notes:
        typer.echo("\n".join(wrap_line(f"note: {escape_control_chars(note)}")), err=True)


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


def folders_for(given: Sequence[Path], experiment: Path | None = None) -> list[Path]:
    """Folders that hold named datasets."""
    if given:
        return list(given)
    if experiment is None:
        return [Path("datasets")]
    project = files.resolve_path(experiment).parent.parent
    # A tuned.yaml lies deeper than the experiment that it comes from.
    above = [folder / "datasets" for folder in project.parents if (folder / "datasets").is_dir()]
    return [project / "datasets", Path("datasets"), *above]


def refuse(options: Options, message: str, *names: str) -> None:
    """Refuse options that have no effect, so that none is ignored silently.

    Args:
        options: All of the command's.
        message: Why, such as ``does not go with --update``.
        names: Fields that must have their defaults.

    Raises:
        typer.BadParameter: One has another value.
    """
    for label in options.given(*names):
        raise typer.BadParameter(message, param_hint=label)


def parse_llm(model: type[ModelT], changes: Sequence[str]) -> ModelT:
    """The language model that the values of ``--llm`` describe.

    Raises:
        ConfigError: A key breaks a rule.
    """
    from fusion_bench.experiment.overrides import set_options

    data = set_options({}, changes, option="--llm", example="model=gpt-5-mini")
    return parse_model(model, data, lambda path: f"--llm {'.'.join(map(str, path))}")


def show_price(show: Progress, work: str) -> Callable[[int, int, float], None]:
    """Shows the progress of work that is paid for, and the price so far."""

    def show_progress(done: int, total: int, spent: float) -> None:
        show(f"{work}, price so far {spent:.4f}" if spent else work, done, total)

    return show_progress
