"""Mixedbread's rerank endpoint."""

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

__all__ = ["Mixedbread"]


@providers.register
class Mixedbread(HttpProvider):
    """Mixedbread ``/v1/reranking``: documents in ``input``, ``top_k``, results in ``data``."""

    source: ClassVar[str] = "mixedbread.com/api-reference"
    path: ClassVar[str] = "/v1/reranking"

    method: Literal["mixedbread"] = "mixedbread"
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

    def parse_reply(self, data: Any, count: int) -> Reply:  # noqa: ANN401 - JSON
        """``data`` of ``index`` and ``score``; ``usage``."""
        scores = rows_to_scores(mapping_at(data).get("data"), count, "score")
        tokens = integer_at(mapping_at(data, "usage"), "total_tokens", "prompt_tokens")
        return Reply(scores, text_at(data, "model"), Usage(tokens=tokens))
