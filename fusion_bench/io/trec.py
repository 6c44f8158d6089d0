"""TREC files: columns between blanks.

A run has six, ``query Q0 document rank score tag``; qrels have four, ``query 0 document grade``.
"""

from __future__ import annotations

import codecs
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import IntArray
from fusion_bench.data.packed_ids import Repeated, concatenate
from fusion_bench.errors import DataError
from fusion_bench.io import native
from fusion_bench.io._raw_table import Kind, Rows, decoded, read_array, read_data, reader
from fusion_bench.io._spans import only_plain_blanks, split_blocks

__all__ = ["rows_of_lines"]

COLUMNS = {"run": "query Q0 document rank score tag", "qrels": "query 0 document grade"}


@reader(".trec", ".txt", ".run", ".res", ".qrels", ".test", ".trunc")
def read(path: Path, kind: Kind) -> Rows:
    """Read a TREC run or qrels file; blank lines are skipped."""
    data = read_array(path) if native.usable() else read_data(path)
    return _regular(kind, data) or rows_of_lines(path, kind, decoded(path, bytes(data)))


def _regular(kind: Kind, data: bytes | NDArray[np.uint8]) -> Rows | None:
    """The rows of a file that is regular throughout; None if it has to be read line by line.

    This is the fast way and knows no errors: whatever is unusual is left to the other one, which
    says what is wrong and where.
    """
    width, value = len(COLUMNS[kind].split()), 4 if kind == "run" else 3
    if native.usable():
        return _natively(kind, data, width, value)
    data = bytes(data).removeprefix(codecs.BOM_UTF8)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    queries, documents, values = [], [], []
    for block in split_blocks(data, width):
        if block is None:
            return None
        numbers = block[value].floats() if kind == "run" else block[value].integers()
        query, document = block[0].ids(), block[2].ids()
        if numbers is None or query is None or document is None:
            return None
        queries.append(Repeated.of(query))
        documents.append(document)
        values.append(numbers)
    return Rows(
        queries=Repeated.joined(queries),
        documents=concatenate(documents),
        values=np.concatenate(values),
        ranks=(lambda: _ranks(data, width)) if kind == "run" else None,
        lines=range(1, sum(map(len, values)) + 1),
    )


def _natively(kind: Kind, data: bytes | NDArray[np.uint8], width: int, value: int) -> Rows | None:
    """The same by the loops in C."""
    text, rows = native.prepared(data)
    found = native.regular(text, rows, width, value, whole=kind == "qrels")
    if found is None or (found.wide and not only_plain_blanks(text.tobytes())):
        return None
    return Rows(
        queries=found.queries,
        documents=found.documents,
        values=found.values,
        ranks=(lambda: _ranks(text.tobytes(), width)) if kind == "run" else None,
        lines=range(1, len(found.documents) + 1),
    )


def _ranks(data: bytes, width: int) -> IntArray | list[str]:
    """The rank column of a regular file; as text if it is not made of whole numbers."""
    blocks = [block[3] for block in split_blocks(data, width) if block is not None]
    ranks = [block.integers() for block in blocks]
    if any(part is None for part in ranks):
        return [rank for block in blocks for rank in block]
    return np.concatenate([part for part in ranks if part is not None])


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
        ranks=(lambda: [columns[3] for columns in rows]) if kind == "run" else None,
        lines=numbers,
    )
