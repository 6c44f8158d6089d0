"""Weighted sums that grow with the number of lists that returned the document."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, sum_terms
from fusion_bench.fuse._base import ScoreTerms, fusions
from fusion_bench.fuse._score_fusion import (
    WeightedScoreFusion,
    list_counts,
    returned_by,
    source_counts,
)

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
