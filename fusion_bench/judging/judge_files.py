"""Grades of people in files: one file a judge, spreadsheets, one grade of several.

A spreadsheet computes a cell that begins with =, +, -, @ or a control character. It rewrites what
it takes for a number or a date: 007 becomes 7, and 12e5 becomes 1200000. Texts and ids come from
strangers, so an apostrophe stands before such a cell, and is taken away when it comes back.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from fusion_bench.data.qrels import Qrels
from fusion_bench.errors import DataError, FusionBenchError
from fusion_bench.io.dataset_config import DatasetSpec
from fusion_bench.io.load_records import load_qrels
from fusion_bench.io.raw_files import BYTE_ORDER_MARK, decode_text, read_bytes, read_csv_rows
from fusion_bench.judging.pools import Pair, PooledDocument
from fusion_bench.util.files import append_whole, has_locks, take_lock, write_atomic
from fusion_bench.util.formatting import escape_control_chars

#: Columns of a judge's file.
COLUMNS: Final = ("query", "document", "grade", "judge", "note", "time")
_JUDGE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Judgment:
    """A grade that a judge gave.

    Attributes:
        query: Id of the query.
        document: Id of the document.
        grade: 0 = not relevant.
        judge: The judge's name.
        note: What the judge remarked; empty = nothing.
        time: When, in UTC, as ISO 8601 writes it.
    """

    query: str
    document: str
    grade: int
    judge: str
    note: str = ""
    time: str = ""

    @property
    def pair(self) -> tuple[str, str]:
        """Query and document."""
        return self.query, self.document

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of its row, in the order of :data:`COLUMNS`."""
        return (self.query, self.document, str(self.grade), self.judge, self.note, self.time)


def format_time() -> str:
    """Now, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def check_judge(name: str) -> None:
    """Refuse a name that a judge's file cannot have.

    Raises:
        ValueError: It cannot.
    """
    if _JUDGE_NAME.fullmatch(name) is None:
        raise ValueError(
            f"{name[:80]!r} names no file: use letters, digits, '.', '_' and '-', at most 64, the "
            "first one a letter or digit"
        )


#: Folder beside the ``dataset.yaml``.
JUDGMENTS_FOLDER: Final = "judgments"


class JudgeFile:
    """The judgments of one judge.

    Judgments are appended, and reach the disk before the next document is shown. What is taken
    back is removed by writing the whole file anew. A line that was cut off in the middle, by a
    power cut or SIGKILL, is dropped when the file is read.

    Args:
        path: The file; it need not be there.
        judge: The judge's name.

    Raises:
        DataError: The file breaks a rule.
    """

    def __init__(self, path: Path, judge: str) -> None:
        self.path = path
        self.judge = judge
        self.judgments: dict[tuple[str, str], Judgment] = {}
        if path.exists():
            self._read()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from writing to it meanwhile.

        The lock is a hidden file beside it, removed in the end. The system releases the lock of a
        killed process.

        Raises:
            FusionBenchError: Another process has it, or it cannot be written.
        """
        if not self.path.exists():
            write_atomic(self.path, _format_rows([COLUMNS]))
        if not has_locks():  # pragma: no cover - not on POSIX systems
            yield
            return
        # A rewritten file is another one: the folder's own lock would serve all judges alike.
        place = self.path.with_name(f".{self.path.stem}.lock")
        place.touch()
        try:
            handle = take_lock(place)
        except FileNotFoundError:  # another process has just ended and removed it
            handle = None
        if handle is None:
            raise FusionBenchError(
                f"{self.path}: judge {self.judge!r} is judging in another process: end it, or take "
                "another name with --judge"
            )
        try:
            yield
        finally:
            place.unlink(missing_ok=True)
            os.close(handle)

    def add(self, judgment: Judgment) -> None:
        """Keep a judgment; an earlier one of the same document is replaced."""
        if judgment.pair in self.judgments:
            self.judgments[judgment.pair] = judgment
            self._rewrite()
            return
        if not self.path.exists():
            write_atomic(self.path, _format_rows([COLUMNS]))
        append_whole(self.path, _format_rows([judgment.cells]))
        self.judgments[judgment.pair] = judgment

    def add_all(self, judgments: Iterable[Judgment]) -> None:
        """Keep many judgments at once."""
        self.judgments |= {each.pair: each for each in judgments}
        self._rewrite()

    def remove(self, pair: tuple[str, str]) -> None:
        """Take a judgment back."""
        del self.judgments[pair]
        self._rewrite()

    def _rewrite(self) -> None:
        rows = (judgment.cells for judgment in self.judgments.values())
        write_atomic(self.path, _format_rows([COLUMNS, *rows]))

    def _read(self) -> None:
        whole, _, half_line = read_bytes(self.path).rpartition(b"\n")
        lines = _read_rows(self.path, decode_text(self.path, whole))
        _, header = next(lines, (1, list(COLUMNS)))
        if tuple(header) != COLUMNS:
            raise DataError(
                f"{self.path}:1: a judge's file begins with {','.join(COLUMNS)}, not "
                f"{','.join(header)[:80]!r}: name another judge with --judge"
            )
        for number, cells in lines:
            where = f"{self.path}:{number}"
            if len(cells) != len(COLUMNS):
                raise DataError(
                    f"{where}: {len(cells)} cells, and {len(COLUMNS)} columns: correct it"
                )
            query, document, grade, judge, note, time = cells
            if not (grade.isascii() and grade.isdigit() and len(grade) < 4):
                raise DataError(
                    f"{where}: grade {grade[:40]!r} is no whole number from 0: correct it"
                )
            if (query, document) in self.judgments:
                raise DataError(
                    f"{where}: document {document!r} of query {query!r} is judged twice: keep "
                    "one line"
                )
            judgment = Judgment(query, document, int(grade), judge, note, time)
            self.judgments[judgment.pair] = judgment
        if half_line:
            self._rewrite()


