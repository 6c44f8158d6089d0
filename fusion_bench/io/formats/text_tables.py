"""Tables of text: the columns of TREC and MS MARCO, CSV and TSV.

A TREC run has six columns between blanks or tabs, ``query Q0 document rank score tag``; qrels have
four, ``query 0 document grade``. A run may have three: ``query document rank`` as MS MARCO's. A tag
may hold blanks. Lines that start with ``#`` are comments.

Other tables have cells between commas, semicolons, tabs or bars, mostly with a header. In a table
without one, ``columns`` count from 1.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.document_rows import ID_ROLES, VALUE_ROLES
from fusion_bench.data.grouped_rows import CategoricalIds, encode_ids
from fusion_bench.data.ordering import IntArray
from fusion_bench.errors import DataError
from fusion_bench.io.formats._base import (
    Attempt,
    complete_table,
    find_columns,
    find_steps,
    format_columns,
    match_columns,
    propose_columns,
    register_format,
    settle_rivals,
)
from fusion_bench.io.raw_files import (
    BYTE_ORDER_MARK,
    JOINED,
    NO_COLUMNS,
    ColumnNames,
    Kind,
    RawTable,
    decode_text,
    read_bytes,
    read_csv_rows,
    read_text,
    refuse_text,
    tabulate,
)
from fusion_bench.util.formatting import is_decimal, is_whole, pluralize

COLUMNS: Final[dict[Kind, tuple[str, ...]]] = {
    "run": ("query", "Q0", "document", "rank", "score", "tag"),
    "qrels": ("query", "0", "document", "grade"),
}
#: Source: the passage ranking task of MS MARCO, https://microsoft.github.io/msmarco/
MS_MARCO: Final = ("query", "document", "rank")
#: Numbered lines, each split into its cells.
Lines: TypeAlias = Sequence[tuple[int, list[str]]]


def _count_columns(columns: ColumnNames) -> dict[str, int]:
    """Role → the place of its column, from 0; empty if ``columns`` has names, not numbers."""
    are_numbers = all(re.fullmatch("[1-9][0-9]?", name) for name in columns.values())
    return {role: int(number) - 1 for role, number in columns.items()} if are_numbers else {}


def _select_names(
    kind: Kind, width: int, where: str = "", columns: ColumnNames = NO_COLUMNS
) -> tuple[str, ...]:
    """The columns of a file whose first line has so many cells.

    Raises:
        DataError: ``columns`` counts more of them, or leaves one out that is needed.
    """
    usual = MS_MARCO if kind == "run" and width == len(MS_MARCO) else COLUMNS[kind]
    chosen = _count_columns(columns)
    if not chosen:
        return usual
    places = dict(zip(usual, range(width), strict=True)) if width == len(usual) else {}
    places = {role: at for role, at in places.items() if at not in chosen.values()} | chosen
    value = VALUE_ROLES[kind]
    needed = (*ID_ROLES, "rank" if value not in places and "rank" in places else value)
    missing = [role for role in needed if role not in places]
    if missing or max(chosen.values()) >= width:
        what = f"{' and '.join(missing)} too" if missing else f"a number up to {width}"
        raise DataError(
            f"{where}: columns: {format_columns(columns)}, and the first line has {width} columns "
            f"and no header: give {what}"
        )
    by_place = {at: role for role, at in places.items()}
    return tuple(by_place.get(at, f"column {at + 1}") for at in range(width))


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


def _tabulate_cells(
    path: Path, kind: Kind, lines: Lines, columns: ColumnNames, attempt: Attempt
) -> RawTable:
    """The rows of numbered lines; the first decides which columns there are.

    Args:
        path: For messages.
        kind: What the file holds.
        lines: Number and cells of each.
        columns: What a column holds → its number.
        attempt: Reads the file again by other columns.

    Raises:
        DataError: A line has more columns, or fewer; or what should be ranks is none.
    """
    if not lines:
        return RawTable([], [], [], None, [])
    first, cells = lines[0]
    names = _select_names(kind, len(cells), f"{path}:{first}", columns)
    for number, row in lines:
        if len(row) != len(names):
            remedy = "" if number != first else f": {_propose_numbers(row, kind, attempt)}"
            if columns:
                what = f"the first line has {len(names)}"
            elif names == MS_MARCO:
                what = "the first line has 3: query, document, and a rank or a score"
            else:
                what = f"a TREC {kind} has {len(names)}: {' '.join(names)}"
            raise DataError(f"{path}:{number}: {pluralize(len(row), 'column')}, and {what}{remedy}")
    column = dict(zip(names, zip(*(cells for _, cells in lines), strict=True), strict=True))
    value = VALUE_ROLES[kind]
    if kind == "run" and not columns:
        check = _check_third_column if names == MS_MARCO else _check_ranks
        check(path, kind, lines, column, attempt)
    if value in column:
        column["value"] = column.pop(value)
    return tabulate(column, [number for number, _ in lines])


def _propose_numbers(cells: Sequence[str], kind: Kind, attempt: Attempt) -> str:
    """What to do about a first line that is no header and has other columns than are known."""
    document = 3 if len(cells) > 3 and cells[1].lower() in {"q0", "0"} else 2
    others: tuple[Kind, str] = ("qrels", "judgments") if kind == "run" else ("run", "a ranked list")
    if document == 3 and _fits_columns(cells, others[0]):
        return f"the file has the columns of {others[1]}"
    numbers = [at for at, cell in enumerate(cells, start=1) if is_decimal(cell) and at > document]
    if kind == "run" and len(numbers) > 1:  # the best rank is no score
        numbers = [at for at in numbers if cells[at - 1] not in {"0", "1"}]
    guess = {
        "query": "1",
        "document": str(document),
        VALUE_ROLES[kind]: str(max(numbers, default=0)),
    }
    header = f"add a header that names the columns, such as query,document,{VALUE_ROLES[kind]}"
    return propose_columns([guess] if len(numbers) == 1 else [], attempt, kind, header)


def _check_third_column(
    path: Path, kind: Kind, lines: Lines, column: Mapping[str, Sequence[str]], attempt: Attempt
) -> None:
    """Refuse a third column of three that scores may be.

    Raises:
        DataError: The order of such a file could be turned round.
    """
    for (number, _), cell in zip(lines, column["rank"], strict=True):
        if not is_decimal(cell):
            raise DataError(
                f"{path}:{number}: the third column of three, {cell!r}, is neither a rank nor a "
                "score: add a header that names the columns"
            )
    ranks = np.array(column["rank"], dtype=np.float64)
    are_digits = all(cell.isdigit() for cell in column["rank"])
    if not (are_digits and _are_only_ranks(encode_ids(column["query"]).codes, ranks)):
        readings = [propose_columns([{role: "3"}], attempt, kind, "") for role in ("score", "rank")]
        remedy = "; or ".join(filter(None, readings)) or "add a header that names the columns"
        raise DataError(
            f"{path}: the third column of three has ranks only if each query has 1, 2, …, n, each "
            f"once, and not in falling order: declare ranks or scores: {remedy}"
        )


def _check_ranks(
    path: Path, kind: Kind, lines: Lines, column: Mapping[str, Sequence[str]], attempt: Attempt
) -> None:
    """Refuse a TREC run whose ranks stand elsewhere, as behind an id with a blank.

    Raises:
        DataError: A rank is not a whole number, or the scores are ranks.
    """
    ranks, scores = column["rank"], column["score"]
    wrong = {rank for rank in set(ranks) if not is_whole(rank)}
    if wrong:
        row = next(row for row, rank in enumerate(ranks) if rank in wrong)
        problem = f":{lines[row][0]}: rank {ranks[row]!r} is not a whole number"
    elif all(map(is_whole, set(scores))) and _are_swapped(column):
        problem = ": the scores are 1, 2, …, n in each query, as ranks are"
    else:
        return
    otherwise = "if an id has blanks, write a .tsv file with a header"
    remedy = propose_columns([{"rank": "5", "score": "4"}], attempt, kind, otherwise)
    raise DataError(f"{path}{problem}, and the columns are {' '.join(COLUMNS[kind])}: {remedy}")


def _are_swapped(column: Mapping[str, Sequence[str]]) -> bool:
    """Whether the scores are ranks, and the ranks are none or the tags seem to be the scores.

    Scores n, …, 1 in falling order are points, and a rank column of one number is no score.
    """
    queries, tags = encode_ids(column["query"]).codes, set(column["tag"])
    ranks, scores = (np.array(column[name], dtype=np.float64) for name in ("rank", "score"))
    if len(queries) == queries.max() + 1 or not _are_only_ranks(queries, scores):
        return False
    is_ranked = any(_are_ranks(queries, ranks, first) for first in (0, 1))
    is_unranked = not is_ranked and bool((ranks != ranks[0]).any())
    return is_unranked or (len(tags) > 1 and all(map(is_decimal, tags)))


def _are_ranks(queries: IntArray, ranks: NDArray[np.number], first: int = 1) -> bool:
    """Whether each query has all ranks from the first to that of its last row, each once."""
    counts = np.bincount(queries)
    if (ranks < first).any() or (ranks - first >= counts[queries]).any():
        return False
    if ranks.dtype.kind == "f" and (ranks % 1).any():
        return False
    places = (np.cumsum(counts) - counts)[queries] + ranks.astype(np.int64) - first
    return bool((np.bincount(places, minlength=len(places)) == 1).all())


def _are_only_ranks(queries: IntArray, ranks: NDArray[np.number]) -> bool:
    """Whether a third column has ranks: if it falls along every list, it may have scores."""
    if not _are_ranks(queries, ranks):
        return False
    if ranks[0] == 1 and np.count_nonzero(queries == queries[0]) > 1:
        return True  # this list rises
    steps = find_steps(queries, ranks)
    return not len(steps) or bool((steps > 0).any())


#: What a comment starts with.
COMMENT: Final = "#"
#: What separates words or lines for Python and others, but no columns of a TREC file.
SEPARATORS: Final = (
    "\v\f\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008"
    "\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


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
            tell which of the two it is; or a line holds two rows, or what ends a line elsewhere.
    """
    refuse_text(path, text, BYTE_ORDER_MARK, JOINED)
    for separator in SEPARATORS:
        refuse_text(path, text, separator, "only blanks and tabs separate columns")
    alone = re.search(r"\r+(?![\r\n]|\Z)", text)
    if alone is not None:
        at = text.count("\n", 0, alone.start()) + 1
        raise DataError(f"{path}:{at}: a line ends with CR alone: convert the line ends to LF")
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.split()
        if not words:
            continue
        cells, width = words, len(COLUMNS[kind])
        # A number where the tag begins speaks for an id with a blank, which moves the columns.
        if kind == "run" and len(words) > width and not is_decimal(words[width - 1]):
            joined = [*words[: width - 1], " ".join(words[width - 1 :])]  # a tag with blanks
            cells = joined if _fits_columns(joined, kind) else words
        if words[0].startswith(COMMENT):
            if _fits_columns(cells, kind):
                raise DataError(
                    f"{path}:{number}: starts with '#' as a comment does, and has the columns of a "
                    f"{kind}: delete the line, or, if the query id starts with '#', write a .tsv "
                    "file with a header"
                )
            continue
        behind = words[width - 1 :] if len(cells) < len(words) else []
        if any(is_whole(rank) and is_decimal(score) for rank, score in pairwise(behind)):
            raise DataError(
                f"{path}:{number}: two rows in one line, as if two files were joined without a "
                "line end between them: break the line"
            )
        yield number, cells


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
def read_trec(
    path: Path, kind: Kind, *, has_ranks: bool, columns: ColumnNames, encoding: str | None = None
) -> RawTable:
    """Read a TREC run or qrels file, or an MS MARCO run; skips blank lines and comments.

    A file whose first line names the columns of queries and documents is read as CSV.
    """
    data = read_bytes(path)
    if len(data) >= LARGE_FILE and encoding is None:
        table = _read_large(data, kind, has_ranks=has_ranks, columns=columns)
        if table is not None:
            return table
    text = decode_text(path, data, encoding)
    line = _take_first_line(text)
    header = _split_line(line, _find_delimiter(line, kind, columns))
    present = {role: name for role, name in columns.items() if name in header}
    is_header = len(match_columns(header, ID_ROLES, "", present)) == len(ID_ROLES)
    if is_header and not _fits_columns(line.split(), kind):
        return _read_cells(path, kind, text, has_ranks=has_ranks, columns=columns)
    if columns and not _count_columns(columns):
        raise DataError(
            f"{path}: 'columns' names columns, and a TREC file has none: remove it, or give the "
            "numbers of the columns, from 1"
        )

    def attempt(others: ColumnNames) -> RawTable:
        return read_trec(path, kind, has_ranks=has_ranks, columns=others, encoding=encoding)

    lines = [*_split_trec_lines(path, kind, text)]
    return _tabulate_cells(path, kind, lines, columns, attempt)


