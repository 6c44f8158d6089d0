"""Voyage's rerank endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from fusion_bench.rerank.clients._base import HttpProvider, providers


@providers.register
class Voyage(HttpProvider):
    """Voyage ``/v1/rerank``; the server truncates long documents."""

    source: ClassVar[str] = "docs.voyageai.com/reference/reranker-api"
    path: ClassVar[str] = "/v1/rerank"
    count_key: ClassVar[str] = "top_k"
    results_key: ClassVar[str] = "data"
    options: ClassVar[Mapping[str, Any]] = {"return_documents": False, "truncation": True}

    method: Literal["voyage"] = "voyage"
    model: str = "rerank-2"
    base_url: str = "https://api.voyageai.com"
    key: str | None = "VOYAGE_API_KEY"
    batch: int = 1000
