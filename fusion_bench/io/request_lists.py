"""The queries that a batch of searches asked, in their order: the answers often name none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from fusion_bench.data.document_rows import COLUMN_NAMES
from fusion_bench.errors import DataError
from fusion_bench.io.json_objects import parse_object, require_text
from fusion_bench.io.raw_files import read_text

#: Keys of a request that hold the query's id.
ID_KEYS: Final = (*(name for name in COLUMN_NAMES["query"] if "id" in name), "id", "_id", "_name")
#: Keys of the first of the two lines of a request of ``_msearch``; it may be empty.
HEADER_KEYS: Final = frozenset(
    {"index", "search_type", "preference", "routing", "request_cache", "allow_no_indices"}
    | {
        "expand_wildcards",
        "ignore_unavailable",
        "allow_partial_search_results",
        "ccs_minimize_roundtrips",
    }
)


def read_requests(path: Path, texts: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the id of each query that a batch asked, in order.

    Args:
        path: The requests of ``_msearch`` (a line of the index, a line of the search), or one
            query a line: its id, its text, or an object with an ``id``.
        texts: Text of a query → its id, where they are known. A text that is none of them counts
            as an id.

    Raises:
        DataError: A line names no query, or texts of several.
    """
    known = texts or {}
    lines = [
        (number, line.strip())
        for number, line in enumerate(read_text(path).split("\n"), start=1)
        if line.strip()
    ]
    if not lines:
        raise DataError(f"{path}: the file is empty: one request a line is needed")
    if all(line.startswith("{") for _, line in lines):
        objects = [
            (f"{path}:{number}", parse_object(line, f"{path}:{number}")) for number, line in lines
        ]
        if len(objects) % 2 == 0 and all(item.keys() <= HEADER_KEYS for _, item in objects[::2]):
            objects = objects[1::2]
        return tuple(_find_query(item, known, where) for where, item in objects)
    return tuple(known.get(line, line) for _, line in lines)


def _find_query(request: dict[str, Any], texts: Mapping[str, str], where: str) -> str:
    """The query of one request: its id, or the id of the only text in it that is known."""
    cells = list(_list_cells(request))
    ids = [value for key, value in cells if key in ID_KEYS]
    if ids:
        return require_text(ids[0], "query", where)
    found = {texts[value]: None for _, value in cells if isinstance(value, str) and value in texts}
    if len(found) == 1:
        return next(iter(found))
    named = [
        value for key, value in cells if key in {"query", "text", "q"} and isinstance(value, str)
    ]
    if not found and not texts and len(named) == 1:
        return named[0]
    raise DataError(
        f"{where}: no query is known by this request ({json.dumps(request)[:60]}): write one id a "
        "line, in the order of the requests"
    )


def _list_cells(value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - any JSON
    """The keys of an object and of those inside it, with the values that are no objects."""
    pairs = value.items() if isinstance(value, dict) else ()
    for key, inner in pairs:
        for each in inner if isinstance(inner, list) else [inner]:
            if isinstance(each, dict):
                yield from _list_cells(each)
            else:
                yield key, each
