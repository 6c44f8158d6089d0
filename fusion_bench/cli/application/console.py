"""Output of commands: lines, errors, JSON, tables, files for a paper."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, cast

import typer

from fusion_bench.util.formatting import PIPE_WIDTH, escape_control_chars, shorten_error, wrap_line

if TYPE_CHECKING:
    from rich.console import Console

    from fusion_bench.cli.application.commands import JsonOptions
    from fusion_bench.config.options import PaperOptions
    from fusion_bench.evaluation.compared_reports import CollectionComparison
    from fusion_bench.evaluation.report_file import Report
    from fusion_bench.report.page import Page, Table


#: What the runner takes for a command: ``::error::`` where a line begins, ``##[error]`` anywhere.
COMMAND: Final = re.compile(r"^(?P<blank>\s*):(?=:)|#(?=#\[)", re.MULTILINE)


def is_on_github() -> bool:
    """Whether this is a job of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def disarm_commands(text: str) -> str:
    r"""A text whose lines are no commands in a job's log: such a name begins with ``\x3a``.

    Args:
        text: Whole lines.
    """
    if not is_on_github():
        return text
    return COMMAND.sub(lambda match: f"{match['blank'] or ''}\\x{ord(match[0][-1]):x}", text)


class LogOutput:
    """Standard output, in which a name from anywhere is no command of a job's log."""

    def __getattr__(self, name: str) -> object:
        """Whatever else standard output has."""
        return getattr(sys.stdout, name)

    def write(self, text: str) -> int:
        """Write lines."""
        return sys.stdout.write(disarm_commands(text))


#: The end of what may be a place, with the number of its line.
PLACE_END: Final = re.compile(r"(?::(\d+))?: ")
#: How a message goes on after a path that is no regular file.
NOT_A_FILE: Final = ("no such file", "a folder, ", "a named pipe, ", "a socket, ", "a device, ")

_AS_JSON: ContextVar[bool] = ContextVar("errors as JSON", default=False)


@contextmanager
def error_format(arguments: Sequence[str]) -> Iterator[bool]:
    """Print errors as JSON while the context lasts, if a command's arguments hold ``--json``.

    Yields:
        Whether they do.
    """
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    token = _AS_JSON.set("--json" in options)
    try:
        yield _AS_JSON.get()
    finally:
        _AS_JSON.reset(token)


def locate_error(message: str) -> tuple[str | None, int | None, str]:
    """File, line and message of ``file:line: message`` or ``file: message``; None = not known."""
    for n, end in enumerate(PLACE_END.finditer(message)):
        file, rest = message[: end.start()], message[end.end() :]
        if _is_file(file) or (n == 0 and rest.startswith(NOT_A_FILE)):
            return file, int(end[1]) if end[1] else None, rest
    return None, None, message


def _is_file(path: str) -> bool:
    try:
        place = Path(path)  # a folder may bear the name of a dataset, but hardly with a suffix
        return place.is_file() or bool(place.suffix and place.exists())
    except (OSError, ValueError):  # too long for a name, or with a null byte
        return False


def echo(line: str, *, err: bool = False) -> None:
    r"""Print one line; a character that cannot be printed appears as ``\n`` or ``\x1b``.

    Where there is no terminal, a long line is wrapped.
    """
    text = escape_control_chars(line)
    if len(text) > PIPE_WIDTH and not (sys.stderr if err else sys.stdout).isatty():
        text = "\n".join(wrap_line(text))
    typer.echo(disarm_commands(text), err=err)


def echo_error(
    message: str, *, replaces_result: bool = False, facts: Mapping[str, object] | None = None
) -> None:
    """Print an error on standard error, in one line.

    With ``--json`` the line is ``{"error": {"file", "line", "message"}}``.

    Args:
        message: Shortened where it is very long.
        replaces_result: No result was printed: with ``--json``, print on standard output.
        facts: What the line of ``--json`` has beside the error, by name.
    """
    one_line = " ".join(message.split())
    if _AS_JSON.get():
        from json import dumps

        place = zip(("file", "line", "message"), locate_error(shorten_error(one_line)), strict=True)
        record = {**(facts or {}), "error": dict(place)}
        typer.echo(dumps(record, ensure_ascii=False), err=not replaces_result)
        return
    text = disarm_commands(shorten_error(escape_control_chars(one_line)))
    typer.echo(f"{typer.style('error:', fg='red', bold=True)} {text}", err=True)


