"""Infinity's rerank endpoint: Jina's format on a local server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from fusion_bench.rerank.clients._base import HttpProvider, Price, providers


@providers.register
class Infinity(HttpProvider):
    """Infinity ``/rerank``; ``raw_scores`` false = a sigmoid has been applied."""

    source: ClassVar[str] = "github.com/michaelfeil/infinity"
    path: ClassVar[str] = "/rerank"

    method: Literal["infinity"] = "infinity"
    model: str
    base_url: str = "http://127.0.0.1:7997"
    price: Price | None = Price()

    def build_request(self, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """As for Jina, with ``raw_scores`` for logits."""
        options = {"return_documents": False, "raw_scores": self.space == "logit"}
        return super().build_request(query, documents) | options
