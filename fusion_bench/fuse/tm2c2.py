"""The convex combination of scores on a scale that begins where a source's scores can."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.fuse._alpha import AlphaWeightedFusion
from fusion_bench.fuse._base import Homogeneity, ScoreTerms, fusions
from fusion_bench.fuse._engine_form import WeightedMean
from fusion_bench.fuse.weighted_score import WeightedScore
from fusion_bench.normalize.linear import TheoreticalMinMax


@fusions.register
class TM2C2(AlphaWeightedFusion):
    """``tm2c2``: α·φ(semantic) + (1 − α)·φ(keyword), φ(x) = (x − lo) / (max − lo).

    Source: theoretical min-max convex combination of Bruch, Gai and Ingber, "An analysis of fusion
    functions for hybrid retrieval", TOIS 2023. ``lo`` is the least score that a source can give
    (−1 of a cosine, 0 of BM25), not the least that it gave. A document that a source did not return
    has 0 there. More than two sources take ``weights``, which are divided by their sum.

    Example: cosine .6 of at most .8 is φ = 1.6/1.8 = .889, BM25 12 of at most 16 is .75; α = .5
    makes .819 of them.

    Attributes:
        lo: Least possible score by source name or role.
    """

    formula: ClassVar[str] = "Σ w·(score − lo)/(max − lo) / Σ w"
    source: ClassVar[str] = "Bruch, Gai, Ingber, An analysis of fusion functions, TOIS 2023"

    method: str = "tm2c2"
    lo: dict[str, float] = Field(
        default_factory=lambda: {"semantic": -1.0, "keyword": 0.0}, min_length=1
    )

    @property
    def weighted_score(self) -> WeightedScore:
        """The weighted mean that it is."""
        return WeightedScore(
            weights=self.weights,
            alpha=self.alpha,
            normalize=TheoreticalMinMax(lo=self.lo),
            missing="zero",
        )

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the weighted mean of the scaled scores."""
        return self.weighted_score.fuse(runs)

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The weighted, scaled score in each source."""
        return self.weighted_score.score_terms(runs)

    def engine_form(self, runs: AlignedRuns) -> WeightedMean:
        """The weights, and the scaled score of each document in each source."""
        return self.weighted_score.engine_form(runs)

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): from the greatest score of each list; NaN for a query without candidates."""
        return self.weighted_score.max_possible(runs)

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """0: a mean has its weights divided out."""
        return 0
