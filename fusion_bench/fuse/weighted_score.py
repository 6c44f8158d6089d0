"""Weighted mean of scores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from fusion_bench.config.parameters import Parameter, choice
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, sum_terms
from fusion_bench.fuse._alpha import AlphaWeightedFusion
from fusion_bench.fuse._base import Homogeneity, ScoreTerms, fusions
from fusion_bench.fuse._engine_form import WeightedMean
from fusion_bench.fuse._score_fusion import check_normalizer, fill_missing, greatest_scores
from fusion_bench.normalize import AnyNormalizer, search_parameters
from fusion_bench.normalize.linear import RawScores


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
