"""Judging in a spreadsheet: the pool out as comma-separated values, grades back in.

A spreadsheet computes a cell that begins with =, +, -, @ or a control character. It rewrites what
it takes for a number or a date: 007 becomes 7, and 12e5 becomes 1200000. Texts and ids come from
strangers, so an apostrophe stands before such a cell, and is taken away when it comes back.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fusion_bench.errors import DataError
from fusion_bench.io.raw_files import decode_text, read_bytes
from fusion_bench.judging.judge_files import Judgment, format_time
from fusion_bench.judging.pools import Pair, PooledDocument
from fusion_bench.util.formatting import escape_control_chars

#: Columns of the sheet; ``grade`` and ``note`` are for the judge to fill in.
SHEET_COLUMNS: Final = ("query", "query_text", "document", "document_text", "grade", "note")
#: What must be there when it comes back.
REQUIRED: Final = ("query", "document", "grade")
#: What a spreadsheet takes for a formula, or for a number or date that it writes in its own way,
#: and apostrophes before it. Whole numbers of at most 15 digits stay as they are.
CHANGED: Final = re.compile(
    r"'*(?:[=+\-@\t\r\n]|(?!(?:0|[1-9][0-9]{0,14})\Z)[0-9][0-9.,eE+\-/: ]*\Z)"
)
MOST_NOTE: Final = 1000
#: Without it Excel takes a file for one in the code page of its country.
BYTE_ORDER_MARK: Final = "\ufeff"
#: How a workbook (.xlsx, .ods) begins, which is a ZIP archive.
WORKBOOK: Final = b"PK\x03\x04"


def render_sheet(
    documents: Sequence[PooledDocument],
    queries: Mapping[str, str],
    texts: Mapping[str, str],
    judgments: Mapping[Pair, Judgment],
) -> str:
    """The documents to judge as a table, without ranks or names of systems.

    Args:
        documents: In the order to judge them.
        queries: Query id → text; a query may lack one.
        texts: Document id → text; likewise.
        judgments: What the judge has said already, which stands in its place.
    """
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\n")
    writer.writerow(SHEET_COLUMNS)
    for each in documents:
        known = judgments.get(each.pair)
        grade, note = ("", "") if known is None else (str(known.grade), known.note)
        texts_of_row = (queries.get(each.query, ""), texts.get(each.document, ""))
        query_text, text = map(_one_line, texts_of_row)
        cells = (each.query, query_text, each.document, text, grade, note)
        writer.writerow([_protect(cell) for cell in cells])
    text = sheet.getvalue()
    return text if text.isascii() else BYTE_ORDER_MARK + text


@dataclass(frozen=True)
class SheetRules:
    """What a sheet may hold.

    Attributes:
        judge: Whose grades they are.
        greatest: The greatest grade.
        documents: Query → the documents that a list returns for it.
    """

    judge: str
    greatest: int
    documents: Mapping[str, Collection[str]]


def read_sheet(path: Path, rules: SheetRules) -> list[Judgment]:
    """The grades of a sheet; rows without a grade are not judged yet.

    Raises:
        DataError: No such column, or with its line: a grade beyond the scale, a query or a document
            that no list has, or a document that is judged twice.
    """
    rows = _read_cells(path)
    number, header = next(rows, (1, []))
    names = [cell.strip().lower() for cell in header]
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise DataError(
            f"{path}:{number}: no column {missing[0]!r} (the first line has "
            f"{', '.join(names)[:200] or 'nothing'}): {', '.join(REQUIRED)} are needed"
        )
    repeated = next((name for name in (*REQUIRED, "note") if names.count(name) > 1), None)
    if repeated is not None:
        raise DataError(f"{path}:{number}: column {repeated!r} stands twice: keep one")
    time, lines = format_time(), dict[Pair, int]()
    judgments = []
    for number, cells in rows:
        where = f"{path}:{number}"
        if len(cells) != len(names):
            raise DataError(f"{where}: {len(cells)} cells, and the header has {len(names)}")
        row = dict(zip(names, map(_unprotect, cells), strict=True))
        if not row["grade"].strip():
            continue
        judgment = _parse_row(row, rules, time, where)
        if judgment.pair in lines:
            raise DataError(
                f"{where}: document {judgment.document!r} of query {judgment.query!r} is judged "
                f"twice, first in line {lines[judgment.pair]}: keep one"
            )
        lines[judgment.pair] = number
        judgments.append(judgment)
    return judgments


def _parse_row(row: Mapping[str, str], rules: SheetRules, time: str, where: str) -> Judgment:
    query, document, grade = row["query"], row["document"], row["grade"].strip()
    if query not in rules.documents:
        raise DataError(f"{where}: unknown query {query[:200]!r}: no list has it")
    if document not in rules.documents[query]:
        raise DataError(f"{where}: no list returns document {document[:200]!r} for query {query!r}")
    is_number = re.fullmatch(r"[0-9]{1,3}(\.0+)?", grade) is not None  # a spreadsheet may add .0
    if not is_number or int(float(grade)) > rules.greatest:
        raise DataError(
            f"{where}: grade {grade[:40]!r} is no whole number from 0 to {rules.greatest}"
        )
    note = _one_line(row.get("note", ""))[:MOST_NOTE]
    return Judgment(query, document, int(float(grade)), rules.judge, note, time)


def _read_cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The number of the first line of each row, and its cells; a spreadsheet may use ``;``."""
    text = _read_text(path)
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    table, before = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True), 0
    try:
        for cells in table:
            number, before = before + 1, table.line_num
            if any(cell.strip() for cell in cells):
                yield number, cells
    except csv.Error as error:
        raise DataError(f"{path}:{before + 1}: not a table of cells: {error}") from None


def _read_text(path: Path) -> str:
    """The text of a sheet.

    Raises:
        DataError: It is a workbook, or not UTF-8.
    """
    data = read_bytes(path)
    if data.startswith(WORKBOOK):
        raise DataError(f"{path}: a workbook, and no CSV: save it as 'CSV UTF-8'")
    try:
        return decode_text(path, data)
    except DataError as error:
        raise DataError(f"{error}; a spreadsheet program saves it as 'CSV UTF-8'") from None


def _one_line(text: str) -> str:
    return escape_control_chars(" ".join(text.split()))


def _protect(cell: str) -> str:
    return f"'{cell}" if CHANGED.match(cell) else cell


def _unprotect(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and CHANGED.match(cell[1:]) else cell
