"""CombMAX, CombMIN and CombMED: one score of a document stands for all of them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.fuse._base import ScoreTerms, fusions
from fusion_bench.fuse._score_fusion import ScoreFusion, returned_by, source_counts
from fusion_bench.fuse.comb_sum import FOX_SHAW


class SelectedScore(ScoreFusion):
    """A fusion that chooses one or two of a document's scores; the others are terms of 0."""

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the greatest score of any list."""
        return np.asarray(np.fmax.reduce(self.greatest_scores(runs), axis=0))


def keep_rows(scores: FloatArray, rows: IntArray) -> FloatArray:
    """(S, N): the scores of one source a document, 0 elsewhere.

    Args:
        scores: (S, N).
        rows: (N,): the source.
    """
    terms: FloatArray = np.zeros(scores.shape)
    np.put_along_axis(terms, rows[None], np.take_along_axis(scores, rows[None], axis=0), axis=0)
    return terms


@fusions.register
class CombMax(SelectedScore):
    """``comb_max``: max_s x_s over the sources that returned the document.

    Source: Fox and Shaw 1994, as for ``comb_sum``. The list with the largest scale decides, unless
    ``normalize`` is set.

    Example: .8 and .5 in two lists of three give .8.
    """

    formula: ClassVar[str] = "max score"
    source: ClassVar[str] = FOX_SHAW

    method: str = "comb_max"

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the greatest score."""
        return np.asarray(np.fmax.reduce(self.normalize.normalize_scores(runs), axis=0))

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The greatest score, in the row of the source that gives it."""
        scores = np.where(returned_by(runs), self.zero_filled(runs), -np.inf)
        return self.source_terms(runs, keep_rows(self.zero_filled(runs), np.argmax(scores, axis=0)))


@fusions.register
class CombMin(SelectedScore):
    """``comb_min``: min_s x_s over the sources that returned the document.

    Source: Fox and Shaw 1994, as for ``comb_sum``. A document of one list has no other score to be
    less than that one.

    Example: .8 and .5 in two lists of three give .5.
    """

    formula: ClassVar[str] = "min score"
    source: ClassVar[str] = FOX_SHAW

    method: str = "comb_min"

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the least score."""
        return np.asarray(np.fmin.reduce(self.normalize.normalize_scores(runs), axis=0))

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The least score, in the row of the source that gives it."""
        scores = np.where(returned_by(runs), self.zero_filled(runs), np.inf)
        return self.source_terms(runs, keep_rows(self.zero_filled(runs), np.argmin(scores, axis=0)))


@fusions.register
class CombMed(SelectedScore):
    """``comb_med``: the median of x_s over the sources that returned the document.

    Source: Fox and Shaw 1994, as for ``comb_sum``. Of an even number it is the mean of the middle
    two, so that with two lists it equals ``comb_anz``.

    Example: .8 and .5 in two lists of three give .65; .8, .5 and .1 in all three give .5.
    """

    formula: ClassVar[str] = "median score"
    source: ClassVar[str] = FOX_SHAW

    method: str = "comb_med"

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the median score, the same as the terms give, without looking for its source."""
        rows = list(np.where(returned_by(runs), self.zero_filled(runs), np.inf))  # absent ones last
        for last in range(len(rows) - 1, 0, -1):  # numpy sorts many short columns far slower
            for s in range(last):
                low = np.minimum(rows[s], rows[s + 1])
                rows[s], rows[s + 1] = low, np.maximum(rows[s], rows[s + 1])
        counts, columns = source_counts(runs), np.arange(len(runs.documents))
        ordered = np.array(rows)
        return np.asarray((ordered[(counts - 1) // 2, columns] + ordered[counts // 2, columns]) / 2)

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The middle score or two, in the rows of the sources that give them."""
        scores = np.where(returned_by(runs), self.zero_filled(runs), np.inf)  # absent ones last
        order = np.argsort(scores, axis=0, kind="stable")
        counts = source_counts(runs)
        lower, upper = (
            np.take_along_axis(order, place[None], axis=0)[0]
            for place in ((counts - 1) // 2, counts // 2)
        )
        terms = keep_rows(self.zero_filled(runs), lower)
        is_pair = lower != upper
        terms += np.where(is_pair, keep_rows(self.zero_filled(runs), upper), 0.0)
        return self.source_terms(runs, terms, np.where(is_pair, 2.0, 1.0))
