"""Answers of Elasticsearch's and OpenSearch's ``_search``: ``{"hits": {"hits": [{"_id": …}]}}``.

Source: https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-search
"""

from __future__ import annotations

from typing import Any

from fusion_bench.io.json_shapes._base import RankedList, register_shape


@register_shape("search_response")
def find_lists(body: Any) -> list[RankedList] | None:  # noqa: ANN401 - any JSON
    """The hits of an answer."""
    outer = body.get("hits") if isinstance(body, dict) else None
    hits = outer.get("hits") if isinstance(outer, dict) else None
    return [RankedList(hits)] if isinstance(hits, list) else None
