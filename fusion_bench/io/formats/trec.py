"""TREC files: columns between blanks.

A run has six, ``query Q0 document rank score tag``; qrels have four, ``query 0 document grade``.
"""

from __future__ import annotations

from pathlib import Path

from fusion_bench.errors import DataError
from fusion_bench.io.file_bytes import decode_text, read_bytes
from fusion_bench.io.formats._base import register_format
from fusion_bench.io.raw_table import Kind, RawTable

COLUMNS = {
    "run": ("query", "Q0", "document", "rank", "score", "tag"),
    "qrels": ("query", "0", "document", "grade"),
}
#: Bytes from which on importing pyarrow costs less than reading line by line.
LARGE_FILE = 1 << 20


@register_format("trec", ".trec", ".txt", ".run", ".res", ".qrels", ".test", ".trunc")
def read_table(path: Path, kind: Kind, *, has_ranks: bool) -> RawTable:
    """Read a TREC run or qrels file; blank lines are skipped."""
    data = read_bytes(path)
    if len(data) >= LARGE_FILE:
        from fusion_bench.io.arrow_text import parse_regular_text

        value = "score" if kind == "run" else "grade"
        table = parse_regular_text(data, COLUMNS[kind], value, has_ranks=has_ranks)
        if table is not None:
            return table
    return read_lines(path, kind, decode_text(path, data))


def read_lines(path: Path, kind: Kind, text: str) -> RawTable:
    """The rows of a file's text; every line must have the columns of its kind.

    Raises:
        DataError: A line has more columns, or fewer.
    """
    lines = [line.split() for line in text.split("\n")]
    names = COLUMNS[kind]
    for number, cells in enumerate(lines, start=1):
        if cells and len(cells) != len(names):
            raise DataError(
                f"{path}:{number}: {len(cells)} columns, and a TREC {kind} has {len(names)}: "
                f"{' '.join(names)}"
            )
    rows = [cells for cells in lines if cells]
    value = names.index("score" if kind == "run" else "grade")
    return RawTable(
        queries=[cells[0] for cells in rows],
        documents=[cells[2] for cells in rows],
        values=[cells[value] for cells in rows],
        ranks=[cells[3] for cells in rows] if kind == "run" else None,
        lines=[number for number, cells in enumerate(lines, start=1) if cells],
    )
