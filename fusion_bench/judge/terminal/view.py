"""What a judge sees: query and document side by side, or one above the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from fusion_bench.util.formatting import escape_control_chars

#: Columns from which query and document stand side by side.
WIDE: Final = 100
#: Rows that frames, progress and keys take.
FRAME_ROWS: Final = 4
#: Share of a wide terminal that the query gets.
QUERY_SHARE: Final = 1 / 3
HELP: Final = """\
A grade says how well the document answers the query. 0: not at all. The greatest: in full.
Which system returned it, and where, is hidden: it must not decide.

0–{greatest}  grade the document    s  skip it for now
u    undo the last key      n  write a note, Enter ends it
space, b  next, last page of a long document
q    quit; every grade is in the file already"""


@dataclass(frozen=True)
class Frame:
    """One screen.

    Attributes:
        query_id: Id of the query.
        query: Its text.
        document_id: Id of the document.
        document: Its title and text.
        done: How many documents are judged.
        total: Of how many.
        judge: The judge's name.
        greatest: The greatest grade.
        note: What the judge remarked; with ``is_noting``, as far as it is typed.
        is_noting: Keys are the letters of a note.
        is_helping: The help is shown in place of the document.
        message: What the last key did, where that needs words.
        top: First line of the document that is shown.
    """

    query_id: str
    query: str
    document_id: str
    document: str
    done: int
    total: int
    judge: str
    greatest: int
    note: str = ""
    is_noting: bool = False
    is_helping: bool = False
    message: str = ""
    top: int = 0


@dataclass(frozen=True)
class RenderedFrame:
    """A screen, and what it shows of the document.

    Attributes:
        content: What to print.
        rows: Lines of the document that it has room for.
        rest: Lines of the document below those.
    """

    content: RenderableType
    rows: int
    rest: int


def render_frame(frame: Frame, console: Console) -> RenderedFrame:
    """The screen: query and document side by side, or one above the other where it is narrow."""
    width, height = console.width, console.height
    is_wide = width >= WIDE
    query_width = round(width * QUERY_SHARE) if is_wide else width
    text_width = (width - query_width if is_wide else width) - 4
    query_lines = _wrap(frame.query, query_width - 4, console)
    above = 0 if is_wide else min(len(query_lines), max(1, height // 4 - 1))
    rows = max(1, height - FRAME_ROWS - (above + 2 if above else 0))
    body = HELP.format(greatest=frame.greatest) if frame.is_helping else frame.document
    lines = _wrap(body, text_width, console)
    top = min(frame.top, max(0, len(lines) - 1))
    rest = max(0, len(lines) - top - rows)
    title = "help" if frame.is_helping else f"document {frame.document_id}"
    if rest:
        title = f"{rest} more lines: space · {title}"
    query = _panel(query_lines[: above or rows], f"query {frame.query_id}")
    document = _panel(lines[top : top + rows], title)
    parts: RenderableType = Group(query, document)
    if is_wide:
        grid = Table.grid(expand=True)
        grid.add_column(width=query_width)
        grid.add_column(width=width - query_width)
        grid.add_row(query, document)
        parts = grid
    return RenderedFrame(Group(parts, _progress_line(frame), _key_line(frame)), rows, rest)


def _panel(lines: list[Text], title: str) -> Panel:
    shown = Text(escape_control_chars(title))
    return Panel(Text("\n").join(lines), title=shown, title_align="left")


def _progress_line(frame: Frame) -> Text:
    position = min(frame.done + 1, frame.total)
    text = f"{position} of {frame.total} · judge {frame.judge}"
    text += f" · {frame.message}" if frame.message else ""
    return Text(text, style="bold", no_wrap=True, overflow="ellipsis")


def _key_line(frame: Frame) -> Text:
    if frame.is_noting:
        line = f"note: {escape_control_chars(frame.note)}▏ (Enter keeps it, Esc drops it)"
        return Text(line, no_wrap=True, overflow="ellipsis")
    note = f" · note: {escape_control_chars(frame.note)}" if frame.note else ""
    keys = f"0–{frame.greatest} grade  s skip  u undo  n note  q quit  ? help{note}"
    return Text(keys, style="dim", no_wrap=True, overflow="ellipsis")


def _wrap(text: str, width: int, console: Console) -> list[Text]:
    """Lines of a text whose control characters are made visible."""
    lines = (escape_control_chars(line.expandtabs(4).rstrip()) for line in text.split("\n"))
    return list(Text("\n".join(lines)).wrap(console, max(1, width)))
