"""A page on a terminal, or through a pipe: in brief, whole, or its answer alone.

Of a table too wide, optional columns go first, the widest before the others. Then texts wrap at
blanks. Then the table is transposed, if it may be, or split into blocks of columns that repeat the
names of the rows. Names of up to 30 characters and numbers are never broken, and nothing is cut.
The brief page, an answer and its reasons, leads to the full one with every table and note; it cuts
names of systems in the middle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Literal, TypeAlias

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from fusion_bench.report.data_warnings import PROPERTIES, sort_by_severity
from fusion_bench.report.page import (
    ALERTS,
    BEST_MARK,
    LINT,
    MAX_COLUMNS,
    WHAT_TO_DO,
    Finding,
    NextStep,
    Page,
    Row,
    Section,
    Table,
    Tone,
)
from fusion_bench.util import formatting

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
#: Begins the line that names the columns that a table lost.
DROPPED_COLUMNS = "Left out here"
#: Names of files that have every column of a page; a summary has not.
FULL_PAGES = tuple(f"{name}.md" for name in ("report", "tuning", "gate", "self-test", "diagnosis"))
#: Ends of the names of pages, the first that was written is to be opened; else the file it is of.
PAGE_ENDS = (".html", *FULL_PAGES, ".yaml")
#: Ends of the names of files that only an option writes; in brief they are named beside the page.
REQUESTED_ENDS = (".tex", ".csv", "details.json")
#: Stands before the page to open.
OPEN = "Open"
Detail: TypeAlias = Literal["brief", "full", "answer"]
#: For output that is not Unicode.
ASCII_SUBSTITUTES = str.maketrans(
    dict(zip("†−–×·“”★", '*--x-""*', strict=True)) | {"…": "..", "→": "->", "≥": ">="}
)
#: Names up to this long are never broken.
MAX_NAME = 30
#: So begin the names of the best group.
MARKED = (f"{BEST_MARK} ", f"{BEST_MARK.translate(ASCII_SUBSTITUTES)} ")
#: In brief, longer names of systems are cut in the middle; in a narrow table at less.
MAX_CUT, MIN_CUT = 24, 14
#: Texts keep this width as long as there are optional columns to drop.
COMFORTABLE_TEXT = 24
#: Blanks between two columns.
GAP = 2
#: On absurdly narrow terminals every column keeps this width.
MIN_WIDTH = 4
#: Of what speaks against an answer so much is shown; the rest is counted.
MAX_WARNINGS = 3
#: Rows of a table, those that count the rest included.
MAX_ROWS = 10
#: Rows of a table below a grid, and warnings of such a page.
MAX_HEAD_ROWS, MAX_GRID_WARNINGS = 4, 2
#: In a longer brief page, a table below a grid has fewer rows, two at least.
MAX_LINES = 30
#: Keys of findings that a brief page shows beside the warnings.
BRIEF_KEYS = ("best group", "signs", *PROPERTIES)
#: Next steps.
MAX_STEPS = 3
#: Of several answers so many are listed.
MAX_DETAILS = 6
#: A sentence ends before a blank and a capital letter, or a quotation.
SENTENCE_END = re.compile(r"(?<=[a-z0-9%)][.]) +(?=[A-Z“'])")


def print_page(
    page: Page, console: Console, *, written: Iterable[object] = (), detail: Detail = "full"
) -> None:
    """Print a page.

    Args:
        page: What to print.
        console: Where to. Optional columns that do not fit are dropped, and named; long texts wrap.
        written: The files that were written; the page among them has every column.
        detail: ``brief`` = the answer, what speaks against it, one table, and where the page is;
            ``full`` = every table; ``answer`` = the answer alone.
    """
    files = [str(path) for path in written]
    if detail == "full":
        _print_full(page, console, files)
        return
    if detail == "answer":
        _print_headline(shorten_page(page).headline, console)
        return
    for rows in range(MAX_HEAD_ROWS, 1, -1):
        brief = shorten_page(page, rows)
        with console.capture() as capture:
            _print_brief(brief, console, files)
        if capture.get().count("\n") <= MAX_LINES:
            break
    _print_brief(brief, console, files)


def _print_brief(brief: Page, console: Console, files: Sequence[str]) -> None:
    """Headline, warnings, tables, next steps, the page to open."""
    _print_headline(brief.headline, console)
    for section in brief.sections:
        if section.title:
            console.print()
        _print_text(console, section.title, style="bold")
        for finding in section.findings:
            bullet = "!" if finding.tone in ALERTS else "-"
            bullet = BEST_MARK if finding.key == "best group" else bullet
            _print_text(console, f"{bullet} {finding.text}", style=STYLES[finding.tone])
        for table in section.tables:
            console.print()
            print_table(_cut_names(table, _page_width(console)), console)
    _print_advice(brief, console)
    requested = [name for name in files if name.endswith(REQUESTED_ENDS)]
    opened = [name for end in PAGE_ENDS for name in files if name.endswith(end)][:1]
    if not brief.next_steps and (requested or opened):
        console.print()
    if requested:
        _print_text(console, f"Written: {', '.join(requested)}")
    if opened:
        _print_text(console, f"{OPEN} {opened[0]}")


def _print_full(page: Page, console: Console, files: Sequence[str]) -> None:
    """Title, sections, provenance, files, headline, next steps."""
    full_page = next((name for name in files if name.endswith(FULL_PAGES)), "")
    _print_text(console, page.title, style="bold")
    for section in page.sections:
        if not section.is_folded:
            _print_section(section, console, full_page)
    if files or (page.provenance is not None and page.provenance.summary):
        console.print()
    if page.provenance is not None:
        _print_text(console, page.provenance.summary, style="dim")
    if files:
        _print_text(console, f"Written: {', '.join(files)}")
    if page.headline is not None:
        console.print()
    _print_headline(page.headline, console)
    _print_advice(page, console)


def _print_advice(page: Page, console: Console) -> None:
    """What to do, then the commands that follow."""
    if page.advice or page.next_steps:
        console.print()
    for text in page.advice:
        _print_text(console, f"{WHAT_TO_DO}: {text}")
    if page.next_steps:
        print_next_steps(page.next_steps, console)


def _print_headline(headline: Finding | None, console: Console) -> None:
    if headline is None:
        return
    _print_text(console, headline.text, style=f"bold {STYLES[headline.tone]}")
    for line in headline.details:
        _print_text(console, f"- {line}")


def _page_width(console: Console) -> int:
    """The width of a terminal, and no more than a reader of a log has."""
    return console.width if console.is_terminal else min(console.width, formatting.PIPE_WIDTH)


def print_next_steps(steps: Sequence[NextStep], console: Console) -> None:
    """Commands to copy, each with its purpose as a comment of the shell."""
    _print_text(console, "Next:", style="bold")
    for step in steps:
        command, purpose = (_escape_text(text, console) for text in (step.command, step.purpose))
        lines = formatting.wrap_line(f"  {command}", _page_width(console))
        if cell_len(commented := f"{lines[-1]}  # {purpose}") <= _page_width(console):
            lines[-1] = commented
        else:
            _print_text(console, f"  # {purpose}", style="dim")
        console.print(Text("\n".join(lines)), soft_wrap=True)


def _print_section(section: Section, console: Console, full_page: str) -> None:
    if section.title:
        console.print()
        _print_text(console, section.title, style="bold")
    _print_text(console, section.summary, style="dim")
    _print_text(console, section.text)
    for finding in section.findings:
        bullet = "!" if finding.tone in ALERTS else "-"
        _print_text(console, f"{bullet} {finding.text}", style=STYLES[finding.tone])
        for line in finding.details:
            _print_text(console, f"    {line}", indent=6)
    for table in section.tables:
        console.print()
        print_table(table, console, full_page)


def _print_text(console: Console, text: str, *, style: str = "", indent: int = 2) -> None:
    """A paragraph; its following lines are indented."""
    if not text:
        return
    line = Text(_escape_text(text, console), style=style)
    for i, part in enumerate(line.wrap(console, max(20, _page_width(console) - indent))):
        part.rstrip()
        console.print(Text(" " * indent if i else "").append_text(part), soft_wrap=True)


def _escape_text(text: str, console: Console) -> str:
    """What the output can encode, without characters that control a terminal."""
    text = formatting.escape_control_chars(text)
    if console.encoding.lower().startswith("utf"):
        return text
    text = text.translate(ASCII_SUBSTITUTES)
    return text.encode(console.encoding, "replace").decode(console.encoding)


def print_table(table: Table, console: Console, full_page: str = "") -> None:
    """Print title, table and notes.

    Args:
        table: What to print.
        console: Where to; optional columns that do not fit are dropped, and named.
        full_page: The file that has every column; empty = there is none.
    """
    _print_text(console, table.title, style="bold")
    marked = table.mark_best("  ")
    columns = tuple(
        replace(column, header=_escape_text(column.header, console)) for column in marked.columns
    )
    rows = tuple(
        replace(row, cells=tuple(_escape_text(cell, console) for cell in row.cells))
        for row in marked.rows
    )
    layout = fit_table(replace(marked, columns=columns, rows=rows), _page_width(console))
    for i, block in enumerate(layout.blocks):
        if i:
            console.print()
        shown = block.table
        rule = "─" if console.encoding.lower().startswith("utf") else "-"
        rule *= sum(block.widths) + GAP * (len(block.widths) - 1)
        _print_row(Row(tuple(column.header for column in shown.columns)), block, console, "bold")
        console.print(Text(rule), soft_wrap=True)
        for before, row in zip((None, *shown.rows), shown.rows, strict=False):
            if before is not None and row.tone == "reference" != before.tone:
                console.print()
            _print_row(row, block, console, STYLES[row.tone])
    for note in table.notes:
        _print_text(console, note, style="dim")
    if layout.dropped:
        place = f"see {full_page}, or " if full_page else ""
        names = ", ".join(layout.dropped)
        text = f"{DROPPED_COLUMNS}: {names} ({place}use {layout.full_width} columns)."
        _print_text(console, text, style="dim")


def _print_row(row: Row, block: TableBlock, console: Console, style: str) -> None:
    """The lines of a row: each cell wraps within its column."""
    columns = []
    for cell, width in zip(row.cells, block.widths, strict=True):
        columns.append([*Text(cell).wrap(console, max(1, width), overflow="fold")])
    for parts in zip_longest(*columns):
        line = Text(style=style)
        for part, width, column in zip(parts, block.widths, block.table.columns, strict=True):
            text = Text() if part is None else part
            text.rstrip()
            blank = " " * (width - text.cell_len)
            line.append(f"{text.plain}{blank}" if column.is_text else f"{blank}{text.plain}")
            line.append(" " * GAP)
        line.rstrip()
        console.print(line, soft_wrap=True)


@dataclass(frozen=True)
class TableBlock:
    """A table and the width of each of its columns."""

    table: Table
    widths: tuple[int, ...]


@dataclass(frozen=True)
class TableLayout:
    """A table that fits a width.

    Attributes:
        blocks: One below the other; together they have all columns but the dropped ones.
        dropped: Names of the dropped columns; see :func:`name_columns`.
        full_width: The width at which no column is dropped.
    """

    blocks: tuple[TableBlock, ...]
    dropped: tuple[str, ...] = ()
    full_width: int = 0


def fit_table(table: Table, width: int) -> TableLayout:
    """Fit a table into a width.

    Args:
        table: With its texts as they are printed.
        width: In cells of the terminal.
    """
    natural = _natural_widths(table)
    if _total_width(natural) <= width:
        return TableLayout((TableBlock(table, natural),))
    full_width, columns = _total_width(_wrapped_widths(table, COMFORTABLE_TEXT)), table.columns
    kept = set(range(len(columns)))
    while (
        _total_width(
            _wrapped_widths(fitted := table.select_columns(kept.__contains__), COMFORTABLE_TEXT)
        )
        > width
    ):
        optional = [i for i in sorted(kept) if columns[i].is_optional]
        if not optional:
            break
        kept.remove(max(optional, key=lambda i: (natural[i], i)))
    if table.is_transposable and _total_width(_wrapped_widths(fitted, COMFORTABLE_TEXT)) > width:
        fitted = fitted.transpose()
    dropped = tuple(name for i, name in enumerate(name_columns(table)) if i not in kept)
    blocks: list[TableBlock] = []
    minimum = _wrapped_widths(fitted, 0)
    leading = [0]
    while fitted.columns[len(leading) : len(leading) + 1] and fitted.columns[len(leading)].is_name:
        leading.append(len(leading))
    indices = [*leading]
    for i in range(len(leading), len(fitted.columns)):
        if (
            len(indices) > len(leading)
            and _total_width([minimum[j] for j in (*indices, i)]) > width
        ):
            blocks.append(_make_block(fitted.select_columns(set(indices).__contains__), width))
            indices = [*leading]
        indices.append(i)
    blocks.append(_make_block(fitted.select_columns(set(indices).__contains__), width))
    return TableLayout(tuple(blocks), dropped, full_width)


def name_columns(table: Table) -> tuple[str, ...]:
    """The headers; of equal ones each with the header before it: ``95 % interval of mean``."""
    headers = [column.header for column in table.columns]
    pairs = zip(("", *headers), headers, strict=False)
    return tuple(
        f"{header} of {before}" if before and headers.count(header) > 1 else header
        for before, header in pairs
    )


def _make_block(table: Table, width: int) -> TableBlock:
    """Columns between their minimum and natural widths, by what each lacks."""
    natural, widths = _natural_widths(table), [*_wrapped_widths(table, 0)]
    while _total_width(widths) > width and max(widths) > MIN_WIDTH:
        widths[widths.index(max(widths))] -= 1
    lacking = [max(0, want - have) for want, have in zip(natural, widths, strict=True)]
    free = max(0, min(width - _total_width(widths), sum(lacking)))
    extra = [free * lack // max(1, sum(lacking)) for lack in lacking]
    for i in sorted(range(len(extra)), key=lambda i: extra[i] - lacking[i]):
        extra[i] += min(free - sum(extra), lacking[i] - extra[i])
    return TableBlock(table, tuple(have + more for have, more in zip(widths, extra, strict=True)))


def _total_width(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _cut_names(table: Table, width: int) -> Table:
    """The table with its systems' names cut in the middle: to 24 characters, or less to fit."""
    if not table.columns[0].is_name:
        return table
    widths = _natural_widths(table.mark_best("  "))
    limit = max(
        MIN_CUT, min(MAX_CUT, _natural_widths(table)[0] - max(0, _total_width(widths) - width))
    )
    rows = (
        replace(row, cells=(cut_middle(row.cells[0], limit), *row.cells[1:])) for row in table.rows
    )
    return replace(table, rows=tuple(rows))