def echo_written(paths: Iterable[object]) -> None:
    """List the files that were written."""
    echo("Written: " + ", ".join(str(path) for path in paths))


def print_json(record: object) -> None:
    """Print a model, a dataclass or plain data as one line of JSON; NaN becomes null."""
    from pydantic_core import to_json

    text = to_json(record, inf_nan_mode="null").decode()
    typer.echo(text.replace("##[", r"##\u005b"))  # the same string, and no command of a CI runner


def make_console() -> Console:
    """Standard output: colored on a terminal, otherwise plain.

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
    options: JsonOptions,
    written: Iterable[object] = (),
    *,
    about: Path | None = None,
) -> None:
    """Print a result as JSON, as its page, or as the summary of its page.

    Args:
        record: What ``--json`` prints.
        page: What a terminal shows.
        options: ``--json``, and ``--markdown`` where the command has it: a file to write the
            summary to; ``-`` prints it in place of the page.
        written: The files that were written.
        about: The file to open where a page in brief is stored nowhere.

    Raises:
        FusionBenchError: The file cannot be written to.
    """
    from fusion_bench.cli.application.app import STDOUT
    from fusion_bench.cli.application.commands import BriefOptions, PageOptions
    from fusion_bench.io.outputs import write_output
    from fusion_bench.report.markdown import render_summary
    from fusion_bench.report.terminal import print_page

    markdown = options.markdown if isinstance(options, PageOptions) else None
    if markdown == STDOUT:
        typer.echo(render_summary(page), nl=False)
        return
    if markdown is not None:
        written = (
            *written,
            write_output(markdown, render_summary(page).encode(), option="--markdown"),
        )
    if options.json:
        print_json(record)
    else:
        detail = options.shown if isinstance(options, BriefOptions) else "full"
        opened = [about] if about and detail == "brief" else []
        print_page(page, make_console(), written=[*written, *opened], detail=detail)


def print_tables(*tables: Table) -> None:
    """Print tables, a blank line between them."""
    from fusion_bench.report.terminal import print_table

    console = make_console()
    for i, table in enumerate(tables):
        if i:
            console.print()
        print_table(table, console)


def check_paper_options(options: PaperOptions, measures: Sequence[str] | None) -> None:
    """Refuse options that have no effect, and unknown measures, before any file is read.

    Args:
        options: Of the command.
        measures: What is asked for, as a user writes it; None = known from a report alone.

    Raises:
        typer.BadParameter: Columns of no table.
        ConfigError: No such measure or column.
    """
    from fusion_bench.cli.application.commands import refuse
    from fusion_bench.measures import parse_measure

    if not options.latex:
        refuse(options, "does not go without --latex", "columns", "letters")
    names = [parse_measure(name).name for name in measures or ()]
    if options.columns and names:
        from fusion_bench.report.latex import find_columns

        find_columns(options.columns, names)


def paper_files(
    options: PaperOptions,
    stem: str,
    *reports: Report,
    compared: Sequence[CollectionComparison] | None = None,
) -> dict[str, str]:
    """File name → text of the tables that options ask for.

    Args:
        options: Of the command; its baseline and candidates choose systems.
        stem: What the file names begin with.
        reports: What was found: one, or two to compare.
        compared: Their comparison; None = the first report as it is.
    """
    files: dict[str, str] = {}
    if options.latex:
        from fusion_bench.report.latex import render_paper_tables

        files[f"{stem}.tex"] = options.call(render_paper_tables, *reports)
    if options.csv:
        from fusion_bench.evaluation.compared_reports import plan_comparison
        from fusion_bench.report.record_rows import comparison_rows, csv_files, report_rows

        if compared is None:
            rows = report_rows(reports[0])
        else:
            rows = comparison_rows(options.call(plan_comparison, *reports), compared)
        files |= csv_files(stem, rows, options.csv)
    return files
