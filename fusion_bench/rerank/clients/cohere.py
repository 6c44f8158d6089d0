"""Cohere's rerank endpoint, version 2 and version 1."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from fusion_bench.rerank.clients._base import HttpProvider, providers
from fusion_bench.rerank.protocol import Reply, Usage
from fusion_bench.util.http.json_fields import count_at, mapping_at

#: Documents of one search unit.
DOCUMENTS_PER_SEARCH = 100


@providers.register
class CohereV1(HttpProvider):
    """Cohere ``/v1/rerank``."""

    source: ClassVar[str] = "docs.cohere.com/reference/rerank"
    path: ClassVar[str] = "/v1/rerank"
    options: ClassVar[Mapping[str, Any]] = {"return_documents": False}

    method: Literal["cohere_v1"] = "cohere_v1"
    model: str = "rerank-multilingual-v3.0"
    base_url: str = "https://api.cohere.com"
    key: str | None = "COHERE_API_KEY"
    batch: int = 1000
    max_tokens: int | None = 2048

    def parse_usage(self, data: Any) -> Usage:  # noqa: ANN401 - JSON
        """``meta.billed_units``."""
        billed = mapping_at(data, "meta", "billed_units")
        return Usage(count_at(billed, "search_units"), count_at(billed, "input_tokens"))

    def parse_reply(self, data: Any, count: int) -> Reply:  # noqa: ANN401 - JSON
        """With the search units of our own count where the server states none."""
        reply = super().parse_reply(data, count)
        units = reply.usage.searches or math.ceil(count / DOCUMENTS_PER_SEARCH)
        return replace(reply, usage=replace(reply.usage, searches=units))

    def estimate_usage(self, query: str, documents: Sequence[str]) -> Usage:  # noqa: ARG002 - see Provider
        """One search unit per hundred documents, rounded up."""
        return Usage(searches=math.ceil(len(documents) / DOCUMENTS_PER_SEARCH))


@providers.register
class Cohere(CohereV1):
    """Cohere ``/v2/rerank``, which refuses unknown fields such as ``top_k`` (422)."""

    path: ClassVar[str] = "/v2/rerank"
    options: ClassVar[Mapping[str, Any]] = {}

    method: Literal["cohere"] = "cohere"  # type: ignore[assignment] # another name

    def build_request(self, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """With ``max_tokens_per_doc``."""
        limit = {} if self.max_tokens is None else {"max_tokens_per_doc": self.max_tokens}
        return super().build_request(query, documents) | limit
