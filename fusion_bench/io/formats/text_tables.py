"""Tables of text: the columns of TREC and MS MARCO, CSV and TSV.

A TREC run has six columns between blanks or tabs, ``query Q0 document rank score tag``; qrels have
four, ``query 0 document grade``. A run may have three: ``query document rank`` as MS MARCO's, or
``query document score``. A tag may hold blanks. Lines that start with ``#`` are comments.

Other tables have cells between commas, semicolons, tabs or bars, mostly with a header.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from fusion_bench.data.document_rows import ID_ROLES, VALUE_ROLES
from fusion_bench.data.grouped_rows import CategoricalIds
from fusion_bench.errors import DataError
from fusion_bench.io.formats._base import find_columns, match_columns, register_format
from fusion_bench.io.raw_files import (
    NO_COLUMNS,
    ColumnNames,
    Kind,
    RawTable,
    decode_text,
    read_bytes,
    read_csv_rows,
    read_text,
    tabulate,
)
from fusion_bench.util.formatting import is_decimal, is_whole, parse_whole

COLUMNS: Final[dict[Kind, tuple[str, ...]]] = {
    "run": ("query", "Q0", "document", "rank", "score", "tag"),
    "qrels": ("query", "0", "document", "grade"),
}
#: Source: the passage ranking task of MS MARCO, https://microsoft.github.io/msmarco/
MS_MARCO: Final = ("query", "document", "rank")
#: Three columns whose third has a number that is not whole, and so is no rank.
SCORED: Final = ("query", "document", "score")


def _select_names(kind: Kind, width: int) -> tuple[str, ...]:
    """The columns of a file whose first line has so many cells."""
    return MS_MARCO if kind == "run" and width == len(MS_MARCO) else COLUMNS[kind]


def _fits_columns(cells: Sequence[str], kind: Kind) -> bool:
    """Whether a line has the columns of its kind, with numbers where numbers belong."""
    names = _select_names(kind, len(cells))
    if len(cells) != len(names):
        return False
    columns = dict(zip(names, cells, strict=True))
    if names == MS_MARCO:
        return is_decimal(columns["rank"])  # or a score
    wholes = [columns[name] for name in ("rank", "grade") if name in columns]
    return all(map(is_whole, wholes)) and is_decimal(columns.get("score", "0"))


def _tabulate_cells(path: Path, kind: Kind, lines: Sequence[tuple[int, list[str]]]) -> RawTable:
    """The rows of numbered lines; the first decides which columns there are.

    Raises:
        DataError: A line has more columns, or fewer; or what should be ranks is none.
    """
    if not lines:
        return RawTable([], [], [], None, [])
    names = _select_names(kind, len(lines[0][1]))
    for number, cells in lines:
        if len(cells) != len(names):
            raise DataError(
                f"{path}:{number}: {len(cells)} columns, and {_describe_columns(kind, names)}"
            )
    column = dict(zip(names, zip(*(cells for _, cells in lines), strict=True), strict=True))
    value = VALUE_ROLES[kind]
    if names == MS_MARCO and _holds_scores(column["rank"]):
        value = "rank"
    elif names == MS_MARCO:
        _check_ranks(path, lines)
    if value in column:
        column["value"] = column.pop(value)
    return tabulate(column, [number for number, _ in lines])


def _holds_scores(third: Sequence[str]) -> bool:
    """Whether a third column has numbers alone, and one that no rank and no grade can be."""
    return all(map(is_decimal, third)) and not all(map(is_whole, third))


def _describe_columns(kind: Kind, names: Sequence[str]) -> str:
    if names == MS_MARCO:
        return "the first line has 3: query, document, and a score or a rank"
    return f"a TREC {kind} has {len(names)}: {' '.join(names)}"


def _check_ranks(path: Path, lines: Sequence[tuple[int, list[str]]]) -> None:
    """Refuse a third column that is not the ranks of each query, from 1.

    Raises:
        DataError: It may be scores: the order of such a file would be turned round.
    """
    first_line: dict[str, int] = {}
    last_rank: dict[str, int] = {}
    with_best: set[str] = set()
    steps: set[bool] = set()  # whether ranks rise from one line of a query to its next
    for number, (query, _, rank) in lines:
        if not (is_whole(rank) and parse_whole(rank) > 0):
            raise DataError(
                f"{path}:{number}: 3 columns of whole numbers are those of an MS MARCO run (query "
                f"document rank), and {rank!r} is not a rank from 1: if it is a score, write a "
                "header that says so (query,document,score); if it is a grade, give the file as "
                f"judgments ({' '.join(COLUMNS['qrels'])})"
            )
        first_line.setdefault(query, number)
        place = parse_whole(rank)
        if place == 1:
            with_best.add(query)
        if query in last_rank:
            steps.add(place >= last_rank[query])
        last_rank[query] = place
    for query, number in first_line.items():
        if query not in with_best:
            raise DataError(
                f"{path}:{number}: query {query!r} has no document of rank 1, as each query of an "
                "MS MARCO run (query document rank) has: if the third column is the score, write "
                "a header that says so"
            )
    if steps == {False}:
        raise DataError(
            f"{path}: the third column falls along every list, as scores do, and that of an MS "
            "MARCO run (query document rank) is the rank: if it is, write rank 1 first; if it is "
            "the score, write a header that says so"
        )


#: What a comment starts with.
COMMENT: Final = "#"


def _split_trec_lines(path: Path, kind: Kind, text: str) -> Iterator[tuple[int, list[str]]]:
    """The number and the cells of each row; blank lines and comments are skipped.

    A line that starts with ``#`` is a comment. The tag of a run may hold blanks: it is whatever
    follows the first five columns.

    Args:
        path: For messages.
        kind: What the file holds.
        text: The file's text.

    Raises:
        DataError: A line starts with ``#`` and would be a row all the same, so that nobody can
            tell which of the two it is.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        cells = line.split()
        if not cells:
            continue
        if not cells[0].startswith(COMMENT):
            yield number, _join_tag(cells, kind)
        elif _fits_columns(_join_tag(cells, kind), kind):
            raise DataError(
                f"{path}:{number}: starts with '#' as a comment does, and has the columns of a "
                f"{kind}: delete the line, or, if the query id starts with '#', write a .tsv file "
                "with a header"
            )


