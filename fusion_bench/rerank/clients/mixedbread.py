"""Mixedbread's rerank endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from fusion_bench.rerank.clients._base import HttpProvider, providers


@providers.register
class Mixedbread(HttpProvider):
    """Mixedbread ``/v1/reranking``; it does not rewrite the query."""

    source: ClassVar[str] = "mixedbread.com/api-reference"
    path: ClassVar[str] = "/v1/reranking"
    documents_key: ClassVar[str] = "input"
    count_key: ClassVar[str] = "top_k"
    results_key: ClassVar[str] = "data"
    score_key: ClassVar[str] = "score"
    options: ClassVar[Mapping[str, Any]] = {"return_input": False, "rewrite_query": False}

    method: Literal["mixedbread"] = "mixedbread"
    model: str = "mixedbread-ai/mxbai-rerank-large-v2"
    base_url: str = "https://api.mixedbread.com"
    key: str | None = "MXBAI_API_KEY"
