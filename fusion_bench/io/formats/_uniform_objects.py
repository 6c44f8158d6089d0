"""Objects that all have the same keys, read by columns instead of one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusion_bench.errors import DataError
from fusion_bench.io.file_layout import ColumnNames
from fusion_bench.io.formats._column_names import find_columns
from fusion_bench.io.json_items import JsonItem
from fusion_bench.io.raw_table import Kind, RawTable
from fusion_bench.util.formatting import is_encodable


def read_uniform_objects(
    items: Sequence[JsonItem],
    kind: Kind,
    *,
    has_ranks: bool,
    columns: ColumnNames,
) -> RawTable | None:
    """The rows of objects with the same keys and textual ids; None = they are not like that.

    Args:
        items: Each with its line.
        kind: What they hold.
        has_ranks: Whether the rank column is needed.
        columns: The file's own names, where it declares them.
    """
    if not items or items[0].query is not None:
        return None  # the name of the file says the query
    objects: list[dict[str, Any]] = [item.value for item in items]
    keys = objects[0].keys()
    if any(value.keys() != keys for value in objects):
        return None
    try:
        names = find_columns(list(keys), kind, "", columns)
    except DataError:
        return None  # whoever reads them one by one says where
    queries, documents = ([item[names[role]] for item in objects] for role in ("query", "document"))
    for ids in (queries, documents):
        if set(map(type, ids)) != {str} or not is_encodable("".join(ids)):
            return None
    value, rank = names.get("value"), names.get("rank")
    values: list[Any] | None = None if value is None else [item[value] for item in objects]
    needs_ranks = has_ranks or values is None
    ranks = [item[rank] for item in objects] if needs_ranks and rank is not None else None
    return RawTable(
        queries=queries,
        documents=documents,
        values=values,
        ranks=None if ranks is None or None in ranks else ranks,
        lines=[item.place for item in items],
    )