def _read_large(
    data: bytes, kind: Kind, *, has_ranks: bool, columns: ColumnNames
) -> RawTable | None:
    """The rows by pyarrow; None if the file has to be read line by line."""
    if data.startswith(b"#") or b"\n#" in data:
        return None  # a comment, or what may be one
    from fusion_bench.io.arrow_text import parse_regular_text

    if b" " not in data:
        data = data.replace(b"\t", b" ")
    try:
        names = _select_names(kind, len(data[: data.find(b"\n")].split()), "", columns)
    except DataError:
        return None
    table = parse_regular_text(data, names, VALUE_ROLES[kind])
    if table is None or columns:
        return table
    queries, scores = cast("CategoricalIds", table.queries).codes, np.asarray(table.values)
    if names == MS_MARCO:
        return table if _are_only_ranks(queries, np.asarray(table.ranks)) else None
    if kind == "run" and scores[0] % 1 == 0 and _are_ranks(queries, scores):
        return None  # the ranks may be where the scores belong
    return table if has_ranks else replace(table, ranks=None)


DELIMITERS: Final = (",", ";", "\t", "|", " ")
#: A first line in which Excel states the delimiter.
EXCEL_DELIMITER: Final = re.compile(r"sep=.\r?", re.IGNORECASE)
#: What may stand around a cell.
BLANKS: Final = " \t\r"


