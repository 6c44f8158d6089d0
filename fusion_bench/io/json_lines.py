"""JSON Lines: one object a row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fusion_bench.errors import DataError
from fusion_bench.io._column_names import find_columns
from fusion_bench.io._raw_table import Kind, Rows, read_text, reader
from fusion_bench.util.formatting import is_encodable

__all__ = ["objects", "text_of"]


@reader(".jsonl", ".ndjson")
def read(path: Path, kind: Kind) -> Rows:
    """Read objects such as ``{"query": "q1", "document": "d1", "score": 0.5}``."""
    found: list[tuple[int, str, str, Any, Any]] = []
    for number, item in objects(path):
        where = f"{path}:{number}"
        names = find_columns(list(item), kind, where)
        rank = item[names["rank"]] if "rank" in names else None
        query, document = (
            text_of(item[names[role]], role, where) for role in ("query", "document")
        )
        found.append((number, query, document, item[names["value"]], rank))
    ranks = [row[4] for row in found]
    return Rows(
        queries=[row[1] for row in found],
        documents=[row[2] for row in found],
        values=[row[3] for row in found],
        ranks=None if None in ranks else lambda: ranks,
        lines=[row[0] for row in found],
    )


def text_of(value: object, what: str, where: str) -> str:
    """An id or a name: text, or a whole number, which stands for its digits.

    Raises:
        DataError: It is anything else.
    """
    if isinstance(value, str | int) and not isinstance(value, bool) and is_encodable(str(value)):
        return str(value)
    raise DataError(f"{where}: {what} must be text, given {json.dumps(value)}")


def objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each object of a JSON Lines file with its line number; blank lines are skipped.

    Raises:
        DataError: A line that is not a JSON object.
    """
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except (ValueError, RecursionError) as error:  # ValueError: also a number of 5,000 digits
            problem = getattr(error, "msg", error)
            raise DataError(f"{path}:{number}: not JSON: {problem}") from None
        if not isinstance(item, dict):
            raise DataError(f"{path}:{number}: a JSON object is needed, found {line.strip()[:40]}")
        yield number, item
