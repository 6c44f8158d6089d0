"""One weight for the whole list."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from fusion_bench.blend._base import Fused, blends
from fusion_bench.blend._engine_form import Mixture
from fusion_bench.blend._retrieval_term import RetrievalBlend
from fusion_bench.config.parameters import Parameter, Params, real
from fusion_bench.data.ordering import FloatArray

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

    def space(self) -> tuple[Parameter, ...]:
        """β and the retrieval term."""
        return (real("beta", 0.0, 1.0), *super().space())

    def suggestions(self) -> tuple[Params, ...]:
        """β = 0.7, nablarch's other value."""
        return ({"beta": 0.7},)

    def shares(self, fused: Fused) -> tuple[FloatArray, FloatArray]:
        """(N,) each: 1 − β and β, the same for every document."""
        size = len(fused.positions)
        return np.full(size, 1 - self.beta), np.full(size, self.beta)

    def compiled(self, depth: int) -> Mixture:
        """The same share at every rank."""
        beta = np.full(depth, self.beta)
        return Mixture(self.retrieval, 1 - beta, beta)
