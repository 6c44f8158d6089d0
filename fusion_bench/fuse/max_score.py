"""The greatest scaled score of a document."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.fuse._base import ScoreTerms, fusions
from fusion_bench.fuse._score_fusion import WeightedScoreFusion, returned_by
from fusion_bench.fuse.comb_max import keep_rows
from fusion_bench.normalize import AnyNormalizer
from fusion_bench.normalize.linear import MinMax


@fusions.register
class MaxScore(WeightedScoreFusion):
    """``max_score``: max_s w_s·x_s over the sources that returned the document, x scaled.

    Source: ``score_max`` of openJiuwen (pull request 322), which scales each list first; with
    equal weights it is CombMAX (Fox and Shaw 1994) of min-max scores.

    Example: .8 at weight 1 and .5 at weight 2 give 1.
    """

    formula: ClassVar[str] = "max w·score"
    source: ClassVar[str] = "openJiuwen; Fox, Shaw 1994"

    method: str = "max_score"
    normalize: AnyNormalizer = MinMax()

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The greatest weighted score, in the row of the source that gives it."""
        weighted = self.weight_column(runs) * self.zero_filled(runs)
        rows = np.argmax(np.where(returned_by(runs), weighted, -np.inf), axis=0)
        return self.source_terms(runs, keep_rows(weighted, rows))

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the greatest weighted score of any list."""
        weighted = self.weight_column(runs) * self.greatest_scores(runs)
        return np.asarray(np.fmax.reduce(weighted, axis=0))
