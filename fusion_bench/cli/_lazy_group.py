"""A group that imports a command's file only when that command runs."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from fusion_bench.errors import UnknownNameError

__all__ = ["LazyGroup"]

PACKAGE = "fusion_bench.cli"
FOLDER = Path(__file__).parent


class LazyGroup(TyperGroup):
    """Finds its commands by the files of this folder.

    The overview needs only each file's first line; the file is imported for the command that is
    named on the command line.
    """

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override] # noqa: ARG002
        """Names of the files that hold a command."""
        return sorted(
            module.name
            for module in pkgutil.iter_modules([str(FOLDER)])
            if not module.name.startswith("_")
        )

    def get_command(self, ctx: typer.Context, cmd_name: str) -> TyperCommand | None:  # type: ignore[override]
        """The command with its help line only, until it is the one to run."""
        if cmd_name not in self.list_commands(ctx):
            return None
        if cmd_name in self.commands:
            return self.commands[cmd_name]  # type: ignore[return-value]
        return TyperCommand(cmd_name, help=_first_line(cmd_name))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - vendored types
        """Import the command that was named, then resolve as any group does."""
        name = args[0] if args else ""
        known = self.list_commands(ctx)
        if name in known:
            module = importlib.import_module(f"{PACKAGE}.{name}")
            self.commands[name] = typer.main.get_command(module.command)
            self.commands[name].name = name
        elif name and not name.startswith("-"):
            ctx.fail(str(UnknownNameError("command", name, known)))
        return super().resolve_command(ctx, args)


@cache
def _first_line(name: str) -> str:
    with (FOLDER / f"{name}.py").open(encoding="utf-8") as file:
        return file.readline().strip().strip('"')
