"""Borda count: every source is a voter who hands out points."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, sum_terms
from fusion_bench.fuse._base import Homogeneity, WeightedFusion, fusions
from fusion_bench.fuse._source_sums import SourceSumFusion


@fusions.register
class Borda(SourceSumFusion):
    """``borda``: Σ_s points_s: |C| − r_s + 1 for a document at rank r_s of a list.

    C are the documents that any source returned for the query. A list of n documents has points
    for |C|, and divides what its documents leave among the others: (|C| − n + 1)/2 for each.
    Of four documents, a list of two gives 4, 3, and 1.5 for each of the other two.

    Source: Aslam and Montague, "Models for metasearch", SIGIR 2001 (Borda-fuse).
    """

    formula: ClassVar[str] = "Σ points: |C| − rank + 1, or an equal share of the rest"
    source: ClassVar[str] = "Aslam, Montague 2001"

    method: str = "borda"

    def source_terms(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the points from each source, times its weight."""
        weights = self.source_weights(runs.sources, runs.roles)[:, None]
        pool = np.diff(runs.offsets)
        shares = ((pool - runs.lengths + 1) / 2)[:, runs.query_index]
        points = np.where(runs.ranks > 0, pool[runs.query_index] - (runs.ranks - 1), shares)
        return np.asarray(weights * points)

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): |C| from every source."""
        weights = self.source_weights(runs.sources, runs.roles)
        return sum_terms(weights[:, None] * np.maximum(np.diff(runs.offsets), 1))


@fusions.register
class WeightedBorda(WeightedFusion, Borda):
    """``weighted_borda``: Σ_s w_s · points_s, with the points of ``borda``.

    Source: as of ``borda``; the paper's weights are the average precision of each system on
    training queries, here they are given or tuned.
    """

    formula: ClassVar[str] = "Σ w·points, with the points of borda"

    method: str = "weighted_borda"

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """1: all terms have the weight of a source as a factor."""
        return 1
