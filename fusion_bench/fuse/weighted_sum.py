"""The weighted sum of scores, and distribution-based score fusion, which is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from fusion_bench.config.parameters import Parameter, choice
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, sum_terms
from fusion_bench.fuse._alpha import AlphaWeightedFusion
from fusion_bench.fuse._base import Homogeneity, ScoreTerms, WeightedFusion, fusions
from fusion_bench.fuse._score_fusion import WeightedScoreFusion, fill_missing
from fusion_bench.normalize import AnyNormalizer
from fusion_bench.normalize.linear import MinMax
from fusion_bench.normalize.spread import DBSF


@fusions.register
class WeightedSum(WeightedScoreFusion, AlphaWeightedFusion):
    """``weighted_sum``: Σ_s w_s·x_s, not divided by Σ w.

    Source: linear combination, as ``wsum`` of ranx; Bruch, Gai and Ingber 2023 for two lists whose
    weights add up to 1.

    Example: .8 at weight 2 and .5 at weight 1 give 2.1.

    Attributes:
        missing: What counts for a source that did not return the document: ``zero`` = 0, ``min`` =
            its least score for the query (0 where it returned nothing for the query).
    """

    formula: ClassVar[str] = "Σ w·score"
    source: ClassVar[str] = "linear combination; ranx (wsum); Bruch, Gai, Ingber 2023"

    method: str = "weighted_sum"
    normalize: AnyNormalizer = MinMax()
    missing: Literal["zero", "min"] = "zero"

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """The weights, the normalizer with its space, and how absence counts."""
        return (*super().space(sources), choice("missing", "zero", "min"))

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The weighted score in each source."""
        scores = self.zero_filled(runs)
        if self.missing == "min":
            filled = fill_missing(runs, self.normalize.normalize_scores(runs), "min")
            scores = np.where(np.isnan(filled), 0.0, filled)
        return self.source_terms(runs, self.weight_column(runs) * scores)

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the sum of the weighted greatest scores, or of 0 where being absent gives more."""
        parts = self.greatest_parts(runs)
        if self.missing == "min":  # being absent gives no more than the least score
            parts = np.nan_to_num(self.greatest_scores(runs))
        return np.asarray(sum_terms(self.weight_column(runs) * parts))


@fusions.register
class DistributionBasedFusion(WeightedFusion):
    """``dbsf``: Σ_s w_s·x_s, x the score on [mean − 3·sd, mean + 3·sd] of its list, as 0 to 1.

    Source: distribution-based score fusion as in Qdrant (``lib/segment/src/common/score_fusion.rs``
    at 10ef9ee): sample standard deviation, .5 in a list of equal scores or of one document, and
    nothing clipped. Qdrant computes in float32.

    Example: a list 3, 2, 1 has mean 2 and sd 1, so that its scores become .667, .5 and .333.

    Attributes:
        clip: Whether scores beyond three standard deviations become 0 and 1.
    """

    formula: ClassVar[str] = "Σ w·(score − (mean − 3·sd)) / (6·sd)"
    source: ClassVar[str] = "Mazzeschi 2023; Qdrant"

    method: str = "dbsf"
    clip: bool = False

    @property
    def weighted_sum(self) -> WeightedSum:
        """The weighted sum that it is."""
        return WeightedSum(weights=self.weights, normalize=DBSF(constant=0.5, clip=self.clip))

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the weighted sum of the scaled scores."""
        return self.score_terms(runs).scores

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The weighted, scaled score in each source."""
        return self.weighted_sum.score_terms(runs)

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the sum of the weighted greatest scores."""
        return self.weighted_sum.max_possible(runs)

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """1: weights are factors of every term."""
        return 1

    @property
    def keeps_single_list(self) -> bool:
        """Only if nothing is clipped."""
        return not self.clip
