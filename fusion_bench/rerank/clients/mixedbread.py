"""Mixedbread's rerank endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from fusion_bench.rerank.clients._base import providers
from fusion_bench.rerank.clients.jina import Jina


@providers.register
class Mixedbread(Jina):
    """Mixedbread ``/v1/reranking``: documents in ``input``, ``top_k``, results in ``data``."""

    source: ClassVar[str] = "mixedbread.com/api-reference"
    path: ClassVar[str] = "/v1/reranking"
    results_key: ClassVar[str] = "data"
    score_key: ClassVar[str] = "score"

    method: Literal["mixedbread"] = "mixedbread"  # type: ignore[assignment] # another name
    model: str = "mixedbread-ai/mxbai-rerank-large-v2"
    base_url: str = "https://api.mixedbread.com"
    key: str | None = "MXBAI_API_KEY"

    def build_request(self, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """The body; ``top_k`` is all documents, and the query is not rewritten."""
        return {
            "model": self.model,
            "query": query,
            "input": list(documents),
            "top_k": len(documents),
            "return_input": False,
            "rewrite_query": False,
        }
