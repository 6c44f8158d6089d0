"""Objects that all have the same keys, read by columns instead of one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fusion_bench.errors import DataError
from fusion_bench.io.file_layout import ColumnNames
from fusion_bench.io.formats._column_names import find_columns
from fusion_bench.io.raw_table import Kind, RawTable
from fusion_bench.util.formatting import is_encodable


def read_uniform_objects(
    objects: Sequence[tuple[int, Mapping[str, Any]]],
    kind: Kind,
    *,
    has_ranks: bool,
    columns: ColumnNames,
) -> RawTable | None:
    """The rows of objects with the same keys and textual ids; None = they are not like that.

    Args:
        objects: Each with its line.
        kind: What they hold.
        has_ranks: Whether the rank column is needed.
        columns: The file's own names, where it declares them.
    """
    if not objects:
        return None
    first = objects[0][1]
    keys = first.keys()
    if any(item.keys() != keys for _, item in objects):
        return None
    try:
        names = find_columns(list(first), kind, "", columns)
    except DataError:
        return None  # whoever reads them one by one says where
    queries, documents = (
        [item[names[role]] for _, item in objects] for role in ("query", "document")
    )
    for ids in (queries, documents):
        if set(map(type, ids)) != {str} or not is_encodable("".join(ids)):
            return None
    value, rank = names.get("value"), names.get("rank")
    values: list[Any] = [None if value is None else item[value] for _, item in objects]
    ranks = None if rank is None or not has_ranks else [item[rank] for _, item in objects]
    return RawTable(
        queries=queries,
        documents=documents,
        values=values,
        ranks=None if ranks is None or None in ranks else ranks,
        lines=[line for line, _ in objects],
    )
