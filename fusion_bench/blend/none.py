"""No reranking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from fusion_bench.blend._base import BLENDED, DROPPED, Blend, Blended, Fused, blends
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.records import ScoreSpace


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
