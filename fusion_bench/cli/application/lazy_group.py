"""A group that imports a command's file only when that command runs."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from fusion_bench.cli.application.errors import CommandInterruptedError
from fusion_bench.cli.application.option_spelling import check_spelling
from fusion_bench.cli.application.output_files import guard_outputs
from fusion_bench.config.plugins import load_reference, read_entry_points
from fusion_bench.errors import UnknownNameError

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