@register_format("tsv", ".tsv")
@register_format("csv", ".csv")
def read_delimited(
    path: Path, kind: Kind, *, has_ranks: bool, columns: ColumnNames, encoding: str | None = None
) -> RawTable:
    """Read a table whose first line names its columns; BEIR's qrels are one.

    The delimiter is the one that splits the header into the names that are looked for. A file
    without a header is read if its first line holds what a TREC file or an MS MARCO run does,
    numbers included, or if ``columns`` has the numbers of its columns.
    """
    text = read_text(path, encoding)
    first = _take_first_line(text)
    delimiter = _find_delimiter(first, kind, columns)
    is_split_by_blanks = (
        delimiter == " " or (delimiter == "\t" and " " not in text) or delimiter not in first
    )
    cells = first.split()
    is_named = columns or _count_names(cells, kind, NO_COLUMNS)
    is_data = not is_named and _fits_columns(cells, kind)
    if is_split_by_blanks and (is_data or _count_columns(columns)):
        return read_trec(path, kind, has_ranks=has_ranks, columns=columns, encoding=encoding)
    return _read_cells(path, kind, text, has_ranks=has_ranks, columns=columns)


def _take_first_line(text: str) -> str:
    """The first line that is not blank; empty if there is none."""
    lines = (match[0] for match in re.finditer(r"[^\n]*\S[^\n]*", text))
    return next((line for line in lines if not EXCEL_DELIMITER.fullmatch(line)), "")


