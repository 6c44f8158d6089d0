"""Rerank blends: none, the reranker alone, one weight, a weight by fused rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from fusion_bench.config.models import ByRank
from fusion_bench.config.parameters import Parameter, Params, real, table
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.methods.blend._base import (
    BLENDED,
    DROPPED,
    Blend,
    Blended,
    BlendTerms,
    BlendWeights,
    Fused,
    RerankBlend,
    RetrievalBlend,
    blends,
)


@blends.register
class NoBlend(Blend):
    """``none``: the fused list as it is.

    Source: the fused order, as CONV-07-05 has it where no reranker is set.
    """

    formula: ClassVar[str] = "fused"
    source: ClassVar[str] = "the fused order; CONV-07-05"

    method: str = "none"

    def blend(
        self,
        runs: AlignedRuns,  # noqa: ARG002 - part of the contract
        fused: Fused,
        spaces: Mapping[str, ScoreSpace],  # noqa: ARG002 - part of the contract
    ) -> Blended:
        """Fused scores, one tier."""
        tiers = np.where(fused.positions > 0, BLENDED, DROPPED).astype(np.int8)
        return Blended(fused.scores, tiers, fused.sort_scores)


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


@blends.register
class Linear(RetrievalBlend):
    """``linear``: β·rerank + (1 − β)·retrieval.

    Source: linear interpolation of two scores, as in nablarch's reranking design, 5.3.

    Attributes:
        beta: Weight of the rerank score.
    """

    formula: ClassVar[str] = "β·rerank + (1−β)·retrieval"
    source: ClassVar[str] = "linear interpolation; nablarch 5.3"

    method: str = "linear"
    beta: Annotated[float, Field(ge=0, le=1)] = 1.0

    def space(self) -> tuple[Parameter, ...]:
        """β and the retrieval term."""
        return (real("beta", 0.0, 1.0), *super().space())

    def presets(self) -> tuple[Params, ...]:
        """β = 0.7, the source's other value."""
        return ({"beta": 0.7},)

    def weights_at(self, ranks: IntArray) -> tuple[FloatArray, FloatArray]:
        """(n,) each: 1 − β and β at every rank."""
        return np.full(len(ranks), 1 - self.beta), np.full(len(ranks), self.beta)


Share = Annotated[float, Field(ge=0, le=1)]

#: Ranks that one tier of a searched table may span.
DEEPEST_TIER = 20


@blends.register
class PositionAware(RetrievalBlend):
    """``position_aware``: w·retrieval + (1 − w)·rerank, w by fused rank.

    Source: https://github.com/tobi/qmd; ADR-005 counts its ranks from 0 (≤ 2, ≤ 9).

    Attributes:
        tiers: Fused rank up to which → w: ``{3: 0.75, 10: 0.60}``.
        rest: w beyond the last tier.
    """

    formula: ClassVar[str] = "w·retrieval + (1−w)·rerank, w by fused rank"
    source: ClassVar[str] = "tobi/qmd on GitHub; ADR-005"

    method: str = "position_aware"
    tiers: ByRank[Share] = Field(default_factory=lambda: {3: 0.75, 10: 0.60})
    rest: Share = 0.40

    def space(self) -> tuple[Parameter, ...]:
        """The share and the ranks of each tier, the share beyond them, and the retrieval term."""
        shares = table("tiers", len(self.tiers), 1.0, DEEPEST_TIER)
        return (*shares, real("rest", 0.0, 1.0), *super().space())

    def presets(self) -> tuple[Params, ...]:
        """0.85 on the first tier: the 85/15 that its source names beside 75/25."""
        return ({"tiers.1.value": 0.85},) if self.tiers else ()

    def weights_at(self, ranks: IntArray) -> tuple[FloatArray, FloatArray]:
        """(n,) each: w and 1 − w at these fused ranks."""
        limits = np.array(list(self.tiers), dtype=np.int64)
        shares = np.array([*self.tiers.values(), self.rest])
        weight = shares[np.searchsorted(limits, ranks)]
        return weight, 1 - weight
