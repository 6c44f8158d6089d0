"""No reranker: documents keep their order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar, Literal

from fusion_bench.data.records import ScoreSpace
from fusion_bench.rerank.clients._base import Price, Provider, providers
from fusion_bench.rerank.clients._local import LocalReranker
from fusion_bench.rerank.protocol import Reranker


@providers.register
class NoOp(Provider):
    """Scores that repeat the order of the documents, as a reference point."""

    source: ClassVar[str] = "the identity"

    method: Literal["noop"] = "noop"
    model: str = "order"
    space: ScoreSpace = "order"
    batch: int = 1_000_000  # the orders of two batches cannot be merged
    price: Price | None = Price()

    @asynccontextmanager
    async def open_reranker(self) -> AsyncIterator[Reranker]:
        """Nothing to load."""
        yield LocalReranker(self.model_identity, self.batch, _score_by_order)


def _score_by_order(query: str, documents: Sequence[str]) -> Sequence[float]:  # noqa: ARG001 - the model's signature
    return range(len(documents), 0, -1)
