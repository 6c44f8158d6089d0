"""Output of commands: lines and tables without control characters."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, cast

import typer

from fusion_bench.cli.application.errors import is_json_asked, locate_error
from fusion_bench.cli.github_actions.log_commands import LogOutput, disarm_commands, is_on_github
from fusion_bench.util.formatting import escape_control_chars

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from fusion_bench.report.page import NextStep, Page, Table

#: Longest error; a longer one quotes something that is no id.
MAX_ERROR_LENGTH = 2000
#: Columns of output that is no terminal: every table fits.
PIPE_WIDTH = 200


def echo(line: str, *, err: bool = False) -> None:
    r"""Print one line; a character that cannot be printed appears as ``\n`` or ``\x1b``."""
    typer.echo(disarm_commands(escape_control_chars(line)), err=err)


def echo_error(message: str, *, replaces_result: bool = False) -> None:
    """Print an error on standard error, in one line.

    With ``--json`` the line is ``{"error": {"file", "line", "message"}}``.

    Args:
        message: Shortened where it is very long.
        replaces_result: No result was printed: with ``--json``, print on standard output.
    """
    one_line = " ".join(message.split())
    if is_json_asked():
        from json import dumps

        record = {"error": locate_error(_shorten(one_line))._asdict()}
        typer.echo(dumps(record, ensure_ascii=False), err=not replaces_result)
        return
    text = disarm_commands(_shorten(escape_control_chars(one_line)))
    typer.echo(f"{typer.style('error:', fg='red', bold=True)} {text}", err=True)


def _shorten(text: str) -> str:
    if len(text) <= MAX_ERROR_LENGTH:
        return text
    return f"{text[: MAX_ERROR_LENGTH // 2]} … {text[-MAX_ERROR_LENGTH // 2 :]}"


def echo_written(paths: Iterable[object]) -> None:
    """List the files that were written."""
    echo("Written: " + ", ".join(str(path) for path in paths))


def print_json(record: object) -> None:
    """Print a model, a dataclass or plain data as one line of JSON; NaN becomes null."""
    from pydantic_core import to_json

    text = to_json(record, inf_nan_mode="null").decode()
    typer.echo(text.replace("##[", r"##\u005b"))  # the same string, and no command of a CI runner


def make_console() -> Console:
    """Standard output: colored on a terminal, otherwise plain and wide.

    ``COLUMNS`` sets the width of output that is no terminal.
    """
    from rich.console import Console

    file = cast("IO[str]", LogOutput()) if is_on_github() else None
    if sys.stdout.isatty():
        return Console(highlight=False, file=file)
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked):
        width = int(asked)
        return Console(
            highlight=False, width=width, force_terminal=True, color_system=None, file=file
        )
    return Console(highlight=False, width=PIPE_WIDTH, file=file)


def print_result(
    record: object,
    page: Page,
    *,
    as_json: bool,
    written: Iterable[object] = (),
    markdown: Path | None = None,
) -> None:
    """Print a result as JSON, as its page, or as the summary of its page.

    Args:
        record: What ``--json`` prints.
        page: What a terminal shows.
        as_json: Whether to print JSON.
        written: The files that were written.
        markdown: A file to write the summary to; ``-`` prints it in place of the page.

    Raises:
        FusionBenchError: The file cannot be written to.
    """
    from fusion_bench.cli._base import STDOUT
    from fusion_bench.io.outputs import write_output
    from fusion_bench.report.text.summary import render_summary
    from fusion_bench.report.text.terminal import print_page

    if markdown == STDOUT:
        typer.echo(render_summary(page), nl=False)
        return
    if markdown is not None:
        written = (
            *written,
            write_output(markdown, render_summary(page).encode(), option="--markdown"),
        )
    if as_json:
        print_json(record)
    else:
        print_page(page, make_console(), written=written)


def print_steps(steps: Iterable[NextStep]) -> None:
    """Print the commands that follow, below output that is no page."""
    from fusion_bench.report.text.terminal import print_next_steps

    console = make_console()
    console.print()
    print_next_steps(tuple(steps), console)


def print_tables(*tables: Table) -> None:
    """Print tables, a blank line between them."""
    from fusion_bench.report.text.terminal import print_table

    console = make_console()
    for i, table in enumerate(tables):
        if i:
            console.print()
        print_table(table, console)
