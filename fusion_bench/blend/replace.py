"""The reranker decides alone."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fusion_bench.blend._base import BlendTerms, BlendWeights, Fused, blends
from fusion_bench.blend._rerank_blend import RerankBlend
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray


@blends.register
class Replace(RerankBlend):
    """``replace``: the rerank score; equals ``linear`` with β = 1."""

    formula: ClassVar[str] = "rerank"
    source: ClassVar[str] = "the reranker's order; CONV-07-05"

    method: str = "replace"

    def combine(
        self,
        runs: AlignedRuns,  # noqa: ARG002 - part of the contract
        fused: Fused,  # noqa: ARG002 - part of the contract
        rerank: FloatArray,
        candidates: BoolArray,  # noqa: ARG002 - part of the contract
    ) -> FloatArray:
        """(N,): the rerank scores."""
        return rerank

    def engine_form(self, depth: int) -> BlendWeights:
        """No retrieval term."""
        return BlendWeights(None, np.zeros(depth), np.ones(depth))

    def blend_terms(
        self,
        runs: AlignedRuns,  # noqa: ARG002 - part of the contract
        fused: Fused,
        candidates: BoolArray,  # noqa: ARG002 - part of the contract
    ) -> BlendTerms:
        """The retrieval term weighs nothing."""
        size = len(fused.positions)
        return BlendTerms(fused.scores, np.zeros(size), np.ones(size))