def _format_rows(rows: Iterable[Iterable[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _read_rows(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    table = csv.reader(io.StringIO(text), strict=True)
    try:
        for cells in table:
            yield table.line_num, cells
    except csv.Error as error:
        raise DataError(f"{path}:{table.line_num}: not comma-separated values: {error}") from None


def judge_files(dataset: Path) -> dict[str, Path]:
    """The files of all judges of a dataset, by name.

    Args:
        dataset: Its ``dataset.yaml``.
    """
    folder = dataset.parent / JUDGMENTS_FOLDER
    return {path.stem: path for path in sorted(folder.glob("*.csv"))}


def merge_qrels(qrels: Qrels, grades: Mapping[Pair, int]) -> Qrels:
    """The judgments of a dataset, with grades that replace what stands there.

    Args:
        qrels: The dataset's; queries without judgments stay.
        grades: By query and document; at least one where nothing is judged.
    """
    merged = {**pair_grades(qrels), **grades}
    queries, documents = zip(*merged, strict=True)
    return Qrels.from_rows(queries, documents, list(merged.values())).add_queries(qrels.queries)


def pair_grades(qrels: Qrels) -> dict[Pair, int]:
    """Query and document → grade."""
    nested = qrels.to_dict()
    return {(query, doc): grade for query, row in nested.items() for doc, grade in row.items()}


def find_named_files(path: Path, spec: DatasetSpec) -> set[Path]:
    """The files of grades that the ``dataset.yaml`` names, resolved.

    Args:
        path: The ``dataset.yaml``.
        spec: What it says.
    """
    files = [*spec.judges.values(), *([] if spec.qrels is None else [spec.qrels])]
    return {(path.parent / each.path).resolve() for each in files}


def list_unnamed_files(path: Path, spec: DatasetSpec) -> dict[str, Path]:
    """Files of ``judgments/`` with grades that the ``dataset.yaml`` does not name, by judge.

    Args:
        path: The ``dataset.yaml``.
        spec: What it says.
    """
    named = find_named_files(path, spec)
    return {
        name: file
        for name, file in judge_files(path).items()
        if file.resolve() not in named and _holds_grades(file)
    }


def _holds_grades(path: Path) -> bool:
    """Whether grades can be read there."""
    try:
        return load_qrels(path).grades.size > 0
    except FusionBenchError:  # a spreadsheet to fill in, or a file without a line yet
        return False


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
        # A spreadsheet reads a cell that starts so as a formula.
        writer.writerow([(f"'{cell}" if CHANGED.match(cell) else cell) for cell in cells])
    text = sheet.getvalue()
    return text if text.isascii() else BYTE_ORDER_MARK + text


def read_sheet(
    path: Path, judge: str, greatest: int, documents: Mapping[str, Collection[str]]
) -> list[Judgment]:
    """The grades of a sheet; rows without a grade are not judged yet.

    Args:
        path: The sheet.
        judge: Whose grades they are.
        greatest: The greatest grade.
        documents: Query → the documents that a list returns for it.

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
        raise DataError(f"{path}:{number}: column {repeated!r} appears twice: keep one")
    time, lines = format_time(), dict[Pair, int]()
    judgments = []
    for number, cells in rows:
        where = f"{path}:{number}"
        if len(cells) != len(names):
            raise DataError(f"{where}: {len(cells)} cells, and the header has {len(names)}")
        row = dict(zip(names, map(_unprotect, cells), strict=True))
        if not row["grade"].strip():
            continue
        grade = _parse_grade(row, greatest, documents, where)
        note = _one_line(row.get("note", ""))[:MOST_NOTE]
        judgment = Judgment(row["query"], row["document"], grade, judge, note, time)
        if judgment.pair in lines:
            raise DataError(
                f"{where}: document {judgment.document!r} of query {judgment.query!r} is judged "
                f"twice, first in line {lines[judgment.pair]}: keep one"
            )
        lines[judgment.pair] = number
        judgments.append(judgment)
    return judgments


def _parse_grade(
    row: Mapping[str, str], greatest: int, documents: Mapping[str, Collection[str]], where: str
) -> int:
    query, document, grade = row["query"], row["document"], row["grade"].strip()
    if query not in documents:
        raise DataError(f"{where}: unknown query {query[:200]!r}: no list has it")
    if document not in documents[query]:
        raise DataError(f"{where}: no list returns document {document[:200]!r} for query {query!r}")
    is_number = re.fullmatch(r"[0-9]{1,3}(\.0+)?", grade) is not None  # a spreadsheet may add .0
    if not is_number or int(float(grade)) > greatest:
        raise DataError(f"{where}: grade {grade[:40]!r} is no whole number from 0 to {greatest}")
    return int(float(grade))


def _read_cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The number of the first line of each row, and its cells; a spreadsheet may use ``;``."""
    data = read_bytes(path)
    if data.startswith(WORKBOOK):
        raise DataError(f"{path}: a workbook, and no CSV: save it as 'CSV UTF-8'")
    try:
        text = decode_text(path, data)
    except DataError as error:
        raise DataError(f"{error}; a spreadsheet program saves it as 'CSV UTF-8'") from None
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    for number, _, cells in read_csv_rows(path, text, delimiter):
        if any(cell.strip() for cell in cells):
            yield number, cells


def _one_line(text: str) -> str:
    return escape_control_chars(" ".join(text.split()))


def _unprotect(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and CHANGED.match(cell[1:]) else cell
