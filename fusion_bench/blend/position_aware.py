"""The retrieval's share by fused rank."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from fusion_bench.blend._base import blends
from fusion_bench.blend._retrieval_blend import RetrievalBlend
from fusion_bench.config.models import ByRank
from fusion_bench.config.parameters import Parameter, Params, real, table
from fusion_bench.data.ordering import FloatArray, IntArray

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
