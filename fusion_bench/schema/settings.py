"""How lists are fused and reranked."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fusion_bench.fuse.rrf import RRF
from fusion_bench.schema._base import Record
from fusion_bench.schema.weights import SearchWeights


class RRFConfig(Record):
    """Reciprocal rank fusion (REQ-TYPE-017).

    Attributes:
        k: The greater, the less a difference of ranks counts.
        normalize_scores: Whether scores are divided by 3/(k+1) and cut at 1.
    """

    k: Annotated[int, Field(ge=1, le=1000)] = 60
    normalize_scores: bool = True

    def to_fusion(self, weights: SearchWeights) -> RRF:
        """The same as a fusion of the bench, for sources with the roles of the strategies."""
        return RRF(
            k=self.k,
            normalize="three_lists" if self.normalize_scores else "none",
            weights=weights.model_dump(),
        )


class RerankConfig(Record):
    """Reranking (REQ-TYPE-018).

    Attributes:
        enabled: Whether a reranker runs.
        model: Its name.
        top_k: How many results it scores.
        batch_size: How many it scores in one call.
    """

    enabled: bool = True
    model: str = "cross-encoder/ms-marco-MiniLM-L-6-v2"
    top_k: Annotated[int, Field(ge=1, le=100)] = 50
    batch_size: Annotated[int, Field(ge=1, le=32)] = 16

    def count_candidates(self, results: int) -> int:
        """How many of this many results are scored: at most ``top_k``, none where it is off."""
        return min(self.top_k, results) if self.enabled else 0
