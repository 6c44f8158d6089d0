"""Fitted fusions whose score is a sum of one term a source."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.fuse._base import ScoreTerms
from fusion_bench.fuse._trained import FittedFusion


class FittedSourceSum(FittedFusion):
    """A fitted fusion that states its :meth:`source_term`; the score is their sum."""

    @abstractmethod
    def source_term(self, runs: AlignedRuns, s: int) -> FloatArray:
        """(N,): what source ``s`` adds to the score of each candidate; 0 where it has it not."""

    def compute_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """A term a source."""
        sources = tuple(range(len(runs.sources)))
        terms = np.array([self.source_term(runs, s) for s in sources])
        return ScoreTerms(runs.sources, sources, terms, np.ones(len(runs.documents)))
