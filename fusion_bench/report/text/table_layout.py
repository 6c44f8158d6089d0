"""How a table fits a width: the columns it drops, the widths of the others, and where it is split.

Optional columns go first, the widest before the others. Then texts wrap at blanks. Then a table is
transposed, if it may be, or split into blocks of columns that repeat the names of the rows. Names
of up to 30 characters and numbers are never broken, and nothing is ever cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from fusion_bench.report.page import Table

#: Names up to this long are never broken.
MAX_NAME = 30
#: Texts keep this width as long as there are optional columns to drop.
COMFORTABLE_TEXT = 24
#: Blanks between two columns.
GAP = 2
#: On absurdly narrow terminals every column keeps this width.
MIN_WIDTH = 4


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
    if _total(natural) <= width:
        return TableLayout((TableBlock(table, natural),))
    full_width, columns = _total(_comfortable_widths(table)), table.columns
    kept = set(range(len(columns)))
    while _total(_comfortable_widths(fitted := table.select_columns(kept.__contains__))) > width:
        optional = [i for i in sorted(kept) if columns[i].is_optional]
        if not optional:
            break
        kept.remove(max(optional, key=lambda i: (natural[i], i)))
    if table.is_transposable and _total(_comfortable_widths(fitted)) > width:
        fitted = fitted.transpose()
    dropped = tuple(name for i, name in enumerate(name_columns(table)) if i not in kept)
    return TableLayout(tuple(_split_columns(fitted, width)), dropped, full_width)


def name_columns(table: Table) -> tuple[str, ...]:
    """The headers; of equal ones each with the header before it: ``95 % interval of mean``."""
    headers = [column.header for column in table.columns]
    pairs = zip(("", *headers), headers, strict=False)
    return tuple(
        f"{header} of {before}" if before and headers.count(header) > 1 else header
        for before, header in pairs
    )


def _split_columns(table: Table, width: int) -> Iterator[TableBlock]:
    """One block, or several that repeat the leading columns of names."""
    minimum = _minimum_widths(table)
    leading = [0]
    while table.columns[len(leading) : len(leading) + 1] and table.columns[len(leading)].is_name:
        leading.append(len(leading))
    indices = [*leading]
    for i in range(len(leading), len(table.columns)):
        if len(indices) > len(leading) and _total([minimum[j] for j in (*indices, i)]) > width:
            yield _make_block(table.select_columns(set(indices).__contains__), width)
            indices = [*leading]
        indices.append(i)
    yield _make_block(table.select_columns(set(indices).__contains__), width)


def _make_block(table: Table, width: int) -> TableBlock:
    """Columns between their minimum and natural widths, by what each lacks."""
    natural, widths = _natural_widths(table), [*_minimum_widths(table)]
    while _total(widths) > width and max(widths) > MIN_WIDTH:
        widths[widths.index(max(widths))] -= 1
    lacking = [max(0, want - have) for want, have in zip(natural, widths, strict=True)]
    free = max(0, min(width - _total(widths), sum(lacking)))
    extra = [free * lack // max(1, sum(lacking)) for lack in lacking]
    for i in sorted(range(len(extra)), key=lambda i: extra[i] - lacking[i]):
        extra[i] += min(free - sum(extra), lacking[i] - extra[i])
    return TableBlock(table, tuple(have + more for have, more in zip(widths, extra, strict=True)))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _natural_widths(table: Table) -> tuple[int, ...]:
    """The widths at which nothing wraps."""
    return tuple(
        max(map(cell_len, (column.header, *(row.cells[i] for row in table.rows))))
        for i, column in enumerate(table.columns)
    )


def _comfortable_widths(table: Table) -> tuple[int, ...]:
    """The least widths at which texts wrap seldom."""
    return _wrapped_widths(table, COMFORTABLE_TEXT)


def _minimum_widths(table: Table) -> tuple[int, ...]:
    """The least widths at which no number, no name and no word breaks."""
    return _wrapped_widths(table, 0)


def _wrapped_widths(table: Table, text_width: int) -> tuple[int, ...]:
    widths = []
    for i, column in enumerate(table.columns):
        cells = [row.cells[i] for row in table.rows]
        widest = max(map(cell_len, cells), default=0)
        if column.is_text and (i == 0 or column.is_name):
            widest = min(widest, MAX_NAME)
        elif column.is_text:
            words = (word for cell in cells for word in cell.split())
            longest = min(max(map(cell_len, words), default=0), MAX_NAME)
            widest = min(widest, max(longest, text_width))
        header = min(max(map(cell_len, column.header.split()), default=0), MAX_NAME)
        widths.append(max(widest, header))
    return tuple(widths)
