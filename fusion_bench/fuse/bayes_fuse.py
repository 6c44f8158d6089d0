"""BayesFuse: the log-odds that the rank in each list speaks for relevance."""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.fuse._base import fusions
from fusion_bench.fuse._fitted_terms import FittedSourceSum
from fusion_bench.fuse._trained import Trainable, is_relevant

#: Last rank of each segment; deeper ranks count as the last one.
LAST_RANKS: Final = np.array([5, 10, 15, 20, 30, 100, 200, 500, 1000])
#: Probabilities stay this far from 0 and 1, whose log-odds are infinite.
LEAST_PROBABILITY: Final = 0.001


@fusions.register
class BayesFuse(Trainable):
    """``bayes_fuse``: Σ_s ln(P_s / (1 − P_s)), with P_s the precision around the document's rank.

    P_s(rank) is the precision of source s over the training queries within ranks 1–5, 6–10, 11–15,
    16–20, 21–30, 31–100, 101–200, 201–500 or 501–1000, but at least .001 and at most .999. Ranks
    that no document has, and unjudged documents, count as not relevant. A source that did not
    return the document adds ln(.001 / .999): unlike elsewhere, absence is evidence.

    Source: Aslam and Montague, "Models for metasearch", SIGIR 2001, section 3.2 (naive Bayes).
    """

    formula: ClassVar[str] = "Σ ln(P(relevant | rank) / P(not relevant | rank))"
    source: ClassVar[str] = "Aslam, Montague 2001"

    method: str = "bayes_fuse"

    def fit(self, runs: AlignedRuns) -> FittedBayesFuse:
        """Measure the precision of each source in each segment."""
        relevant = is_relevant(runs)
        sizes = np.diff(LAST_RANKS, prepend=0) * len(runs.queries)
        odds = {}
        for s, name in enumerate(runs.sources):
            hits = np.bincount(rank_segments(runs.ranks[s])[relevant], minlength=len(sizes) + 1)
            odds[name] = tuple(log_odds(np.array([0, *(hits[1:] / sizes)])).tolist())
        return FittedBayesFuse(
            method=self.method,
            sources=runs.sources,
            fitted_on=frozenset(runs.queries),
            log_odds=odds,
        )


class FittedBayesFuse(FittedSourceSum):
    """``bayes_fuse`` with its log-odds.

    Attributes:
        log_odds: Source → the log-odds of a document that it did not return, then of each segment.
    """

    method: str
    log_odds: dict[str, tuple[float, ...]]

    def source_term(self, runs: AlignedRuns, s: int) -> FloatArray:
        """(N,): the log-odds of the segment of the document's rank."""
        return np.array(self.log_odds[runs.sources[s]])[rank_segments(runs.ranks[s])]


def rank_segments(ranks: IntArray) -> IntArray:
    """(n,): the segment of each rank, from 1; 0 at rank 0."""
    deepest = len(LAST_RANKS) - 1
    return np.where(ranks > 0, np.minimum(np.searchsorted(LAST_RANKS, ranks), deepest) + 1, 0)


def log_odds(probabilities: FloatArray) -> FloatArray:
    """(n,): ln(P / (1 − P)), of probabilities within .001 and .999."""
    bounded = np.clip(probabilities, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    return np.asarray(np.log(bounded / (1 - bounded)))
