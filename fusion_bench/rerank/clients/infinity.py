"""Infinity's rerank endpoint: Jina's format on a local server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from fusion_bench.rerank.clients._base import Price, providers
from fusion_bench.rerank.clients.jina import Jina


@providers.register
class Infinity(Jina):
    """Infinity ``/rerank``; ``raw_scores`` false = a sigmoid has been applied."""

    source: ClassVar[str] = "github.com/michaelfeil/infinity"
    path: ClassVar[str] = "/rerank"

    method: Literal["infinity"] = "infinity"  # type: ignore[assignment] # another name
    model: str
    base_url: str = "http://127.0.0.1:7997"
    key: str | None = None
    price: Price | None = Price()

    def build_request(self, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """As for Jina, with ``raw_scores`` for logits."""
        return super().build_request(query, documents) | {"raw_scores": self.space == "logit"}
