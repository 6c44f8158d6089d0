"""Every command that the command line has, found as its user finds them, and values of JSON."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from typing import Any

import typer

from fusion_bench.cli.application.app import app


@cache
def leaf_commands() -> dict[str, Any]:
    """Words of each command that runs, such as ``dataset list`` → the command."""
    root = typer.main.get_command(app)
    context = typer.Context(root)
    return dict(_walk_group(root, context, ()))


def _walk_group(group: Any, context: typer.Context, path: tuple[str, ...]) -> Iterator[Any]:  # noqa: ANN401 - types of the Click that Typer brings
    for name in group.list_commands(context):
        _, command, _ = group.resolve_command(context, [name])
        if hasattr(command, "list_commands"):
            yield from _walk_group(command, context, (*path, name))
        else:
            yield " ".join((*path, name)), command


def options_of(command: Any) -> set[str]:  # noqa: ANN401 - as above
    """Options of a command, such as ``--json``."""
    return {option for parameter in command.params for option in parameter.opts}


def next_commands(text: str) -> list[list[str]]:
    """The commands that the end of a page names, without their purposes."""
    steps = text.split("\nNext:\n")[1].replace(" \\\n   ", "")  # a long command goes on
    lines = re.findall(r"^  fusion-bench (.*)", steps, re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


def values_at(document: object, path: str) -> Iterator[object]:
    """Every value that a path such as ``collections[].name`` leads to."""
    head, _, rest = path.partition(".")
    values = [document]
    if key := head.removesuffix("[]"):
        assert isinstance(document, dict)
        values = [document[key]]
    if head.endswith("[]"):
        assert isinstance(values[0], list)
        values = values[0]
    for value in values:
        if rest:
            yield from values_at(value, rest)
        else:
            yield value
