"""Cohere's rerank endpoint, version 2 and version 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from fusion_bench.rerank.clients._base import HttpProvider, integer_at, mapping_at, providers
from fusion_bench.rerank.protocol import Reply, Usage, rows_to_scores

#: Documents of one search unit.
DOCUMENTS_PER_SEARCH = 100


@providers.register
class Cohere(HttpProvider):
    """Cohere ``/v2/rerank``, which refuses unknown fields such as ``top_k`` (422)."""

    source: ClassVar[str] = "docs.cohere.com/reference/rerank"
    path: ClassVar[str] = "/v2/rerank"

    method: Literal["cohere"] = "cohere"
    model: str = "rerank-multilingual-v3.0"
    base_url: str = "https://api.cohere.com"
    key: str | None = "COHERE_API_KEY"
    batch: int = 1000
    max_tokens: int | None = 2048

    def build_request(self, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """The body; ``top_n`` is all documents, as a blend needs every score."""
        body: dict[str, Any] = {"model": self.model, "query": query}
        body |= {"documents": list(documents), "top_n": len(documents)}
        return body if self.max_tokens is None else body | {"max_tokens_per_doc": self.max_tokens}

    def parse_reply(self, data: Any, count: int) -> Reply:  # noqa: ANN401 - JSON
        """``results`` of ``index`` and ``relevance_score``; usage in ``meta.billed_units``."""
        billed = mapping_at(data, "meta", "billed_units")
        scores = rows_to_scores(mapping_at(data).get("results"), count, "relevance_score")
        usage = Usage(integer_at(billed, "search_units"), integer_at(billed, "input_tokens"))
        return Reply(scores, usage=usage)

    def estimate_usage(self, query: str, documents: Sequence[str]) -> Usage:  # noqa: ARG002 - see Provider
        """One search unit per hundred documents, rounded up."""
        return Usage(searches=math.ceil(len(documents) / DOCUMENTS_PER_SEARCH))


@providers.register
class CohereV1(Cohere):
    """Cohere ``/v1/rerank``, without ``max_tokens_per_doc``."""

    path: ClassVar[str] = "/v1/rerank"

    method: Literal["cohere_v1"] = "cohere_v1"  # type: ignore[assignment] # another name

    def build_request(self, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """As version 2, without its new field, and without documents in the response."""
        body = super().build_request(query, documents) | {"return_documents": False}
        return {key: value for key, value in body.items() if key != "max_tokens_per_doc"}
