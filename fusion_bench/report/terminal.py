"""A report on a terminal; or through a pipe, where every table is as wide as it takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from fusion_bench.evaluation.report_records import Collection, Report
from fusion_bench.report import tables
from fusion_bench.report.by_type import by_type
from fusion_bench.report.findings import sentences
from fusion_bench.report.tables import Table
from fusion_bench.util.formatting import escape_control_chars, pluralize

__all__ = ["print_table", "render"]

STYLES = {
    "plain": "",
    "baseline": "bold",
    "better": "green",
    "worse": "red",
    "doubtful": "yellow",
    "bound": "dim",
}
#: Wider than any table: a pipe has no edge.
ENDLESS = 100_000
#: For output that is not Unicode.
PLAIN = str.maketrans({"…": "..", "†": "*", "−": "-", "–": "-", "×": "x", "·": "-"})


def render(report: Report, console: Console) -> None:
    """Print a report.

    Args:
        report: What to print.
        console: Where to. On a terminal, columns that do not fit are left to the Markdown report,
            which is said; long names wrap. Nothing is ever cut off.
    """
    settings = [
        f"{key} {report.settings[key]}"
        for key in ("ties", "seed", "alpha")
        if key in report.settings
    ]
    if not report.provenance.v2_enabled:
        settings.append("RAG_FUSION_V2_ENABLED off")
    origin = f"{report.provenance.source}, {report.provenance.created}"
    _say(console, escape_control_chars(report.name), style="bold")
    _say(console, "; ".join(filter(None, (origin, ", ".join(settings)))), style="dim")
    if report.settings.get("description"):
        _say(console, " ".join(str(report.settings["description"]).split()))
    for collection in report.collections:
        console.print()
        _collection(report, collection, console)


def _collection(report: Report, collection: Collection, console: Console) -> None:
    of = "" if collection.split is None else f", split {escape_control_chars(collection.split)}"
    if collection.query_type is not None:
        of += f", type {escape_control_chars(collection.query_type)}"
    name = f"{escape_control_chars(collection.name)} {escape_control_chars(collection.version)}"
    _say(console, f"{name}{of}: {pluralize(len(collection.queries), 'query')}", style="bold")
    for sentence in sentences(report, collection):
        warns = sentence.kind == "warning"
        _say(console, f"{'!' if warns else '-'} {sentence.text}", style="yellow" if warns else "")
    for table in _tables(report, collection, console):
        console.print()
        print_table(table, console)


def _tables(report: Report, collection: Collection, console: Console) -> Iterator[Table]:
    yield tables.main(report, collection)
    typed = by_type(report, collection)
    if typed is not None:
        yield typed
    if (priced := tables.prices(collection)) is not None:
        yield priced
    yield tables.checks(report, collection)
    rest = collection.measures[1:]
    while rest:  # beside each other, as many as fit; a pipe gets one after the other, complete
        count = len(rest) if console.is_terminal else 1
        while count > 1 and not _fits(tables.other(report, collection, rest[:count]), console):
            count -= 1
        yield tables.other(report, collection, rest[:count])
        rest = rest[count:]


def _say(console: Console, text: str, *, style: str = "") -> None:
    """A line; wrapped on a terminal, with following lines indented under a bullet."""
    line = Text(_encodable(text, console), style=style)
    if not console.is_terminal:
        console.print(line, soft_wrap=True)
        return
    for i, part in enumerate(line.wrap(console, max(20, console.width - 2))):
        part.rstrip()
        console.print(Text("  " if i else "").append_text(part), soft_wrap=True)


def _encodable(text: str, console: Console) -> str:
    """What the output can hold; nothing in a report may steer the terminal."""
    text = escape_control_chars(text)
    if console.encoding.lower().startswith("utf"):
        return text
    return text.translate(PLAIN).encode(console.encoding, "replace").decode(console.encoding)


def print_table(table: Table, console: Console) -> None:
    """Title, table and notes; on a terminal without optional columns that do not fit."""
    if console.is_terminal:
        table = _fitted(table, console)
    _say(console, table.title, style="bold")
    made = _rich(table, console)
    if not console.is_terminal:
        options = console.options.update(width=_measured(made, console).maximum)
        for line in console.render_lines(made, options, pad=False):
            text = "".join(segment.text for segment in line).rstrip()
            console.print(Text(text), soft_wrap=True)
    elif _measured(made, console).minimum > console.width:
        console.print(_rich(table, console, wrap=True))
    else:
        console.print(made)
    for note in table.notes:
        _say(console, note, style="dim")


def _fitted(table: Table, console: Console) -> Table:
    """Without the optional columns where they do not fit, which a note says."""
    optional = any(column.optional for column in table.columns)
    if not optional or _measured(_rich(table, console), console).maximum <= console.width:
        return table
    note = "Some columns need a wider terminal; the Markdown report has them all."
    return replace(_required(table), notes=(*table.notes, note))


def _required(table: Table) -> Table:
    """Without the optional columns."""
    keep = [i for i, column in enumerate(table.columns) if not column.optional]
    rows = (replace(row, cells=tuple(row.cells[i] for i in keep)) for row in table.rows)
    return replace(table, columns=tuple(table.columns[i] for i in keep), rows=tuple(rows))


def _fits(table: Table, console: Console) -> bool:
    """Whether the columns that must be there stand side by side."""
    return _measured(_rich(_required(table), console), console).maximum <= console.width


def _measured(table: RichTable, console: Console) -> Measurement:
    return Measurement.get(console, console.options.update(max_width=ENDLESS), table)


def _rich(table: Table, console: Console, *, wrap: bool = False) -> RichTable:
    """As a rich table; only text wraps unless ``wrap`` lets numbers wrap too."""
    made = RichTable(
        box=box.SIMPLE, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold"
    )
    for column in table.columns:
        made.add_column(
            Text(_encodable(column.header, console)),
            justify="left" if column.left else "right",
            overflow="fold",
            no_wrap=not (column.left or wrap),
        )
    for before, row in zip((None, *table.rows), table.rows, strict=False):
        if before is not None and row.tone == "bound" != before.tone:
            made.add_section()
        cells = (Text(_encodable(cell, console), style=STYLES[row.tone]) for cell in row.cells)
        made.add_row(*cells)
    return made
