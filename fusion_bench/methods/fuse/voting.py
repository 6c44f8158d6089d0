"""Fusions by vote: Borda count, Condorcet."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, sum_terms
from fusion_bench.methods.fuse._base import (
    ScoreTerms,
    SourceSumFusion,
    TermFusion,
    WeightedFusion,
    fusions,
)


@fusions.register
class Borda(WeightedFusion, SourceSumFusion):
    """``borda``: Σ_s w_s · points_s: |C| − r_s + 1 for a document at rank r_s of a list.

    C are the documents that any source returned for the query. A list of n documents has points
    for |C|, and divides what its documents leave among the others: (|C| − n + 1)/2 for each.
    Of four documents, a list of two gives 4, 3, and 1.5 for each of the other two.

    Source: Aslam and Montague, "Models for metasearch", SIGIR 2001 (Borda-fuse). The
    paper's weights are the average precision of each system on training queries, here they are
    given or tuned.
    """

    homogeneity = 1
    formula = "Σ w·points: |C| − rank + 1, or an equal share of the rest"
    source = "Aslam, Montague 2001"

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


#: All votes together, where they are weighted: votes are counted in whole units.
ALL_VOTES: Final = 1 << 40
#: Votes are rounded to a millionth of a millionth of all votes: nearer ones tie, so that neither
#: the order of the sources nor the scale of the weights decides a tie.
UNDECIDED_VOTES: Final = 64
#: Pairs of documents that are compared at once, to bound the memory.
PAIRS_AT_ONCE: Final = 1 << 20


@fusions.register
class Condorcet(WeightedFusion, TermFusion):
    """``condorcet``: 1 + the documents that it beats + half of those that it ties with.

    Of two documents, one beats the other if more lists rank it above. A list that returned one of
    them ranks that one above; a list that returned neither does not vote. The order is Copeland's:
    where no two documents tie and no majorities go round in a circle, it is the one order that all
    majorities agree with, and the best of n documents scores n, the next n - 1.

    Documents whose majorities go round in a circle (a beats b, b beats c, c beats a) stay together:
    below all that beat each of them, above all that each of them beats. Equal scores go by the tie
    rule. The paper sorts by the votes instead, so that a tie, or a circle, goes by the order in
    which its quicksort meets the documents; here no order of sources or documents decides.

    Two lists, a b c and b a d: a and b tie, both beat c and d, which tie:
    a and b score 1 + 2 + 1/2, c and d score 1 + 1/2.

    Source: Montague and Aslam, "Condorcet fusion for improved retrieval", CIKM 2002 (the votes);
    Copeland, "A reasonable social welfare function", 1951 (the order). The paper's weights, which
    each vote counts, are the average precision of each system on training queries, here they are
    given or tuned.
    """

    homogeneity = 0
    formula = "1 + documents it beats + ½·documents it ties with, by majority"
    source = "Montague, Aslam 2002; Copeland 1951"

    method: str = "condorcet"

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """1, the documents that it beats, and half of those that it ties with."""
        wins, ties = self._count_pairs(runs)
        terms = np.stack([np.ones(len(wins)), wins, ties / 2])
        labels = ("itself", "documents beaten", "half of documents tied with")
        return ScoreTerms(labels, (None, None, None), terms, np.ones(len(wins)))

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the number of candidates, all but one of them beaten."""
        return np.maximum(np.diff(runs.offsets), 1).astype(np.float64)

    def _count_votes(self, runs: AlignedRuns) -> tuple[IntArray, int]:
        """(S,): what each source's vote counts, in whole units; how many of them decide nothing."""
        weights = self.source_weights(runs.sources, runs.roles)
        if (weights == weights[0]).all():
            return np.ones(len(weights), dtype=np.int64), 0
        shares = weights / math.fsum(weights.tolist())
        return np.rint(shares * ALL_VOTES).astype(np.int64), UNDECIDED_VOTES

    def _count_pairs(self, runs: AlignedRuns) -> tuple[IntArray, IntArray]:
        """(N,) each: how many documents of its query each candidate beats, and ties with."""
        units, undecided = self._count_votes(runs)
        units = units.astype(np.min_scalar_type(-int(units.sum()) - 1))
        places = np.where(runs.ranks > 0, runs.ranks, runs.max_rank + 1)
        places = places.astype(np.min_scalar_type(runs.max_rank + 1))
        wins, ties = (np.zeros(len(runs.documents), dtype=np.int64) for _ in range(2))
        for start, stop in pairwise(runs.offsets.tolist()):
            rows = max(PAIRS_AT_ONCE // max(stop - start, 1), 1)
            for first in range(start, stop, rows):
                block = slice(first, min(first + rows, stop))
                margins = _vote_margins(places[:, block], places[:, start:stop], units)
                wins[block] = np.count_nonzero(margins > undecided, axis=1)
                losses = np.count_nonzero(margins < -undecided, axis=1)
                ties[block] = stop - start - 1 - wins[block] - losses
        return wins, ties


def _vote_margins(
    places: NDArray[np.generic], all_places: NDArray[np.generic], units: NDArray[np.signedinteger]
) -> NDArray[np.signedinteger]:
    """(m, n): votes for each of m documents over each of n, less those against it.

    Args:
        places: (S, m) ranks, those that a list did not return below all others.
        all_places: (S, n).
        units: (S,): what each source's vote counts.
    """
    margins = np.zeros((places.shape[1], all_places.shape[1]), dtype=units.dtype)
    for unit, rows, columns in zip(units, places, all_places, strict=True):
        above = np.less.outer(rows, columns).view(np.int8)
        above -= np.greater.outer(rows, columns).view(np.int8)
        margins += above if unit == 1 else above * unit
    return margins
