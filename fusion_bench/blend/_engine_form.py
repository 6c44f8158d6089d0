"""What a blend may tell the engine about itself, so that the engine knows no method by name."""

from __future__ import annotations

from dataclasses import dataclass

from fusion_bench.data.ordering import FloatArray

__all__ = ["Mixture"]


@dataclass(frozen=True, eq=False)
class Mixture:
    """a·retrieval + b·rerank, a and b by fused rank: one product each and one addition.

    Attributes:
        retrieval: Name of the retrieval term (see ``RetrievalBlend``); None = there is none.
        shares: (D,): a at each fused rank from 1; 0 where there is no retrieval term.
        rerank_shares: (D,): b.
    """

    retrieval: str | None
    shares: FloatArray
    rerank_shares: FloatArray
