"""What a command prints: lines and tables in which no name can colour a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import typer

from fusion_bench.util.formatting import shown

__all__ = ["complain", "say", "say_table", "say_written"]

#: Characters of a complaint; a longer one quotes an id that is none.
LONGEST = 2000


def say(line: str, *, err: bool = False) -> None:
    r"""Print one line; a character that cannot be printed appears as ``\n`` or ``\x1b``."""
    typer.echo(shown(line), err=err)


def complain(message: str) -> None:
    """Say on standard error, in one line, why something could not be done."""
    one_line = shown(" ".join(message.split()))
    if len(one_line) > LONGEST:
        one_line = f"{one_line[: LONGEST // 2]} … {one_line[-LONGEST // 2 :]}"
    typer.echo(f"{typer.style('error:', fg='red', bold=True)} {one_line}", err=True)


def say_written(paths: Iterable[object]) -> None:
    """Name the files that are there now."""
    say("Written: " + ", ".join(str(path) for path in paths))


def say_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None
) -> None:
    """Print a table, none of whose cells is read as markup."""
    from rich.table import Table

    from fusion_bench.cli._base import console

    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(shown(heading), overflow="fold")
    for row in rows:
        table.add_row(*(shown(cell) for cell in row))
    console().print(table, markup=False)
