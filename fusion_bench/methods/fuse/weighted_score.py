"""Weighted scores: mean, sum, distribution-based fusion, TM2C2, sums times the number of lists."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from fusion_bench.config.parameters import Parameter, choice
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, sum_terms
from fusion_bench.methods.fuse._base import (
    AlphaWeightedFusion,
    Homogeneity,
    ScoreTerms,
    WeightedFusion,
    WeightedMean,
    fusions,
)
from fusion_bench.methods.fuse._score_fusion import (
    WeightedScoreFusion,
    check_normalizer,
    fill_missing,
    greatest_scores,
    list_counts,
    returned_by,
    source_counts,
)
from fusion_bench.methods.normalize import AnyNormalizer, search_parameters
from fusion_bench.methods.normalize.linear import DBSF, MinMax, RawScores, TheoreticalMinMax


@fusions.register
class WeightedScore(AlphaWeightedFusion):
    """``weighted_score``: Σ w_s·x_s / Σ w_s over the sources that returned the document.

    Source: with ``missing: zero`` and min-max it is the convex combination of Bruch, Gai and
    Ingber, "An analysis of fusion functions for hybrid retrieval", TOIS 2023; ``skip`` as in
    CONV-07-05.

    Attributes:
        normalize: How each list's scores are scaled first.
        missing: What counts for a source that did not return the document: ``skip`` = nothing (it
            leaves the mean), ``zero`` = 0, ``min`` = its least score for the query (nothing where
            it returned no document for the query).
    """

    formula: ClassVar[str] = "Σ w·score / Σ w"
    source: ClassVar[str] = "Bruch, Gai, Ingber 2023; CONV-07-05"

    method: str = "weighted_score"
    normalize: AnyNormalizer = RawScores()
    missing: Literal["skip", "zero", "min"] = "skip"

    @property
    def keeps_single_list(self) -> bool:
        """As the normalizer does: an inverted or a flattened scale loses the order."""
        return self.normalize.keeps_order

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """0: a mean has its weights divided out."""
        return 0

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """The weights, the normalizer with its space, and how absence counts."""
        return (
            *super().space(sources),
            *search_parameters("normalize"),
            choice("missing", "skip", "zero", "min"),
        )

    def check_sources(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> None:
        """Refuse sources that do not fit the weights, or the normalizer of each source.

        Args:
            sources: All of a system's sources, (S,).
            roles: Of each source, (S,).

        Raises:
            ConfigError: A weight or a normalizer fits no source, or two fit one.
        """
        super().check_sources(sources, roles)
        check_normalizer(self.normalize, sources, roles)

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the weighted mean."""
        return self.score_terms(runs).scores

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """A term a source, over the sum of the weights that count."""
        weights = self.source_weights(runs.sources, runs.roles)[:, None]
        scores = self._filled_scores(runs)
        present = ~np.isnan(scores)
        return ScoreTerms(
            runs.sources,
            tuple(range(len(runs.sources))),
            np.where(present, weights * scores, 0.0),
            sum_terms(np.where(present, weights, 0.0)),
        )

    def engine_form(self, runs: AlignedRuns) -> WeightedMean:
        """The weights, and the score of each document in each source."""
        key = f"{self.missing} {self.normalize.model_dump_json()}"
        weights = self.source_weights(runs.sources, runs.roles)
        return WeightedMean(key, partial(self._filled_scores, runs), weights)

    def _filled_scores(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the score of each document in each source; NaN = it does not count."""
        return fill_missing(runs, self.normalize.normalize_scores(runs), self.missing)

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): from the greatest score of each list; NaN for a query without candidates."""
        weights = self.source_weights(runs.sources, runs.roles)[:, None]
        tops = greatest_scores(runs, self.normalize)
        if self.missing == "skip":
            return np.asarray(np.fmax.reduce(tops, axis=0))
        if self.missing == "zero":
            tops = np.fmax(tops, 0.0)
        present = ~np.isnan(tops)
        total = sum_terms(np.where(present, weights * tops, 0.0))
        share = sum_terms(np.where(present, weights, 0.0))
        out: FloatArray = np.full(len(runs.queries), np.nan)
        np.divide(total, share, out=out, where=share > 0)
        return out


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


WU_CRESTANI = "Wu, Crestani, Data fusion with estimated weights, CIKM 2002"


@fusions.register
class Mixed(WeightedScoreFusion):
    """``mixed``: √n · Σ_s w_s·x_s, n = how many sources returned the document.

    Source: Wu and Crestani, "Data fusion with estimated weights", CIKM 2002, as ranx computes it.

    Example: .8 at weight 2 and .5 at weight 1 in two lists of three give √2 · 2.1 = 2.970.
    """

    formula: ClassVar[str] = "√n · Σ w·score"
    source: ClassVar[str] = WU_CRESTANI

    method: str = "mixed"

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The weighted score in each source, times √n."""
        weighted = self.weight_column(runs) * self.zero_filled(runs)
        return self.source_terms(runs, weighted * np.sqrt(source_counts(runs)))

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the sum of the greatest scores, found by every source that returned anything."""
        weighted = self.weight_column(runs) * self.greatest_parts(runs)
        return np.asarray(sum_terms(weighted * np.sqrt(list_counts(runs))))


@fusions.register
class WMNZ(WeightedScoreFusion):
    """``wmnz``: (Σ_s w_s) · Σ_s x_s, both over the sources that returned the document.

    Source: Wu and Crestani 2002, as for ``mixed``. With equal weights it is ``comb_mnz``.

    Example: .8 at weight 2 and .5 at weight 1 in two lists of three give 3 · 1.3 = 3.9.
    """

    formula: ClassVar[str] = "Σ w · Σ score"
    source: ClassVar[str] = WU_CRESTANI

    method: str = "wmnz"

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The score in each source, times the sum of the weights of all that returned it."""
        share = sum_terms(np.where(returned_by(runs), self.weight_column(runs), 0.0))
        return self.source_terms(runs, self.zero_filled(runs) * share)

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the sum of the greatest scores, times the weights of all that returned anything."""
        share = sum_terms(np.where(runs.lengths > 0, self.weight_column(runs), 0.0))
        return np.asarray(sum_terms(self.greatest_parts(runs) * share))
