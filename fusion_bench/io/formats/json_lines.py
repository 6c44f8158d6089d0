"""JSON Lines: one object a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fusion_bench.io.file_layout import ColumnNames
from fusion_bench.io.formats._base import register_format
from fusion_bench.io.formats._column_names import find_columns
from fusion_bench.io.formats._uniform_objects import read_uniform_objects
from fusion_bench.io.json_objects import read_objects, require_text
from fusion_bench.io.raw_table import Kind, RawTable


@register_format("json_lines", ".jsonl", ".ndjson")
def read_table(path: Path, kind: Kind, *, has_ranks: bool, columns: ColumnNames) -> RawTable:
    """Read objects such as ``{"query": "q1", "document": "d1", "score": 0.5}``."""
    objects = list(read_objects(path))
    table = read_uniform_objects(objects, kind, has_ranks=has_ranks, columns=columns)
    if table is not None:
        return table
    rows: list[tuple[int, str, str, Any, Any]] = []
    for number, item in objects:
        where = f"{path}:{number}"
        names = find_columns(list(item), kind, where, columns)
        rank = item[names["rank"]] if "rank" in names else None
        query, document = (
            require_text(item[names[role]], role, where) for role in ("query", "document")
        )
        value = item[names["value"]] if "value" in names else None
        rows.append((number, query, document, value, rank))
    ranks = [row[4] for row in rows]
    return RawTable(
        queries=[row[1] for row in rows],
        documents=[row[2] for row in rows],
        values=[row[3] for row in rows],
        ranks=ranks if has_ranks and None not in ranks else None,
        lines=[row[0] for row in rows],
    )
