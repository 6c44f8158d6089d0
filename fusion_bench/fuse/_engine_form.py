"""What a fusion may tell the engine about itself, so that the engine knows no method by name.

A fusion that fits one of these forms can be evaluated by counting instead of sorting. The exact
numbers come from the same expressions as :meth:`Fusion.fuse`, term by term and bit by bit; the
engine only decides how few documents it needs them for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, sum_terms

__all__ = ["Compiled", "RankSum", "WeightedMean", "best_ranks"]

#: Normalised scores that a view remembers for the engine.
FEATURES_KEPT = 2


@dataclass(frozen=True, eq=False)
class RankSum:
    """A sum of terms that depend on ranks alone, over one divisor.

    Attributes:
        columns: (C,): which sources each term looks at; it goes by the best rank among them.
        tables: (C, D+1): the term at each rank up to D; at index 0, of what none of them returned.
        divisor: What the correctly rounded sum is divided by; above 0.
        ceiling: What the fusion reports no score above.
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
    """Σ w_s·x_s / Σ w_s over the sources that say something of the document.

    Attributes:
        key: Two fusions of one key have the same features on the same runs.
        features: Makes the (S, N) x_s; NaN = nothing.
        weights: (S,): above 0.
        ceiling: What the fusion reports no score above.
    """

    key: str
    features: Callable[[], FloatArray]
    weights: FloatArray
    ceiling: float = np.inf

    def all_features(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the features, remembered."""
        return runs.memo(("means", self.key), self.features, keep=FEATURES_KEPT)

    def scores(self, runs: AlignedRuns, candidates: IntArray) -> FloatArray:
        """(n,): what :meth:`Fusion.fuse` gives these candidates, to the last bit."""
        features = np.array([row[candidates] for row in self.all_features(runs)])
        counted = ~np.isnan(features)
        weights = self.weights[:, None]
        total = sum_terms(np.where(counted, weights * features, 0.0))
        return np.asarray(total / sum_terms(np.where(counted, weights, 0.0)))


def best_ranks(ranks: IntArray) -> IntArray:
    """(n,): the best of (C, n) ranks; 0 where all are 0."""
    if len(ranks) == 1:
        return np.asarray(ranks[0])
    nowhere = np.iinfo(np.int64).max
    best = np.min(np.where(ranks > 0, ranks, nowhere), axis=0, initial=nowhere)
    return np.where(best == nowhere, 0, best)


Compiled: TypeAlias = RankSum | WeightedMean
