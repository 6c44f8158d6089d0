"""The file of one judge: comma-separated values, a line a judgment, written after every key."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fusion_bench.errors import DataError, FusionBenchError
from fusion_bench.io.file_bytes import read_bytes
from fusion_bench.judge.files.judgment import COLUMNS, Judgment
from fusion_bench.util.files.atomic_files import append_whole, write_atomic
from fusion_bench.util.files.file_locks import has_locks, take_lock

#: Folder beside the ``dataset.yaml``.
FOLDER: Final = "judgments"


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
        lines = _read_rows(self.path, _decode(self.path, whole))
        _, header = next(lines, (1, list(COLUMNS)))
        if tuple(header) != COLUMNS:
            raise DataError(
                f"{self.path}:1: a judge's file begins with {','.join(COLUMNS)}, not "
                f"{','.join(header)[:80]!r}: name another judge with --judge"
            )
        for number, cells in lines:
            judgment = _parse_row(cells, f"{self.path}:{number}")
            if judgment.pair in self.judgments:
                raise DataError(
                    f"{self.path}:{number}: document {judgment.document!r} of query "
                    f"{judgment.query!r} is judged twice: keep one line"
                )
            self.judgments[judgment.pair] = judgment
        if half_line:
            self._rewrite()


def _format_rows(rows: Iterable[Iterable[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _decode(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 at byte {error.start}: save it as UTF-8") from None


def _read_rows(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    table = csv.reader(io.StringIO(text), strict=True)
    try:
        for cells in table:
            yield table.line_num, cells
    except csv.Error as error:
        raise DataError(f"{path}:{table.line_num}: not comma-separated values: {error}") from None


def _parse_row(cells: list[str], where: str) -> Judgment:
    if len(cells) != len(COLUMNS):
        raise DataError(f"{where}: {len(cells)} cells, and {len(COLUMNS)} columns: correct it")
    query, document, grade, judge, note, time = cells
    if not (grade.isascii() and grade.isdigit() and len(grade) < 4):
        raise DataError(f"{where}: grade {grade[:40]!r} is no whole number from 0: correct it")
    return Judgment(query, document, int(grade), judge, note, time)


def judge_files(dataset: Path) -> dict[str, Path]:
    """The files of all judges of a dataset, by name.

    Args:
        dataset: Its ``dataset.yaml``.
    """
    folder = dataset.parent / FOLDER
    return {path.stem: path for path in sorted(folder.glob("*.csv"))}


def judge_path(dataset: Path, judge: str) -> Path:
    """The file of one judge of a dataset."""
    return dataset.parent / FOLDER / f"{judge}.csv"
