"""Jina's rerank endpoint."""

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


@providers.register
class Jina(HttpProvider):
    """Jina ``/v1/rerank``: ``top_n``, results in ``results``.

    Scores of ``jina-colbert`` models exceed 1: they need ``space: unbounded``.
    """

    source: ClassVar[str] = "jina.ai/reranker"
    path: ClassVar[str] = "/v1/rerank"
    results_key: ClassVar[str] = "results"
    score_key: ClassVar[str] = "relevance_score"

    method: Literal["jina"] = "jina"
    model: str = "jina-reranker-v2-base-multilingual"
    base_url: str = "https://api.jina.ai"
    key: str | None = "JINA_API_KEY"

    def build_request(self, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """The body; ``top_n`` is all documents."""
        return {
            "model": self.model,
            "query": query,
            "documents": list(documents),
            "top_n": len(documents),
            "return_documents": False,
        }

    def parse_reply(self, data: Any, count: int) -> Reply:  # noqa: ANN401 - JSON
        """Results of ``index`` and a score; ``usage.total_tokens``."""
        scores = rows_to_scores(mapping_at(data).get(self.results_key), count, self.score_key)
        tokens = integer_at(mapping_at(data, "usage"), "total_tokens", "prompt_tokens")
        return Reply(scores, text_at(data, "model"), Usage(tokens=tokens))
