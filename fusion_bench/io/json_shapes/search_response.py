"""Answers of Elasticsearch's and OpenSearch's ``_search``: ``{"hits": {"hits": [{"_id": …}]}}``.

Source: https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-search
"""

from __future__ import annotations

from typing import Any

from fusion_bench.errors import DataError
from fusion_bench.io.json_shapes._base import RankedList, register_shape


@register_shape("search_response")
def find_lists(body: Any) -> list[RankedList] | None:  # noqa: ANN401 - any JSON
    """The hits of an answer.

    Raises:
        DataError: The search timed out or lost a shard: hits may be missing.
    """
    outer = body.get("hits") if isinstance(body, dict) else None
    hits = outer.get("hits") if isinstance(outer, dict) else None
    if not isinstance(hits, list):
        return None
    shards = body.get("_shards")
    is_partial = isinstance(shards, dict) and bool(shards.get("failed"))
    if body.get("timed_out") is True or is_partial:
        what = "a shard failed" if is_partial else "the search timed out"
        raise DataError(f"{what}, so that hits may be missing: ask again")
    return [RankedList(hits)]
