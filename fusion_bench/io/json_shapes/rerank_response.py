"""Answers of rerankers: ``{"results": [{"index": 3, "relevance_score": 0.9}]}``.

Cohere and Jina name the list ``results``, Voyage and Mixedbread ``data``; Hugging Face's Text
Embeddings Inference answers with the bare list. The index counts the documents that were sent,
from 0. Source: https://docs.cohere.com/reference/rerank
"""

from __future__ import annotations

from typing import Any

from fusion_bench.io.json_shapes._base import RankedList, has_indices, register_shape


@register_shape("rerank_response")
def find_lists(body: Any) -> list[RankedList] | None:  # noqa: ANN401 - any JSON
    """The results of an answer, whose documents are indices."""
    lists = [body.get(key) for key in ("results", "data")] if isinstance(body, dict) else [body]
    for hits in lists:
        if isinstance(hits, list) and has_indices(hits):
            return [RankedList(hits)]
    return None
