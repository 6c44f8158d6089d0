"""One weight for the whole list."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from fusion_bench.blend._base import blends
from fusion_bench.blend._retrieval_blend import RetrievalBlend
from fusion_bench.config.parameters import Parameter, Params, real
from fusion_bench.data.ordering import FloatArray, IntArray


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
