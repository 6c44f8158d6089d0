"""Voyage's rerank endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from fusion_bench.rerank.clients._base import providers
from fusion_bench.rerank.clients.jina import Jina


@providers.register
class Voyage(Jina):
    """Voyage ``/v1/rerank``: ``top_k``, and results in ``data``."""

    source: ClassVar[str] = "docs.voyageai.com/reference/reranker-api"
    path: ClassVar[str] = "/v1/rerank"
    results_key: ClassVar[str] = "data"

    method: Literal["voyage"] = "voyage"  # type: ignore[assignment] # another name
    model: str = "rerank-2"
    base_url: str = "https://api.voyageai.com"
    key: str | None = "VOYAGE_API_KEY"
    batch: int = 1000

    def build_request(self, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """The body; ``top_k`` is all documents, and the server truncates long ones."""
        return {
            "query": query,
            "documents": list(documents),
            "model": self.model,
            "top_k": len(documents),
            "return_documents": False,
            "truncation": True,
        }
