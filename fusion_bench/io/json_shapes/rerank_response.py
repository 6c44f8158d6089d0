"""Answers of rerankers: ``{"results": [{"index": 3, "relevance_score": 0.9}]}``.

Cohere and Jina name the list ``results``, Voyage and Mixedbread ``data``; Hugging Face's Text
Embeddings Inference answers with the bare list. The index counts the documents that were sent,
from 0. Source: https://docs.cohere.com/reference/rerank
"""

from __future__ import annotations

from typing import Any

from fusion_bench.io.json_shapes._base import RankedList, find_indexed, register_shape


@register_shape("rerank_response")
def find_lists(body: Any) -> list[RankedList] | None:  # noqa: ANN401 - any JSON
    """The results of an answer, whose documents are indices."""
    hits = find_indexed(body)
    return None if hits is None else [RankedList(hits)]
