"""No reranker: every document keeps its place (CONV-07-05's NoOpReranker)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar, Literal

from fusion_bench.data.records import ScoreSpace
from fusion_bench.rerank.clients._base import Price, Provider, providers
from fusion_bench.rerank.protocol import Identity, Reply, Reranker

__all__ = ["NoOp"]


@providers.register
class NoOp(Provider):
    """Scores that repeat the order of the documents: what any reranker has to beat."""

    source: ClassVar[str] = "CONV-07-05"

    method: Literal["noop"] = "noop"
    model: str = "order"
    space: ScoreSpace = "order"
    batch: int = 1_000_000  # the order of a part says nothing of the whole
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
