"""Voyage's rerank endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from fusion_bench.rerank.clients._base import (
    HttpProvider,
    integer_at,
    mapping_at,
    providers,
    text_at,
)
from fusion_bench.rerank.protocol import Reply, Usage, rows_to_scores

__all__ = ["Voyage"]


@providers.register
class Voyage(HttpProvider):
    """Voyage ``/v1/rerank``: ``top_k``, and results in ``data``."""

    source: ClassVar[str] = "docs.voyageai.com/reference/reranker-api"
    path: ClassVar[str] = "/v1/rerank"

    method: Literal["voyage"] = "voyage"
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

    def parse_reply(self, data: Any, count: int) -> Reply:  # noqa: ANN401 - JSON
        """``data`` of ``index`` and ``relevance_score``; ``usage.total_tokens``."""
        scores = rows_to_scores(mapping_at(data).get("data"), count, "relevance_score")
        tokens = integer_at(mapping_at(data, "usage"), "total_tokens")
        return Reply(scores, text_at(data, "model"), Usage(tokens=tokens))