def _read_cells(
    path: Path, kind: Kind, text: str, *, has_ranks: bool, columns: ColumnNames
) -> RawTable:
    """The rows of a text of cells."""
    refuse_text(path, text, BYTE_ORDER_MARK, JOINED)

    def attempt(others: ColumnNames) -> RawTable:
        return _read_cells(path, kind, text, has_ranks=has_ranks, columns=others)

    delimiter = _find_delimiter(_take_first_line(text), kind, columns)
    lines = list(_split_lines(path, text, delimiter))
    if not lines:
        return RawTable([], [], [], None, [])
    (number, header), *rows = lines
    where = f"{path}:{number}"
    is_named = _count_names(header, kind, NO_COLUMNS) > 0
    if not is_named and (_count_columns(columns) if columns else _fits_columns(header, kind)):
        return _tabulate_cells(path, kind, lines, columns, attempt)
    if not _count_names(header, kind, columns):
        for cell in header:
            if re.fullmatch(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?", cell, re.IGNORECASE):
                raise DataError(
                    f"{where}: the first line is no header, since {cell!r} names no column: "
                    f"{_propose_numbers(header, kind, attempt)}"
                )
    names = find_columns(header, kind, where, columns, allows_pairs=True, attempt=attempt)
    _fit_rows(path, rows, header)

    def read(name: str) -> list[str]:
        at = header.index(name)
        return [row[at] for _, row in rows]

    column: dict[str, Sequence[str]] = {role: read(name) for role, name in names.items()}
    numbers = [row_number for row_number, _ in rows]
    notes = settle_rivals(header, names, kind, where, columns, read)
    if delimiter in DECIMAL_COMMA_DELIMITERS and "value" in column:
        column["value"] = _read_decimal_commas(path, numbers, column["value"])
    table = tabulate(column, numbers, has_ranks=has_ranks)
    return complete_table(table, kind, where, names, notes)


def _fit_rows(path: Path, rows: Lines, header: Sequence[str]) -> None:
    """Cut blank cells beyond those of the header off each row.

    Raises:
        DataError: A row has more cells than the header, or fewer.
    """
    for number, row in rows:
        if len(row) > len(header) and not any(row[len(header) :]):
            del row[len(header) :]
        if len(row) != len(header):
            raise DataError(
                f"{path}:{number}: {pluralize(len(row), 'column')}, and the header names "
                f"{len(header)}: {', '.join(header)}"
            )


#: Between cells of tables in which a comma may be that of a decimal number.
DECIMAL_COMMA_DELIMITERS: Final = (";", "\t")
#: What may be thousands, if whole numbers stand beside it.
THOUSANDS: Final = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+", re.ASCII)


def _read_decimal_commas(path: Path, lines: Sequence[int], cells: Sequence[str]) -> Sequence[str]:
    """The numbers with points for their commas; as they are where any cell has a point.

    Raises:
        DataError: Each comma may separate thousands, and other cells are whole numbers.
    """
    commas = [at for at, cell in enumerate(cells) if "," in cell]
    if not commas or any("." in cell for cell in cells):
        return cells
    has_whole = any("," not in cell and cell.strip("+-0") for cell in cells)
    if has_whole and all(THOUSANDS.fullmatch(cells[at]) for at in commas):
        raise DataError(
            f"{path}:{lines[commas[0]]}: {cells[commas[0]]!r} may be thousands or a decimal "
            "number, as other numbers have no comma: write the numbers without commas"
        )
    return [re.sub(r"^([+-]?\d*),(\d+)(?=$|[eE])", r"\1.\2", cell) for cell in cells]


def _find_delimiter(line: str, kind: Kind, columns: ColumnNames) -> str:
    """What splits the first line into most of the names, or into the cells of a TREC line."""

    def rate_delimiter(delimiter: str) -> tuple[int, bool, int]:
        cells = _split_line(line, delimiter)
        return _count_names(cells, kind, columns), _fits_columns(cells, kind), len(cells)

    return max(DELIMITERS, key=rate_delimiter)  # the first of equals


def _split_line(line: str, delimiter: str) -> list[str]:
    """The cells of a line; none if it is no line of a table."""
    try:
        (cells,) = csv.reader([line], delimiter=delimiter, skipinitialspace=delimiter == " ")
    except csv.Error:
        return []
    return [cell.strip() for cell in cells]


def _count_names(header: Sequence[str], kind: Kind, columns: ColumnNames) -> int:
    """How many of the columns that are looked for a header names."""
    present = {role: name for role, name in columns.items() if name in header}
    return len(match_columns(header, (*ID_ROLES, VALUE_ROLES[kind]), "", present))


def _split_lines(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Each line with a cell that is not blank: its number and its cells, without blanks around."""
    for number, last, row in read_csv_rows(path, text, delimiter):
        if last > number:
            raise DataError(
                f"{path}:{number}: a quoted cell runs on to line {last}: end it with "
                'a quotation mark, and write one that belongs to it twice, as in """a"""'
            )
        cells = [cell.strip(BLANKS) for cell in row]
        is_stated = number == 1 and EXCEL_DELIMITER.fullmatch(text.partition("\n")[0])
        if any(cells) and not is_stated:
            yield number, cells
