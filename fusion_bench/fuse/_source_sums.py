"""Fusions whose score is a sum of one term a source that depends on more than a rank."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.fuse._base import Fusion, ScoreTerms


class SourceSumFusion(Fusion):
    """A fusion that states its :meth:`source_terms`; the score is their sum."""

    @abstractmethod
    def source_terms(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): what each source adds to the score of each candidate."""

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the correctly rounded sum of the terms."""
        return self.score_terms(runs).scores

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """A term a source."""
        terms = self.source_terms(runs)
        sources = tuple(range(len(runs.sources)))
        return ScoreTerms(runs.sources, sources, terms, np.ones(len(runs.documents)))
