"""Cohere's rerank endpoint, version 2 and version 1; many servers speak one of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from fusion_bench.rerank.clients._base import HttpProvider, integer_at, mapping_at, providers
from fusion_bench.rerank.protocol import Reply, Usage, rows_to_scores

__all__ = ["Cohere", "CohereV1"]

#: Documents of one search unit.
SEARCH = 100


@providers.register
class Cohere(HttpProvider):
    """Cohere ``/v2/rerank``. Unknown fields are refused there (422), ``top_k`` among them."""

    source: ClassVar[str] = "docs.cohere.com/reference/rerank"
    path: ClassVar[str] = "/v2/rerank"

    method: Literal["cohere"] = "cohere"
    model: str = "rerank-multilingual-v3.0"
    base_url: str = "https://api.cohere.com"
    key: str | None = "COHERE_API_KEY"
    batch: int = 1000
    max_tokens: int | None = 2048

    def build_request(self, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """``top_n`` is all of them: a document without a score could not be blended."""
        body: dict[str, Any] = {"model": self.model, "query": query}
        body |= {"documents": list(documents), "top_n": len(documents)}
        return body if self.max_tokens is None else body | {"max_tokens_per_doc": self.max_tokens}

    def parse_reply(self, data: Any, count: int) -> Reply:  # noqa: ANN401 - JSON
        """``results`` of ``index`` and ``relevance_score``; the bill in ``meta.billed_units``."""
        billed = mapping_at(data, "meta", "billed_units")
        scores = rows_to_scores(mapping_at(data).get("results"), count, "relevance_score")
        usage = Usage(integer_at(billed, "search_units"), integer_at(billed, "input_tokens"))
        return Reply(scores, usage=usage)

    def estimate_usage(self, query: str, documents: Sequence[str]) -> Usage:  # noqa: ARG002 - see Provider
        """One search unit for every hundred documents begun."""
        return Usage(searches=math.ceil(len(documents) / SEARCH))


@providers.register
class CohereV1(Cohere):
    """Cohere ``/v1/rerank``: no ``max_tokens_per_doc``, and it would echo the documents."""

    path: ClassVar[str] = "/v1/rerank"

    method: Literal["cohere_v1"] = "cohere_v1"  # type: ignore[assignment] # another name

    def build_request(self, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """As version 2, without the fields it does not know."""
        body = super().build_request(query, documents) | {"return_documents": False}
        return {key: value for key, value in body.items() if key != "max_tokens_per_doc"}
