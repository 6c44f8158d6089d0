"""The reranker decides alone."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fusion_bench.blend._base import Fused, Mix, RerankBlend, blends
from fusion_bench.blend._engine_form import Mixture
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray

__all__ = ["Replace"]


@blends.register
class Replace(RerankBlend):
    """``replace``: the rerank score; equals ``linear`` with β = 1."""

    formula: ClassVar[str] = "rerank"
    source: ClassVar[str] = "CONV-07-05"

    method: Literal["replace"] = "replace"

    def combine(
        self,
        runs: AlignedRuns,  # noqa: ARG002 - part of the contract
        fused: Fused,  # noqa: ARG002 - part of the contract
        rerank: FloatArray,
        candidates: NDArray[np.bool_],  # noqa: ARG002 - part of the contract
    ) -> FloatArray:
        """(N,): the rerank scores."""
        return rerank

    def compiled(self, depth: int) -> Mixture:
        """The rerank scores as they are."""
        return Mixture(None, np.zeros(depth), np.ones(depth))

    def mix(
        self,
        runs: AlignedRuns,  # noqa: ARG002 - part of the contract
        fused: Fused,
        candidates: NDArray[np.bool_],  # noqa: ARG002 - part of the contract
    ) -> Mix:
        """The retrieval term weighs nothing."""
        size = len(fused.positions)
        return Mix(fused.scores, np.zeros(size), np.ones(size))
