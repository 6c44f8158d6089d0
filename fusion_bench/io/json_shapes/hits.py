"""Nested hits: ``{"qid": "q1", "hits": [{"id": "d1", "score": 1.5}]}``, or the bare list."""

from __future__ import annotations

from typing import Any, Final

from fusion_bench.io.json_shapes._base import RankedList, find_indexed, register_shape

#: Keys that name a list of documents, in the answers of search libraries and services.
HIT_KEYS: Final = (
    "hits",
    "results",
    "documents",
    "docs",
    "passages",
    "candidates",
    "matches",
    "points",
    "ranking",
    "judgments",
    "data",
)


@register_shape("hits")
def find_lists(body: Any) -> list[RankedList] | None:  # noqa: ANN401 - any JSON
    """The list under a usual key; or under another, if it is the only list of objects."""
    if find_indexed(body) is not None:
        return None
    if isinstance(body, dict):
        named = [body[key] for key in HIT_KEYS if isinstance(body.get(key), list)]
        lists = named or _find_only_list(body)
        if not lists:
            return None
        return [RankedList(lists[0])]
    return [RankedList(body)] if isinstance(body, list) else None


def _find_only_list(body: dict[str, Any]) -> list[list[Any]]:
    """The list of objects beside something that may name the query, if it is the only one."""
    lists = [
        value
        for key, value in body.items()
        if key != "result"  # see points.py
        and isinstance(value, list)
        and value
        and all(isinstance(hit, dict) for hit in value)
    ]
    is_labeled = any(isinstance(value, str | int) for value in body.values())
    return lists if is_labeled and len(lists) == 1 else []