def _join_tag(cells: list[str], kind: Kind) -> list[str]:
    """The cells with all words of the tag in one.

    A number where the tag begins speaks for an id with a blank, which moves every column behind
    it: then the cells stay as they are, too many.
    """
    width = len(COLUMNS[kind])
    if kind != "run" or len(cells) <= width or is_decimal(cells[width - 1]):
        return cells
    joined = [*cells[: width - 1], " ".join(cells[width - 1 :])]
    return joined if _fits_columns(joined, kind) else cells


def looks_like_trec(path: Path, kind: Kind, lines: Sequence[str]) -> bool:
    """Whether the first lines of a file are rows of a TREC file, or of an MS MARCO run.

    Args:
        path: For messages.
        kind: What the file should hold.
        lines: Its first lines.
    """
    rows = [cells for _, cells in _split_trec_lines(path, kind, "\n".join(lines))]
    return bool(rows) and all(_fits_columns(cells, kind) for cells in rows)


#: Bytes from which on importing pyarrow costs less than reading line by line.
LARGE_FILE = 1 << 20


@register_format("msmarco")
@register_format("trec", ".trec", ".txt", ".run", ".res", ".qrels", ".test", ".trunc")
def read_trec(path: Path, kind: Kind, *, has_ranks: bool, columns: ColumnNames) -> RawTable:
    """Read a TREC run or qrels file, or an MS MARCO run; skips blank lines and comments."""
    if columns:
        raise DataError(
            f"{path}: 'columns' names columns, and a TREC file has none: remove it, or write "
            "'format: csv' beside it if the file has a header"
        )
    data = read_bytes(path)
    if len(data) >= LARGE_FILE:
        table = _read_large(data, kind, has_ranks=has_ranks)
        if table is not None:
            return table
    lines = [*_split_trec_lines(path, kind, decode_text(path, data))]
    return _tabulate_cells(path, kind, lines)


