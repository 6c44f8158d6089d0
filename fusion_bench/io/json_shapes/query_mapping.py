"""``{query: {document: score}}``, as ranx and BEIR write runs and qrels; lists may be pairs."""

from __future__ import annotations

from typing import Any

from fusion_bench.io.json_shapes._base import RankedList, register_shape
from fusion_bench.io.json_shapes.hits import HIT_KEYS


@register_shape("query_mapping")
def find_lists(body: Any) -> list[RankedList] | None:  # noqa: ANN401 - any JSON
    """One list for each query."""
    if not isinstance(body, dict) or not body or set(body) <= {*HIT_KEYS, "result"}:
        return None
    lists = [_list_pairs(documents) for documents in body.values()]
    if None in lists:
        return None
    return [RankedList(pairs or [], query) for query, pairs in zip(body, lists, strict=True)]


def _list_pairs(documents: object) -> list[Any] | None:
    """Pairs of document and score; None where there are other things."""
    if isinstance(documents, dict):
        is_flat = not any(isinstance(value, dict | list) for value in documents.values())
        return list(documents.items()) if is_flat else None
    if isinstance(documents, list):
        is_flat = not any(isinstance(value, dict) for value in documents)
        return documents if is_flat else None
    return None
