"""The CombSUM family: sums of scores, one score that stands for all, the greatest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from fusion_bench.config.parameters import Parameter, real
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, sum_terms
from fusion_bench.methods.fuse._base import ScoreTerms, fusions
from fusion_bench.methods.fuse._score_fusion import (
    ScoreFusion,
    WeightedScoreFusion,
    list_counts,
    returned_by,
    source_counts,
)
from fusion_bench.methods.normalize import AnyNormalizer
from fusion_bench.methods.normalize.linear import MinMax

FOX_SHAW = "Fox, Shaw, Combination of multiple searches, TREC-2 1994"
#: Greatest exponent that a search tries.
GREATEST_GAMMA = 2.0


@fusions.register
class CombSum(ScoreFusion):
    """``comb_sum``: Σ_s x_s over the sources that returned the document.

    Source: Fox and Shaw, "Combination of multiple searches", TREC-2 1994. They add the scores as
    they are; where the lists differ in scale, set ``normalize``.

    Example: a document with .8 and .5 in two lists of three has 1.3.
    """

    formula: ClassVar[str] = "Σ score"
    source: ClassVar[str] = FOX_SHAW

    method: str = "comb_sum"

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The score in each source."""
        return self.source_terms(runs, self.zero_filled(runs))

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the sum of the greatest scores."""
        return np.asarray(sum_terms(self.greatest_parts(runs)))


@fusions.register
class CombAnz(ScoreFusion):
    """``comb_anz``: Σ_s x_s / n, n = how many sources returned the document.

    Source: Fox and Shaw 1994, as for ``comb_sum``. It equals ``weighted_score`` with equal weights
    and ``missing: skip``: a document of one list beats one of two lists with a lower mean.

    Example: .8 and .5 in two lists of three give .65.
    """

    formula: ClassVar[str] = "Σ score / n"
    source: ClassVar[str] = FOX_SHAW

    method: str = "comb_anz"

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The score in each source, over how many returned the document."""
        counts = source_counts(runs).astype(np.float64)
        return self.source_terms(runs, self.zero_filled(runs), counts)

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the greatest score of any list."""
        return np.asarray(np.fmax.reduce(self.greatest_scores(runs), axis=0))


class MultipliedSum(ScoreFusion):
    """A sum that is multiplied by a number for each n = how many sources returned the document."""

    def factors(self, most: int) -> FloatArray:
        """(most+1,): the factor for each n, from 0."""
        return np.arange(most + 1, dtype=np.float64)

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The score in each source times the factor."""
        factors = self.factors(len(runs.sources))[source_counts(runs)]
        return self.source_terms(runs, self.zero_filled(runs) * factors)

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the sum of the greatest scores, found by every source that returned anything."""
        factors = self.factors(len(runs.sources))[list_counts(runs)]
        return np.asarray(sum_terms(self.greatest_parts(runs) * factors))


@fusions.register
class CombMnz(MultipliedSum):
    """``comb_mnz``: n · Σ_s x_s, n = how many sources returned the document.

    Source: Fox and Shaw 1994, as for ``comb_sum``. Lee, "Analyses of multiple evidence
    combination", SIGIR 1997, finds it best after min-max normalization. Negative scores are
    punished for being found twice.

    Example: .8 and .5 in two lists of three give 2.6.
    """

    formula: ClassVar[str] = "n · Σ score"
    source: ClassVar[str] = FOX_SHAW

    method: str = "comb_mnz"


@fusions.register
class CombGmnz(MultipliedSum):
    """``comb_gmnz``: n^γ · Σ_s x_s, n = how many sources returned the document.

    Source: Lee, "Analyses of multiple evidence combination", SIGIR 1997, whose γ weighs how many
    lists agree: 0 = ``comb_sum``, 1 = ``comb_mnz``.

    Example: γ = 2 makes 4 · 1.3 = 5.2 of .8 and .5 in two lists of three.

    Attributes:
        gamma: γ, at least 0.
    """

    formula: ClassVar[str] = "n^γ · Σ score"
    source: ClassVar[str] = "Lee, Analyses of multiple evidence combination, SIGIR 1997"

    method: str = "comb_gmnz"
    gamma: Annotated[float, Field(ge=0, le=100)] = 1.0

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """γ, and the normalizer."""
        return (real("gamma", 0.0, GREATEST_GAMMA), *super().space(sources))

    def factors(self, most: int) -> FloatArray:
        """(most+1,): n^γ for each n."""
        return np.asarray(super().factors(most) ** self.gamma)


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
