"""No reranker: documents keep their order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar, Literal

from fusion_bench.data.records import ScoreSpace
from fusion_bench.rerank.clients._base import Price, Provider, providers
from fusion_bench.rerank.protocol import Identity, Reply, Reranker


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
        yield _OrderReranker(self.model_identity, self.batch)


class _OrderReranker:
    def __init__(self, identity: Identity, batch: int) -> None:
        self.identity, self.batch = identity, batch

    async def score(self, query: str, documents: Sequence[str]) -> Reply:  # noqa: ARG002 - the protocol's
        """n, n − 1, … 1."""
        return Reply(tuple(float(len(documents) - i) for i in range(len(documents))))