def _read_large(data: bytes, kind: Kind, *, has_ranks: bool) -> RawTable | None:
    """The rows by pyarrow; None if the file has to be read line by line."""
    if data.startswith(b"#") or b"\n#" in data:
        return None  # a comment, or what may be one
    from fusion_bench.io.arrow_text import parse_regular_text

    if b" " not in data:
        data = data.replace(b"\t", b" ")
    names = _select_names(kind, len(data[: data.find(b"\n")].split()))
    if names == MS_MARCO:
        ranked = _check_ranked(parse_regular_text(data, names, "rank", has_ranks=False))
        scored = None if ranked else parse_regular_text(data, SCORED, "score", has_ranks=False)
        if scored is None or not (np.asarray(scored.values) % 1).any():
            return ranked
        return scored
    return parse_regular_text(data, names, VALUE_ROLES[kind], has_ranks=has_ranks)


def _check_ranked(table: RawTable | None) -> RawTable | None:
    """The rows of a run that has ranks and no scores, such as MS MARCO's, with its ranks.

    Returns:
        None if it has to be read line by line, if some query has no rank 1, or if the ranks fall
        along every list.
    """
    if table is None or not isinstance(table.queries, CategoricalIds):
        return None
    ranks = np.asarray(table.values)
    queries = np.unique(table.queries.codes[ranks == 1])
    if ranks.min() < 1 or len(queries) < len(table.queries.vocabulary):
        return None
    by_query = np.argsort(table.queries.codes, kind="stable")
    is_same = np.diff(table.queries.codes[by_query]) == 0
    steps = np.diff(ranks[by_query])[is_same]
    if len(steps) and (steps < 0).all():
        return None
    return replace(table, values=None, ranks=ranks)


DELIMITERS: Final = (",", ";", "\t", "|")
#: What may stand around a cell.
BLANKS: Final = " \t\r"


@register_format("tsv", ".tsv")
@register_format("csv", ".csv")
def read_delimited(path: Path, kind: Kind, *, has_ranks: bool, columns: ColumnNames) -> RawTable:
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
        return read_trec(path, kind, has_ranks=has_ranks, columns=columns)
    lines = list(_split_lines(path, text, delimiter))
    if not lines:
        return RawTable([], [], [], None, [])
    (number, header), *rows = lines
    if not columns and _is_data(header, kind):
        return _tabulate_cells(path, kind, lines)
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
    if delimiter in DECIMAL_COMMA_DELIMITERS and "value" in column:
        column["value"] = _read_decimal_commas(column["value"])
    return tabulate(column, [row_number for row_number, _ in rows], has_ranks=has_ranks)


#: Between cells of tables in which a comma may be that of a decimal number.
DECIMAL_COMMA_DELIMITERS: Final = (";", "\t")


def _read_decimal_commas(cells: list[str]) -> list[str]:
    """The numbers with points for their commas; as they are where any cell has a point."""
    if any("." in cell for cell in cells):
        return cells
    return [re.sub(r"^([+-]?\d*),(\d+)(?=$|[eE])", r"\1.\2", cell) for cell in cells]


def _is_data(cells: Sequence[str], kind: Kind) -> bool:
    """Whether a first line is no header, but that of a file in fixed columns."""
    return _fits_columns(cells, kind) and not _count_names(cells, kind, NO_COLUMNS)


def _find_delimiter(line: str, kind: Kind, columns: ColumnNames) -> str:
    """What splits the first line into most of the names, or into the cells of a TREC line."""

    def rate_delimiter(delimiter: str) -> tuple[int, bool, int]:
        try:
            (cells,) = csv.reader([line], delimiter=delimiter)
        except csv.Error:
            return 0, False, 0
        cells = [cell.strip() for cell in cells]
        return _count_names(cells, kind, columns), _fits_columns(cells, kind), len(cells)

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
    for number, last, row in read_csv_rows(path, text, delimiter):
        if last > number:
            raise DataError(
                f"{path}:{number}: a quoted cell runs on to line {last}: end it with "
                'a quotation mark, and write one that belongs to it twice, as in """a"""'
            )
        cells = [cell.strip(BLANKS) for cell in row]
        if len(cells) > 1 or any(cells):
            yield number, cells
