"""Forms of a fusion that the batch engine evaluates without knowing any method by name.

A fusion of one of these forms is evaluated by counting instead of sorting. Scores come from the
same expressions as :meth:`Fusion.fuse`, bit by bit; of two forms the batch engine computes fewer of
them, and any other method has the form :class:`CandidateScores`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, sum_terms
from fusion_bench.data.view_cache import cached_by_view

#: Normalized scores that a view remembers for the batch engine.
FEATURES_KEPT = 2
#: Fusions whose scores a view remembers at least, and how many scores in all if that is more.
SCORES_KEPT, SCORE_BUDGET = 8, 4_000_000


@dataclass(frozen=True, eq=False)
class RankSum:
    """A sum of terms that depend on ranks alone, over one divisor.

    Attributes:
        columns: (C,): rows of the sources that each term looks at; their best rank counts.
        tables: (C, D+1): the term at each rank up to D; at index 0, where none returned it.
        divisor: What the correctly rounded sum is divided by; above 0.
        ceiling: Displayed scores are clamped to it.
    """

    columns: tuple[tuple[int, ...], ...]
    tables: FloatArray
    divisor: float
    ceiling: float = np.inf

    def scores(self, runs: AlignedRuns, candidates: IntArray) -> FloatArray:
        """(n,): what :meth:`Fusion.fuse` gives these candidates, to the last bit."""
        terms = [
            table[best_ranks(np.array([runs.ranks[s][candidates] for s in column]))]
            for column, table in zip(self.columns, self.tables, strict=True)
        ]
        return np.asarray(sum_terms(np.array(terms)) / self.divisor)


@dataclass(frozen=True, eq=False)
class WeightedMean:
    """Σ w_s·x_s / Σ w_s over the sources whose score for the document counts.

    Attributes:
        key: Two fusions of one key have the same features on the same runs.
        features: Computes the (S, N) x_s; NaN = does not count.
        weights: (S,): above 0.
        ceiling: Displayed scores are clamped to it.
    """

    key: str
    features: Callable[[], FloatArray]
    weights: FloatArray
    ceiling: float = np.inf

    def all_features(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the features, remembered."""
        return _features(runs, self)

    def scores(self, runs: AlignedRuns, candidates: IntArray) -> FloatArray:
        """(n,): what :meth:`Fusion.fuse` gives these candidates, to the last bit."""
        features = np.array([row[candidates] for row in self.all_features(runs)])
        present = ~np.isnan(features)
        weights = self.weights[:, None]
        total = sum_terms(np.where(present, weights * features, 0.0))
        return np.asarray(total / sum_terms(np.where(present, weights, 0.0)))


@dataclass(frozen=True, eq=False)
class CandidateScores:
    """Scores that :meth:`Fusion.fuse` computes, all of them at once.

    Attributes:
        key: Two fusions of one key have the same scores on the same runs.
        compute: Computes the (N,) scores.
        ceiling: Displayed scores are clamped to it.
    """

    key: str
    compute: Callable[[], FloatArray]
    ceiling: float = np.inf

    def all_scores(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the scores, remembered."""
        keep = max(SCORES_KEPT, SCORE_BUDGET // max(len(runs.documents), 1))
        return runs.cache.lookup(CandidateScores.all_scores, self.key, self.compute, keep)

    def scores(self, runs: AlignedRuns, candidates: IntArray) -> FloatArray:
        """(n,): what :meth:`Fusion.fuse` gives these candidates, to the last bit."""
        return np.asarray(self.all_scores(runs)[candidates])


@cached_by_view(keep=FEATURES_KEPT, key=lambda mean: mean.key)
def _features(runs: AlignedRuns, mean: WeightedMean) -> FloatArray:  # noqa: ARG001 - cached in it
    return mean.features()


def best_ranks(ranks: IntArray) -> IntArray:
    """(n,): the best of (C, n) ranks; 0 where all are 0."""
    if len(ranks) == 1:
        return np.asarray(ranks[0])
    nowhere = np.iinfo(np.int64).max
    best = np.min(np.where(ranks > 0, ranks, nowhere), axis=0, initial=nowhere)
    return np.where(best == nowhere, 0, best)


EngineForm: TypeAlias = RankSum | WeightedMean | CandidateScores
