"""TREC and MS MARCO files: columns between blanks or tabs, and no header.

A TREC run has six columns, ``query Q0 document rank score tag``; qrels have four, ``query 0
document grade``. A run may have three: ``query document rank`` as MS MARCO's, or ``query document
score``. A tag may hold blanks. Lines that start with ``#`` are comments.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fusion_bench.errors import DataError
from fusion_bench.io.file_bytes import decode_text, read_bytes
from fusion_bench.io.file_layout import ColumnNames
from fusion_bench.io.formats._base import register_format
from fusion_bench.io.formats._fixed_columns import MS_MARCO, SCORED, select_names, tabulate_cells
from fusion_bench.io.formats._trec_lines import split_trec_lines
from fusion_bench.io.raw_table import Kind, RawTable

#: Bytes from which on importing pyarrow costs less than reading line by line.
LARGE_FILE = 1 << 20


@register_format("msmarco")
@register_format("trec", ".trec", ".txt", ".run", ".res", ".qrels", ".test", ".trunc")
def read_table(path: Path, kind: Kind, *, has_ranks: bool, columns: ColumnNames) -> RawTable:
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
    return read_lines(path, kind, decode_text(path, data))


def read_lines(path: Path, kind: Kind, text: str) -> RawTable:
    """The rows of a file's text, line by line.

    Raises:
        DataError: A line has more columns than the first, or fewer; or starts with ``#`` and
            would be a row.
    """
    return tabulate_cells(path, kind, [*split_trec_lines(path, kind, text)])


def _read_large(data: bytes, kind: Kind, *, has_ranks: bool) -> RawTable | None:
    """The rows by pyarrow; None if the file has to be read line by line."""
    if data.startswith(b"#") or b"\n#" in data:
        return None  # a comment, or what may be one
    from fusion_bench.io.arrow_text import parse_ranked_text, parse_regular_text

    if b" " not in data:
        data = data.replace(b"\t", b" ")
    names = select_names(kind, len(data[: data.find(b"\n")].split()))
    if names == MS_MARCO:
        ranked = parse_ranked_text(data, names)
        scored = None if ranked else parse_regular_text(data, SCORED, "score", has_ranks=False)
        if scored is None or not (np.asarray(scored.values) % 1).any():
            return ranked
        return scored
    value = "score" if kind == "run" else "grade"
    return parse_regular_text(data, names, value, has_ranks=has_ranks)
