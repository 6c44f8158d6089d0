"""TREC files: columns between blanks.

A run has six, ``query Q0 document rank score tag``; qrels have four, ``query 0 document grade``.
"""

from __future__ import annotations

from pathlib import Path

from fusion_bench.errors import DataError
from fusion_bench.load._rows import Kind, Rows, read_text, reader

__all__ = ["rows_of_lines"]

COLUMNS = {"run": "query Q0 document rank score tag", "qrels": "query 0 document grade"}


@reader(".trec", ".txt", ".run", ".res", ".qrels", ".test", ".trunc")
def read(path: Path, kind: Kind) -> Rows:
    """Read a TREC run or qrels file; blank lines are skipped."""
    return rows_of_lines(path, kind, read_text(path))


def rows_of_lines(path: Path, kind: Kind, text: str) -> Rows:
    """The rows of a file's text; every line must have the columns of its kind."""
    lines = [line.split() for line in text.split("\n")]
    wanted = len(COLUMNS[kind].split())
    for number, columns in enumerate(lines, start=1):
        if columns and len(columns) != wanted:
            raise DataError(
                f"{path}:{number}: {len(columns)} columns, and a TREC {kind} has {wanted}: "
                f"{COLUMNS[kind]}"
            )
    rows = [columns for columns in lines if columns]
    numbers = [number for number, columns in enumerate(lines, start=1) if columns]
    return Rows(
        queries=[columns[0] for columns in rows],
        documents=[columns[2] for columns in rows],
        values=[columns[4 if kind == "run" else 3] for columns in rows],
        ranks=[columns[3] for columns in rows] if kind == "run" else None,
        lines=numbers,
    )
