"""vLLM's rerank endpoint: Jina's format on a local server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from fusion_bench.rerank.clients._base import HttpProvider, Price, providers


@providers.register
class VLLM(HttpProvider):
    """vLLM ``/v1/rerank``; ``use_activation`` false = raw logits."""

    source: ClassVar[str] = "docs.vllm.ai, Jina- and Cohere-compatible rerank API"
    path: ClassVar[str] = "/v1/rerank"

    method: Literal["vllm"] = "vllm"
    model: str
    base_url: str = "http://127.0.0.1:8000"
    price: Price | None = Price()

    def build_request(self, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """As for Jina, with ``use_activation``."""
        return super().build_request(query, documents) | {"use_activation": self.space != "logit"}
