"""The reranker only where the fused list does not settle the query itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from fusion_bench.config.limits import Rank
from fusion_bench.config.parameters import Parameter, choice, real
from fusion_bench.data.ordering import FloatArray
from fusion_bench.policies._base import Choice, Policy, Variant, policies
from fusion_bench.policies._features import DEPTH, QueryFeatures, relative_gap, variation

VARIANTS = (Variant(), Variant(rerank=False))


@policies.register
class RerankWhenAmbiguous(Policy):
    """``rerank_when_ambiguous``: rerank a query only where its fused list has no clear winner.

    Source: archex, pull request 348 (conditional reranker), which reads the variation of BM25
    scores. Here the fused list is read. Its point is to save calls: see the share of queries that
    are reranked beside the quality.

    Example: fused scores 8, 4, 2, 0 have a gap of (8 − 4)/(8 − 0) = .5: above the threshold of .3,
    so the query is not reranked.

    Attributes:
        signal: ``gap`` = (first − second) / (first − last) of the top scores; ``variation`` =
            their standard deviation over their mean.
        depth: Number of top scores.
        threshold: Rerank where the signal is below this.
    """

    formula: ClassVar[str] = "rerank where the gap or variation of the fused scores < threshold"
    source: ClassVar[str] = "archex pull request 348"
    needs_reranker: ClassVar[bool] = True

    method: str = "rerank_when_ambiguous"
    signal: Literal["gap", "variation"] = "gap"
    depth: Annotated[Rank, Field(ge=2)] = DEPTH
    threshold: Annotated[float, Field(ge=0)] = 0.3

    def choose(self, features: QueryFeatures) -> Choice:
        """0 = rerank, 1 = do not."""
        signal = self._measure_signal(features)
        return Choice((signal >= self.threshold).astype(np.int64), VARIANTS)

    def _measure_signal(self, features: QueryFeatures) -> FloatArray:
        """(Q,): gap or variation of the fused scores."""
        top = features.fused_top_scores(self.depth)
        return relative_gap(top) if self.signal == "gap" else variation(top)

    def explain_choice(self, features: QueryFeatures) -> str:
        """The signal beside the threshold."""
        value = float(self._measure_signal(features)[0])
        is_reranked = value < self.threshold
        return (
            f"{'reranked' if is_reranked else 'not reranked'}, because the {self.signal} of the "
            f"first {self.depth} fused scores is {value:.4g}, "
            f"{'below' if is_reranked else 'not below'} {self.threshold:g}"
        )

    def fixed_variants(self) -> tuple[Variant, ...]:
        """Always and never."""
        return VARIANTS

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - no other
        """Signal and threshold."""
        return choice("signal", "gap", "variation"), real("threshold", 0.0, 1.0)
