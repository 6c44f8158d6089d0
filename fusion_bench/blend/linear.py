"""One weight for the whole list."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fusion_bench.align import AlignedRuns
from fusion_bench.blend._base import Fused, blends
from fusion_bench.blend._compiled import Mixture
from fusion_bench.blend._retrieval import RetrievalBlend
from fusion_bench.order import FloatArray, sum_terms

__all__ = ["Linear"]


@blends.register
class Linear(RetrievalBlend):
    """``linear``: β·rerank + (1 − β)·retrieval.

    Source: nablarch reranking design, 5.3.

    Attributes:
        beta: Share of the rerank score.
    """

    formula: ClassVar[str] = "β·rerank + (1−β)·retrieval"
    source: ClassVar[str] = "nablarch 5.3"

    method: Literal["linear"] = "linear"
    beta: Annotated[float, Field(ge=0, le=1)] = 1.0

    def combine(
        self,
        runs: AlignedRuns,
        fused: Fused,
        rerank: FloatArray,
        candidates: NDArray[np.bool_],
    ) -> FloatArray:
        """(N,): the weighted mean."""
        retrieval = self.retrieval_term(runs, fused, candidates)
        return sum_terms(np.stack([self.beta * rerank, (1 - self.beta) * retrieval]))

    def compiled(self, depth: int) -> Mixture:
        """The same share at every rank."""
        beta = np.full(depth, self.beta)
        return Mixture(self.retrieval, 1 - beta, beta)
