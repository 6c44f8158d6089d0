"""Engines' sums: one term a source, of its rank or of its scaled score."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, sum_terms
from fusion_bench.engines._dialects.canonical import EngineFusion
from fusion_bench.fuse import Homogeneity, RankSum, ScoreTerms


class TermSum(EngineFusion):
    """Σ_s of one term a source; a source that did not return the document adds 0."""

    @abstractmethod
    def source_terms(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the weighted term of each source; 0 where it adds nothing."""

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the sum of the terms."""
        return self.score_terms(runs).scores

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """One term a source."""
        return ScoreTerms(
            runs.sources,
            tuple(range(len(runs.sources))),
            self.source_terms(runs),
            np.ones(len(runs.documents)),
        )

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """1: the weights are factors of the terms."""
        return 1


class RankTermSum(TermSum):
    """Σ_s of a term that depends on the rank in the source and on its weight alone."""

    @abstractmethod
    def term_at(self, ranks: IntArray, weight: float) -> FloatArray:
        """(n,): the term at each rank from 1."""

    def _tables(self, runs: AlignedRuns) -> FloatArray:
        """(S, D+1): the term of each source at each rank; 0 at rank 0."""
        weights = self.source_weights(runs.sources, runs.roles)
        ranks = np.arange(1, runs.max_rank + 1)
        tables: FloatArray = np.zeros((len(weights), runs.max_rank + 1))
        for row, weight in zip(tables, weights.tolist(), strict=True):
            row[1:] = self.term_at(ranks, weight)
        return tables

    def source_terms(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the term at the rank of each document; 0 where it was not returned."""
        tables = self._tables(runs)
        return np.array([table[ranks] for table, ranks in zip(tables, runs.ranks, strict=True)])

    def engine_form(self, runs: AlignedRuns) -> RankSum:
        """The terms at every rank there is."""
        return RankSum(tuple((s,) for s in range(len(runs.sources))), self._tables(runs), 1.0)

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the score of a document that every source ranks first."""
        weights = self.source_weights(runs.sources, runs.roles).tolist()
        first = np.array([1])
        greatest = sum_terms(np.array([self.term_at(first, weight) for weight in weights]))
        return np.full(len(runs.queries), float(greatest[0]))


class ScaledScoreSum(TermSum):
    """Σ_s w_s·x_s, x_s the scaled score of the document in the source."""

    @abstractmethod
    def scaled_scores(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the scaled scores; NaN where a source did not return the document."""

    def source_terms(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the weighted scores; 0 where there is none."""
        weights = self.source_weights(runs.sources, runs.roles)[:, None]
        scores = self.scaled_scores(runs)
        return np.where(np.isnan(scores), 0.0, weights * scores)
