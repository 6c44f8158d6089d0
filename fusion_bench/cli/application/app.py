"""The application: a group that imports a command's file when it runs, and guards its options."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from fusion_bench.cli.application.exit_codes import CommandInterruptedError, describe_exit_codes
from fusion_bench.config.plugins import load_reference, read_entry_points
from fusion_bench.config.removed_names import GONE, describe_gone
from fusion_bench.errors import ConfigError, UnknownNameError
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
        if (
            (isinstance(value, int | float) and not isinstance(value, bool))
            and isinstance(text, str)
            and not is_decimal(text)
        ):
            raise typer.BadParameter(f"{SPELLING}, given {text!r}", ctx=context, param=parameter)
        is_path = isinstance(value[0] if isinstance(value, list) and value else value, Path)
        if is_path and (text == "" or (isinstance(text, list | tuple) and "" in text)):
            raise typer.BadParameter(EMPTY, ctx=context, param=parameter)
        return value

    parameter.process_value = process_value


#: Options of all commands that name a file or a folder to write.
OUTPUTS: Final = frozenset(
    {
        *("--out", "--save", "--save-vectors", "--save-passages", "--records", "--plot"),
        *("--markdown", "--comment", "--junit", "--export", "--write-qrels", "--write-groups"),
    }
)
#: Those whose commands decide which files are their own.
OWNED: Final = frozenset({"--export", "--write-qrels", "--write-groups"})

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
            if isinstance(value, Path) and value != STDOUT
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


#: Commands in the order in which they are needed, under the headings of the overview.
COMMAND_GROUPS: Final = {
    "Choose, tune, guard": ("try", "eval", "tune", "gate", "compare", "explain", "export"),
    "Get lists, queries and judgments": (
        *("dataset", "queries", "grades", "judge"),
        *("pull", "retrieve", "rerank", "formats"),
    ),
    "Look closer": ("diagnose", "lint", "threshold", "power", "methods", "glossary"),
    "Use a system": ("fuse", "serve"),
    "Automate": ("campaign", "mcp", "skill"),
}
#: The heading of commands that other distributions add.
OTHER_COMMANDS: Final = "Added by plugins"
#: Words that are no commands → what to type.
SYNONYMS: Final = {
    **dict.fromkeys(("init", "start", "new", "quickstart"), "try --save mine, or dataset new"),
    **dict.fromkeys(("evaluate", "evaluation", "run", "bench", "score"), "eval"),
    **dict.fromkeys(("report", "html", "results"), "eval, which writes the page, or compare"),
    **dict.fromkeys(("plot", "plots", "chart"), "eval --plots, or the page that eval writes"),
    **dict.fromkeys(("optimize", "optimise", "search", "optuna"), "tune"),
    **dict.fromkeys(("check", "regression", "guard", "ci"), "gate, lint or dataset check"),
    **dict.fromkeys(("baseline", "update"), "gate EXPERIMENT --update"),
    **dict.fromkeys(("metrics", "measures", "metric", "terms", "words"), "glossary"),
    **dict.fromkeys(("rank", "merge", "combine"), "fuse"),
    **dict.fromkeys(("import", "download", "add", "convert"), "dataset add, or dataset new"),
    **dict.fromkeys(("format", "layouts", "layout"), "formats"),
    **dict.fromkeys(("list", "datasets", "ls", "show"), "dataset list, or methods"),
    **dict.fromkeys(("annotate", "label", "qrels"), "judge"),
    **dict.fromkeys(("ui", "console", "web", "dashboard"), "serve"),
    "help": "--help, or COMMAND --help",
    "version": "--version",
    "install": "pip install, as the README says",
}
#: What a command says of a measure: an experiment names its own.
SET_MEASURES: Final = "--set 'measures=[nDCG@5]'"
#: Files of tables.
TABLES: Final = {"--tables": "--latex or --csv"}
#: Command → spelling that is no option of it, or no longer one → what to type.
RENAMED: Final[Mapping[str, Mapping[str, str]]] = {
    "compare": {"--system": "--candidate NAME", **TABLES},
    "diagnose": {"--list": "--kind KIND", "--measure": SET_MEASURES},
    "eval": {"--measure": SET_MEASURES, **TABLES},
    "explain": {"--experiment": "explain EXPERIMENT QUERY [DOCUMENT]"},
    "fuse": {"--k": "--set k=10", "--weights": "--set 'weights={NAME: 2}'"},
    "gate": {
        "--against": "--other-system NAME",
        "--baseline": "--baseline-file FILE",
        "--measure": SET_MEASURES,
        "--runs": "--simulations N",
        **TABLES,
    },
    "grades agreement": {"--people": "--human-judge NAME"},
    "grades estimate": {"--people": "--human-judge NAME", "--machine": "--machine-judge NAME"},
    "grades sample": {"--machine": "--machine-judge NAME"},
    "judge": {"--llm": "--llm-config FILE"},
    "power": {"--groups": "--group-count N", "--queries": "--query-count N"},
    "pull": {"--start-over": "--replace"},
    "rerank": {"--experiment": "rerank EXPERIMENT"},
    "try": TABLES,
    "tune": {"--export": "--export-study URL", "--measure": SET_MEASURES, **TABLES},
}


def refuse_gone(words: Sequence[str]) -> None:
    """Refuse commands and options of earlier versions among the words of a command line.

    Raises:
        ConfigError: Names what is gone, and what to type.
    """
    given = words[: words.index("--")] if "--" in words else words
    options = [word.partition("=")[0] for word in given]
    for command in (given[0], " ".join(given[:2])):
        for name in (command, *(f"{command} {option}" for option in options)):
            if name in GONE:
                raise ConfigError(describe_gone(name))
        for option in options:
            if new := RENAMED.get(command, {}).get(option):
                raise ConfigError(f"fusion-bench {command} has no {option}: type {new}")


def _command_group(name: str) -> str:
    """The heading under which a command stands."""
    groups = (group for group, names in COMMAND_GROUPS.items() if name in names)
    return next(groups, OTHER_COMMANDS)


class LazyGroup(TyperGroup):
    """Commands are the files of :data:`FOLDER`, and entry points of other distributions.

    The overview reads only each file's first line. A file of the folder takes precedence over an
    entry point of the same name.
    """

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override] # noqa: ARG002
        """Names of all commands, in the order in which they are needed."""
        known = {*_command_files(), *read_entry_points(ENTRY_POINTS)}
        needed = [name for names in COMMAND_GROUPS.values() for name in names if name in known]
        return [*needed, *sorted(known.difference(needed))]

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override] # noqa: ANN401 - vendored types
        """Write the overview, a section a group."""
        names = self.list_commands(ctx)
        for group in (*COMMAND_GROUPS, OTHER_COMMANDS):
            rows = [
                (name, command.help or "")
                for name in names
                if _command_group(name) == group and (command := self.get_command(ctx, name))
            ]
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> TyperCommand | None:  # type: ignore[override] # noqa: ARG002
        """The command with its help line only, unless it is the one to run."""
        if cmd_name in self.commands:
            return self.commands[cmd_name]  # type: ignore[return-value]
        if cmd_name in _command_files():
            text = (FOLDER / f"{cmd_name}.py").read_text(encoding="utf-8")
            summary, group = text.partition("\n")[0].strip('"'), _command_group(cmd_name)
            return TyperCommand(cmd_name, help=summary, rich_help_panel=group)
        reference = read_entry_points(ENTRY_POINTS).get(cmd_name)
        return TyperCommand(cmd_name, help=f"Added by {reference}.") if reference else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - vendored types
        """Import the command that was named, then resolve as any group does."""
        name = args[0] if args else ""
        if name:
            refuse_gone(args)
        if name in self.list_commands(ctx):
            if name in _command_files():
                application = importlib.import_module(f"{PACKAGE}.{name}").command
            else:
                application = load_reference(read_entry_points(ENTRY_POINTS)[name])
            if not isinstance(application, typer.Typer):
                raise typer.BadParameter(f"command {name!r} is no typer.Typer application")
            self.commands[name] = typer.main.get_command(application)
            self.commands[name].name = name
            check_spelling(self.commands[name])
            guard_outputs(self.commands[name])
            words = []
            for word, following in zip(args, (*args[1:], ""), strict=True):
                words.append(word)
                values = OPTIONAL_VALUES.get(word)
                if values and following not in values:  # the value was left out
                    words.append(values[0])
            args = words
        elif name and not name.startswith("-"):
            known = self.list_commands(ctx)
            message = str(UnknownNameError("command", name, known))
            if name.lower() in SYNONYMS:  # a word that means a command leads to what to type
                meant = next((word for word in args[1:] if word in known), "COMMAND")
                typed = SYNONYMS[name.lower()].replace("COMMAND", meant)
                message = f"unknown command {name!r}: type fusion-bench {typed}"
            ctx.fail(message)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - vendored types
        """Run the command; Typer would turn Ctrl-C into an exit code that a result may have too."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise CommandInterruptedError from error


#: Options whose value may be left out → the value that this means, and the others.
OPTIONAL_VALUES: Final = {"--csv": ("tables", "per-query")}


@cache
def _command_files() -> frozenset[str]:
    modules = [module for module in pkgutil.iter_modules([str(FOLDER)]) if not module.ispkg]
    return frozenset(module.name for module in modules if not module.name.startswith("_"))


#: The file name that stands for standard output.
STDOUT = Path("-")

#: Rich help takes four times the start-up time, so it is for terminals only.
RICH = sys.stdout.isatty()


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
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
    show_held_out: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Read the queries that open campaigns hold out. Logged under this name; their "
            "guarantee ends.",
        ),
    ] = None,
) -> None:
    """Turn the application into a group; :class:`LazyGroup` finds its commands."""
    if show_held_out is not None:
        from fusion_bench.io import held_out

        command = f"fusion-bench {context.invoked_subcommand}"
        context.with_resource(held_out.show_held_out(show_held_out, command))
