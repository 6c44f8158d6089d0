"""Tab- or comma-separated files, with a header or in the columns of a TREC file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from fusion_bench.data.column_names import COLUMN_NAMES
from fusion_bench.errors import DataError
from fusion_bench.io.file_bytes import format_suffix, read_text
from fusion_bench.io.formats._base import register_format
from fusion_bench.io.formats._column_names import find_columns
from fusion_bench.io.formats.trec import COLUMNS, read_lines
from fusion_bench.io.raw_table import Kind, RawTable

DELIMITERS = {".tsv": "\t", ".csv": ","}


@register_format("delimited", *DELIMITERS)
def read_table(path: Path, kind: Kind, *, has_ranks: bool) -> RawTable:
    """Read a table whose first line names its columns; BEIR's qrels are one.

    A file without a header is read as TREC columns.
    """
    text = read_text(path)
    delimiter = DELIMITERS[format_suffix(path)]
    lines = list(_split_lines(path, text, delimiter))
    if not lines:
        return RawTable([], [], [], None, [])
    (first, header), *rows = lines
    if len(header) == len(COLUMNS[kind]) and not _is_header(header):
        return read_lines(path, kind, text.replace(delimiter, " "))
    columns = find_columns(header, kind, f"{path}:{first}")
    index = {role: header.index(name) for role, name in columns.items()}
    for number, row in rows:
        if len(row) != len(header):
            raise DataError(
                f"{path}:{number}: {len(row)} columns, and the header names {len(header)}: "
                f"{', '.join(header)}"
            )
    return RawTable(
        queries=[row[index["query"]] for _, row in rows],
        documents=[row[index["document"]] for _, row in rows],
        values=[row[index["value"]] for _, row in rows],
        ranks=[row[index["rank"]] for _, row in rows] if has_ranks and "rank" in index else None,
        lines=[number for number, _ in rows],
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
            cells = [cell.strip() for cell in row]
            if len(cells) > 1 or any(cells):
                yield number, cells
    except csv.Error as error:
        raise DataError(f"{path}:{before + 1}: not a table of cells: {error}") from None


def _is_header(header: list[str]) -> bool:
    return any(name.lower() in COLUMN_NAMES["query"] for name in header)
