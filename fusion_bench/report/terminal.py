"""A page on a terminal, or through a pipe, where every table is as wide as it needs."""

from __future__ import annotations

from dataclasses import replace

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from fusion_bench.report.page import Page, Section, Table, Tone
from fusion_bench.util.formatting import escape_control_chars

STYLES: dict[Tone, str] = {
    "plain": "",
    "baseline": "bold",
    "reference": "dim",
    "better": "green",
    "worse": "red",
    "warning": "yellow",
    "passed": "green",
    "failed": "red",
    "inconclusive": "yellow",
}
#: Tones of findings that are marked with an exclamation mark.
ALERTS = {"warning", "failed", "inconclusive"}
#: Added to the notes of a table that lost columns.
DROPPED_COLUMNS = "Some columns need a wider terminal; the Markdown report has them all."
#: Wider than any table: a pipe has no edge.
UNLIMITED_WIDTH = 100_000
#: For output that is not Unicode.
ASCII_SUBSTITUTES = str.maketrans({"…": "..", "†": "*", "−": "-", "–": "-", "×": "x", "·": "-"})


def print_page(page: Page, console: Console) -> None:
    """Print a page.

    Args:
        page: What to print.
        console: Where to. A terminal drops optional columns that do not fit, and says so; long
            names wrap. Nothing is ever cut off.
    """
    _print_text(console, page.title, style="bold")
    for section in page.sections:
        if not section.is_folded:
            _print_section(section, console)
    if page.headline is not None:
        console.print()
        _print_text(console, page.headline.text, style=f"bold {STYLES[page.headline.tone]}")


def _print_section(section: Section, console: Console) -> None:
    if section.title:
        console.print()
        _print_text(console, section.title, style="bold")
    _print_text(console, section.summary, style="dim")
    _print_text(console, section.text)
    for finding in section.findings:
        bullet = "!" if finding.tone in ALERTS else "-"
        _print_text(console, f"{bullet} {finding.text}", style=STYLES[finding.tone])
        for line in finding.details:
            _print_text(console, f"    {line}")
    for table in section.tables:
        console.print()
        print_table(table, console)


def _print_text(console: Console, text: str, *, style: str = "") -> None:
    """A line; wrapped on a terminal, with following lines indented under a bullet."""
    if not text:
        return
    line = Text(_escape_text(text, console), style=style)
    if not console.is_terminal:
        console.print(line, soft_wrap=True)
        return
    for i, part in enumerate(line.wrap(console, max(20, console.width - 2))):
        part.rstrip()
        console.print(Text("  " if i else "").append_text(part), soft_wrap=True)


def _escape_text(text: str, console: Console) -> str:
    """What the output can encode, without characters that control a terminal."""
    text = escape_control_chars(text)
    if console.encoding.lower().startswith("utf"):
        return text
    text = text.translate(ASCII_SUBSTITUTES)
    return text.encode(console.encoding, "replace").decode(console.encoding)


def print_table(table: Table, console: Console) -> None:
    """Print title, table and notes; on a terminal without optional columns that do not fit."""
    widest = _measure(_rich_table(table, console), console).maximum
    if console.is_terminal and widest > console.width:
        required = table.without_optional_columns()
        if required.columns != table.columns:
            table = replace(required, notes=(*table.notes, DROPPED_COLUMNS))
    _print_text(console, table.title, style="bold")
    rich_table = _rich_table(table, console)
    if console.is_terminal:
        is_wide = _measure(rich_table, console).minimum > console.width
        console.print(_rich_table(table, console, wrap_numbers=True) if is_wide else rich_table)
    else:
        options = console.options.update(width=_measure(rich_table, console).maximum)
        for line in console.render_lines(rich_table, options, pad=False):
            text = "".join(segment.text for segment in line).rstrip()
            console.print(Text(text), soft_wrap=True)
    for note in table.notes:
        _print_text(console, note, style="dim")


def _measure(table: RichTable, console: Console) -> Measurement:
    return Measurement.get(console, console.options.update(max_width=UNLIMITED_WIDTH), table)


def _rich_table(table: Table, console: Console, *, wrap_numbers: bool = False) -> RichTable:
    """As a rich table; numbers only wrap where ``wrap_numbers`` lets them."""
    rich_table = RichTable(
        box=box.SIMPLE, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold"
    )
    for column in table.columns:
        rich_table.add_column(
            Text(_escape_text(column.header, console)),
            justify="left" if column.is_text else "right",
            overflow="fold",
            no_wrap=not (column.is_text or wrap_numbers),
        )
    for before, row in zip((None, *table.rows), table.rows, strict=False):
        if before is not None and row.tone == "reference" != before.tone:
            rich_table.add_section()
        style = STYLES[row.tone]
        rich_table.add_row(*(Text(_escape_text(cell, console), style=style) for cell in row.cells))
    return rich_table
