"""Tables of text: cells between commas, semicolons, tabs or bars, mostly with a header."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from fusion_bench.data.document_rows import ID_ROLES, VALUE_ROLES
from fusion_bench.errors import DataError
from fusion_bench.io.formats import trec
from fusion_bench.io.formats._base import find_columns, match_columns, register_format
from fusion_bench.io.formats.trec import fits_columns, tabulate_cells
from fusion_bench.io.raw_files import NO_COLUMNS, ColumnNames, Kind, RawTable, read_text

DELIMITERS: Final = (",", ";", "\t", "|")
#: What may stand around a cell.
BLANKS: Final = " \t\r"


@register_format("tsv", ".tsv")
@register_format("csv", ".csv")
def read_table(path: Path, kind: Kind, *, has_ranks: bool, columns: ColumnNames) -> RawTable:
    """Read a table whose first line names its columns; BEIR's qrels are one.

    The delimiter is the one that splits the header into the names that are looked for. A file
    without a header is read if its first line holds what a TREC file or an MS MARCO run does,
    numbers included.
    """
    text = read_text(path)
    first = next((line for line in text.split("\n") if line.strip()), "")
    delimiter = _find_delimiter(first, kind, columns)
    is_split_by_blanks = (delimiter == "\t" and " " not in text) or delimiter not in first
    if not columns and is_split_by_blanks and _is_data(first.split(), kind):
        return trec.read_table(path, kind, has_ranks=has_ranks, columns=columns)
    lines = list(_split_lines(path, text, delimiter))
    if not lines:
        return RawTable([], [], [], None, [])
    (number, header), *rows = lines
    if not columns and _is_data(header, kind):
        return tabulate_cells(path, kind, lines)
    if not _count_names(header, kind, columns):
        _refuse_numbers(header, f"{path}:{number}", kind)
    names = find_columns(header, kind, f"{path}:{number}", columns)
    for row_number, row in rows:
        if len(row) != len(header):
            raise DataError(
                f"{path}:{row_number}: {len(row)} columns, and the header names {len(header)}: "
                f"{', '.join(header)}"
            )
    column = {
        role: [row[at] for _, row in rows]
        for role, name in names.items()
        for at in [header.index(name)]
    }
    needs_ranks = has_ranks or "value" not in column
    return RawTable(
        queries=column["query"],
        documents=column["document"],
        values=column.get("value"),
        ranks=column.get("rank") if needs_ranks else None,
        lines=[row_number for row_number, _ in rows],
    )


def _is_data(cells: Sequence[str], kind: Kind) -> bool:
    """Whether a first line is no header, but that of a file in fixed columns."""
    return fits_columns(cells, kind) and not _count_names(cells, kind, NO_COLUMNS)


def _find_delimiter(line: str, kind: Kind, columns: ColumnNames) -> str:
    """What splits the first line into most of the names, or into the cells of a TREC line."""

    def rate_delimiter(delimiter: str) -> tuple[int, bool, int]:
        try:
            (cells,) = csv.reader([line], delimiter=delimiter)
        except csv.Error:
            return 0, False, 0
        cells = [cell.strip() for cell in cells]
        return _count_names(cells, kind, columns), fits_columns(cells, kind), len(cells)

    return max(DELIMITERS, key=rate_delimiter)  # the first of equals


def _count_names(header: Sequence[str], kind: Kind, columns: ColumnNames) -> int:
    """How many of the columns that are looked for a header names."""
    present = {role: name for role, name in columns.items() if name in header}
    return len(match_columns(header, (*ID_ROLES, VALUE_ROLES[kind]), "", present))


def _refuse_numbers(header: Sequence[str], where: str, kind: Kind) -> None:
    """Raise where the first line holds a number: it names no columns."""
    for cell in header:
        if re.fullmatch(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?", cell, re.IGNORECASE):
            raise DataError(
                f"{where}: the first line is no header, since {cell!r} names no column: add one, "
                f"such as query,document,{VALUE_ROLES[kind]}"
            )


def _split_lines(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Each line that is not blank: its number and its cells, without blanks around them."""
    table = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    before = 0
    try:
        for row in table:
            number, before = before + 1, table.line_num
            if table.line_num > number:
                raise DataError(
                    f"{path}:{number}: a quoted cell runs on to line {table.line_num}: end it with "
                    'a quotation mark, and write one that belongs to it twice, as in """a"""'
                )
            cells = [cell.strip(BLANKS) for cell in row]
            if len(cells) > 1 or any(cells):
                yield number, cells
    except csv.Error as error:
        raise DataError(f"{path}:{before + 1}: not a table of cells: {error}") from None