def cut_middle(text: str, width: int) -> str:
    """The text, without its middle if it is wider: ``a system of … characters``."""
    if cell_len(text) <= width:
        return text
    start, end = set_cell_size(text, width // 2), set_cell_size(text[::-1], (width - 1) // 2)[::-1]
    return f"{start.rstrip()}…{end.lstrip()}"


def _natural_widths(table: Table) -> tuple[int, ...]:
    """The widths at which nothing wraps."""
    return tuple(
        max(map(cell_len, (column.header, *(row.cells[i] for row in table.rows))))
        for i, column in enumerate(table.columns)
    )


def _wrapped_widths(table: Table, text_width: int) -> tuple[int, ...]:
    """The least widths at which no number, no name and no word breaks.

    Args:
        table: With its texts as they are printed.
        text_width: Texts keep it; at 24 they wrap seldom.
    """
    widths = []
    for i, column in enumerate(table.columns):
        cells = [row.cells[i] for row in table.rows]
        widest = max(map(cell_len, cells), default=0)
        if column.is_text and (i == 0 or column.is_name):
            is_marked = any(cell.startswith(MARKED) for cell in cells)
            widest = min(widest, MAX_NAME + 2 * is_marked)
        elif column.is_text:
            words = (word for cell in cells for word in cell.split())
            longest = min(max(map(cell_len, words), default=0), MAX_NAME)
            widest = min(widest, max(longest, text_width))
        header = min(max(map(cell_len, column.header.split()), default=0), MAX_NAME)
        widths.append(max(widest, header))
    return tuple(widths)


def shorten_page(page: Page, head_rows: int = MAX_HEAD_ROWS) -> Page:
    """The page with at most three warnings and one table a collection, without notes.

    A table has at most seven columns and eleven rows: the required columns; the baseline, the best
    group, what failed, then the first rows. A page whose headline passed has no table.

    Args:
        page: The page.
        head_rows: Rows of a table below a grid.
    """
    shown = [section for section in page.sections if not section.is_folded]
    mains = [section for section in shown if section.tables] or shown[:1]
    collections = [section for section in mains if section.key.startswith("collection")]
    mains = collections or mains[:1]
    others = [section for section in shown if section not in mains]
    has_passed = page.headline is not None and page.headline.tone == "passed"
    sections = [
        _shorten_section(section, others if len(mains) == 1 else (), 0 if has_passed else head_rows)
        for section in mains
    ]
    if len(mains) > 1:
        sections = [
            replace(each, title=main.title) for each, main in zip(sections, mains, strict=True)
        ]
        sections.append(Section(findings=tuple(_limit_warnings(_list_warnings(others)))))
    headline, answer = page.headline, "" if page.headline is None else page.headline.text
    if headline is not None and (more := len(headline.details) - MAX_DETAILS) > 1:
        details = (*headline.details[:MAX_DETAILS], f"{more} more (-v shows them)")
        headline = replace(headline, details=details)
    # ``Use a instead of b.`` says no more than an answer that begins with ``Use a: ``.
    said = answer.partition(": ")[0]
    advice = [each for each in page.advice if each.partition(" instead of ")[0] != said]
    return replace(
        page,
        headline=headline,
        sections=tuple(sections),
        provenance=None,
        next_steps=page.next_steps[:MAX_STEPS],
        advice=tuple(advice[:MAX_DETAILS]),
    )


def _shorten_section(section: Section, others: Iterable[Section], head_rows: int) -> Section:
    """Warnings of a section and of others, then the grid and the first table; 0 rows = no table."""
    shown = [finding for finding in section.findings if finding.key in BRIEF_KEYS]
    grids = [replace(table, title="") for table in section.tables if table.is_grid]
    tables = [table for table in section.tables if not table.is_grid][: min(1, head_rows)]
    limit = MAX_GRID_WARNINGS if grids else MAX_WARNINGS
    warnings = _limit_warnings(_list_warnings((section, *others)), limit)
    shortened = (shorten_table(table, head_rows if grids else None) for table in tables)
    return Section(
        findings=(*(_first_sentence(each) for each in shown), *warnings),
        parts=(*grids, *shortened),
    )


def _list_warnings(sections: Iterable[Section]) -> Iterator[Finding]:
    """What speaks against the answer, the most serious first: who judged, data, results, lint."""
    lint: list[Finding] = []
    for section in sorted(sections, key=lambda each: each.key != "judge"):
        alerts = sort_by_severity(each for each in section.findings if each.tone in ALERTS)
        lint += (finding for finding in alerts if finding.key.startswith(LINT))
        yield from (finding for finding in alerts if not finding.key.startswith(LINT))
    if lint:
        rules = formatting.list_names([finding.key.removeprefix(LINT) for finding in lint])
        yield Finding(f"lint: {rules}", "warning")


def _limit_warnings(warnings: Iterable[Finding], limit: int = MAX_WARNINGS) -> Iterator[Finding]:
    """The first ones, a sentence each, and how many more there are."""
    listed = list(warnings)
    shown = listed if len(listed) == limit + 1 else listed[:limit]
    yield from map(_first_sentence, shown)
    if more := len(listed) - len(shown):
        yield Finding(f"{formatting.pluralize(more, 'more warning')} (-v shows them)", "warning")


def _first_sentence(finding: Finding) -> Finding:
    sentence = SENTENCE_END.split(finding.text, maxsplit=1)[0]
    return replace(finding, text=sentence.removesuffix("."), details=())


def shorten_table(table: Table, head_rows: int | None = None) -> Table:
    """A table's required columns and first rows, without reference rows and notes.

    Args:
        table: The table.
        head_rows: So many rows, and no title, below a grid; None = there is no grid.
    """
    rows = tuple(row for row in table.rows if row.tone != "reference")
    required = replace(table, rows=rows, notes=()).without_optional_columns()
    narrow = required.select_columns(lambda i: i < MAX_COLUMNS)
    if head_rows is not None:
        return replace(narrow.head(head_rows), title="")
    tables = (narrow.shorten(limit) for limit in range(MAX_ROWS - 3, 1, -1))
    return next(each for each in tables if len(each.rows) <= MAX_ROWS)  # each gap is a row, too
