"""Jina's rerank endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from fusion_bench.rerank.clients._base import HttpProvider, providers


@providers.register
class Jina(HttpProvider):
    """Jina ``/v1/rerank``.

    Scores of ``jina-colbert`` models exceed 1: they need ``space: unbounded``.
    """

    source: ClassVar[str] = "jina.ai/reranker"
    path: ClassVar[str] = "/v1/rerank"
    options: ClassVar[Mapping[str, Any]] = {"return_documents": False}

    method: Literal["jina"] = "jina"
    model: str = "jina-reranker-v2-base-multilingual"
    base_url: str = "https://api.jina.ai"
    key: str | None = "JINA_API_KEY"
