"""Fusions fitted to how often each place of a list was relevant: ProbFuse, SegFuse, BayesFuse."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field, SerializeAsAny

from fusion_bench.config.parameters import Parameter, choice, integer
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray, sum_terms
from fusion_bench.measures import compute_measures, parse_measure
from fusion_bench.methods.fuse._base import ScoreTerms, fusions, make_source_terms
from fusion_bench.methods.fuse._trained import FittedFusion, Trainable, is_relevant
from fusion_bench.methods.normalize import AnyNormalizer, normalizers
from fusion_bench.methods.normalize.linear import MinMax


class SourceRates(Trainable):
    """A fusion that learns some numbers of each source; the score is the sum of a term a source."""

    @abstractmethod
    def learn_source(self, runs: AlignedRuns, s: int) -> FloatArray:
        """What judged queries say of source ``s``."""

    @abstractmethod
    def source_term(self, runs: AlignedRuns, s: int, learned: FloatArray) -> FloatArray:
        """(N,): what source ``s`` adds to each score, by what was learned of it."""

    def orders_list(self, learned: Mapping[str, tuple[float, ...]]) -> bool:  # noqa: ARG002 - of some
        """Whether terms by these numbers keep the order of every single list."""
        return False

    def fit(self, runs: AlignedRuns) -> FittedRates:
        """Learn from each source."""
        numbers = (self.learn_source(runs, s).tolist() for s in range(len(runs.sources)))
        learned = dict(zip(runs.sources, map(tuple, numbers), strict=True))
        return self.make_fitted(FittedRates, runs, settings=self, learned=learned)


class FittedRates(FittedFusion):
    """A fusion with the numbers that it learned of each source.

    Attributes:
        settings: The fusion.
        learned: Source → its numbers.
    """

    settings: SerializeAsAny[SourceRates]
    learned: dict[str, tuple[float, ...]]

    def compute_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """A term a source."""
        terms = [
            self.settings.source_term(runs, s, np.array(self.learned[name]))
            for s, name in enumerate(runs.sources)
        ]
        return make_source_terms(runs, np.array(terms))

    @property
    def keeps_single_list(self) -> bool:
        """Whether what was learned keeps the order of a single list."""
        return self.settings.orders_list(self.learned)


def _relevant_shares(
    runs: AlignedRuns, segment: IntArray, segments: int, *, judged_only: bool = False
) -> FloatArray:
    """(K,): the mean over all queries of the share of relevant documents in each segment.

    A query without documents in a segment counts as 0 there.

    Args:
        runs: Judged queries.
        segment: Shape (N,): 1 … K, or 0 for documents that do not count.
        segments: K.
        judged_only: The share of the judged documents, not of all.
    """
    shape = (len(runs.queries), segments + 1)

    def count(is_counted: BoolArray) -> IntArray:
        cells = (runs.query_index * shape[1] + segment)[is_counted]
        return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)[:, 1:]

    everything = runs.judged if judged_only else np.ones(len(segment), dtype=bool)
    shares = count(is_relevant(runs)) / np.maximum(count(everything), 1)
    return np.asarray(sum_terms(shares) / shape[0])  # rounded once: no order of queries matters


#: Last rank of each segment; deeper ranks count as the last one.
BAYES_LAST_RANKS: Final = np.array([5, 10, 15, 20, 30, 100, 200, 500, 1000])
#: Probabilities stay this far from 0 and 1, whose log-odds are infinite.
LEAST_PROBABILITY: Final = 0.001


@fusions.register
class BayesFuse(SourceRates):
    """``bayes_fuse``: Σ_s ln(P_s / (1 − P_s)), with P_s the precision around the document's rank.

    P_s(rank) is the precision of source s over the training queries within ranks 1–5, 6–10, 11–15,
    16–20, 21–30, 31–100, 101–200, 201–500 or 501–1000, but at least .001 and at most .999. Ranks
    that no document has, and unjudged documents, count as not relevant. A source that did not
    return the document adds ln(.001 / .999): unlike elsewhere, absence is evidence.

    Source: Aslam and Montague, "Models for metasearch", SIGIR 2001, section 3.2 (naive Bayes).
    """

    formula = "Σ ln(P(relevant | rank) / P(not relevant | rank))"
    source = "Aslam, Montague 2001"

    method: str = "bayes_fuse"

    def learn_source(self, runs: AlignedRuns, s: int) -> FloatArray:
        """The log-odds of a document that it did not return, then of each segment."""
        sizes = np.diff(BAYES_LAST_RANKS, prepend=0) * len(runs.queries)
        segments = _rank_segments(runs.ranks[s])[is_relevant(runs)]
        hits = np.bincount(segments, minlength=len(sizes) + 1)
        shares = np.array([0, *(hits[1:] / sizes)])
        bounded = np.clip(shares, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        return np.asarray(np.log(bounded / (1 - bounded)))

    def source_term(self, runs: AlignedRuns, s: int, learned: FloatArray) -> FloatArray:
        """(N,): the log-odds of the segment of the document's rank."""
        return np.asarray(learned[_rank_segments(runs.ranks[s])])


def _rank_segments(ranks: IntArray) -> IntArray:
    """(n,): the segment of each rank, from 1; 0 at rank 0."""
    deepest = len(BAYES_LAST_RANKS) - 1
    return np.where(ranks > 0, np.minimum(np.searchsorted(BAYES_LAST_RANKS, ranks), deepest) + 1, 0)


@fusions.register
class MAPFuse(SourceRates):
    """``map_fuse``: Σ_s MAP_s / rank, over the sources that returned the document.

    MAP_s is the mean average precision of source s over the training queries; an unjudged document
    counts as not relevant. For MAP = .4, the second document of the list gets .4/2 = .2.

    Source: Lillis, Zhang, Toolan, Collier, Leonard and Dunnion, "Estimating probabilities for
    effective data fusion", SIGIR 2010.
    """

    formula = "Σ MAP / rank"
    source = "Lillis, Zhang, Toolan, Collier, Leonard, Dunnion 2010"

    method: str = "map_fuse"

    def learn_source(self, runs: AlignedRuns, s: int) -> FloatArray:
        """(1,): its mean average precision."""
        measure = parse_measure(f"AP(rel={runs.binary_relevance})")
        values = compute_measures([measure], runs, runs.ranks[s])[0]
        return np.array([float(sum_terms(values)) / len(values)])

    def source_term(self, runs: AlignedRuns, s: int, learned: FloatArray) -> FloatArray:
        """(N,): the mean average precision of the source over the rank."""
        values: FloatArray = np.zeros(len(runs.documents))
        ranks = runs.ranks[s]
        np.divide(learned[0], ranks, out=values, where=ranks > 0)
        return values

    def orders_list(self, learned: Mapping[str, tuple[float, ...]]) -> bool:
        """Unless a source never returned a relevant document: all its terms are 0."""
        return all(value > 0 for (value,) in learned.values())


@fusions.register
class PosFuse(SourceRates):
    """``pos_fuse``: Σ_s P_s(rank), the share of training queries with a relevant document there.

    P_s(p) = queries whose document at position p of source s is relevant / queries for which the
    source returned a document at p. An unjudged document counts as not relevant. Positions deeper
    than any that was seen have 0.

    Source: Lillis, Zhang, Toolan, Collier, Leonard and Dunnion, "Estimating probabilities for
    effective data fusion", SIGIR 2010.
    """

    formula = "Σ P(relevant | rank)"
    source = "Lillis, Zhang, Toolan, Collier, Leonard, Dunnion 2010"

    method: str = "pos_fuse"

    def learn_source(self, runs: AlignedRuns, s: int) -> FloatArray:
        """(D,): the share of relevant documents at each position."""
        return _position_probabilities(runs, s)

    def source_term(self, runs: AlignedRuns, s: int, learned: FloatArray) -> FloatArray:
        """(N,): the probability at the document's position; 0 beyond the last one."""
        table = np.concatenate(([0.0], learned, [0.0]))
        return np.asarray(table[np.minimum(runs.ranks[s], len(learned) + 1)])


def _position_probabilities(runs: AlignedRuns, s: int) -> FloatArray:
    """(D,): the share of relevant documents at each rank of source ``s``, from rank 1 on."""
    ranks = runs.ranks[s]
    depth = int(ranks.max(initial=0)) + 1
    returned = np.bincount(ranks, minlength=depth)[1:]
    relevant = np.bincount(ranks[is_relevant(runs)], minlength=depth)[1:]
    return np.asarray(relevant / np.maximum(returned, 1))


@fusions.register
class SlideFuse(SourceRates):
    """``slide_fuse``: Σ_s mean of P_s over the positions at most ``window`` away.

    P_s(p) is that of ``pos_fuse``: the share of training queries whose document at position p of
    source s is relevant; an unjudged document counts as not relevant. The window ends where the
    list of the query ends: the first document of a list of 3, with a window of 5, has
    (P(1) + P(2) + P(3)) / 3.

    Source: Lillis, Toolan, Collier and Dunnion, "Extending probabilistic data fusion using sliding
    windows", ECIR 2008.

    Attributes:
        window: Positions on either side; 0 = ``pos_fuse``.
    """

    formula = "Σ mean of P(relevant at position) over a window"
    source = "Lillis, Toolan, Collier, Dunnion 2008"

    method: str = "slide_fuse"
    window: Annotated[int, Field(ge=0, le=1000)] = 5
    tunable = (integer("window", 1, 100, log=True),)

    def learn_source(self, runs: AlignedRuns, s: int) -> FloatArray:
        """(D,): the share of relevant documents at each position."""
        return _position_probabilities(runs, s)

    def source_term(self, runs: AlignedRuns, s: int, learned: FloatArray) -> FloatArray:
        """(N,): the mean probability over the window around the document's position."""
        ranks, deepest = runs.ranks[s], len(learned)
        sums = np.concatenate(([0.0], np.cumsum(learned)))  # what is deeper adds nothing
        first = np.maximum(ranks - self.window, 1)
        last = np.minimum(ranks + self.window, runs.lengths[s][runs.query_index])
        total = sums[np.minimum(last, deepest)] - sums[np.minimum(first - 1, deepest)]
        return np.where(ranks > 0, total / np.maximum(last - first + 1, 1), 0.0)


@fusions.register
class ProbFuse(SourceRates):
    """``prob_fuse``: Σ_s P_s(segment) / segment; the segments of a list are equally long.

    A list of n documents has segments of ⌈n / x⌉ documents each, the first is number 1. P_s(k) is
    the mean over the training queries of the share of relevant documents in segment k of source s.
    A query without documents there counts as 0. For P = .5 in segment 1 and .3 in segment 2, a
    document of segment 2 gets .3/2 = .15.

    Source: Lillis, Toolan, Collier and Dunnion, "ProbFuse: a probabilistic approach to data
    fusion", SIGIR 2006.

    Attributes:
        segments: x.
        unjudged: ``not_relevant`` = an unjudged document counts as not relevant (the paper's
            ProbFuseAll); ``skip`` = the share is one of judged documents (ProbFuseJudged).
    """

    formula = "Σ P(relevant in the segment) / segment"
    source = "Lillis, Toolan, Collier, Dunnion 2006"

    method: str = "prob_fuse"
    segments: Annotated[int, Field(ge=1, le=1000)] = 25
    unjudged: Literal["not_relevant", "skip"] = "not_relevant"
    tunable = (integer("segments", 2, 100, log=True), choice("unjudged", "not_relevant", "skip"))

    def learn_source(self, runs: AlignedRuns, s: int) -> FloatArray:
        """(x,): the share of relevant documents in each segment."""
        segment, is_skipped = self._list_segments(runs, s), self.unjudged == "skip"
        return _relevant_shares(runs, segment, self.segments, judged_only=is_skipped)

    def source_term(self, runs: AlignedRuns, s: int, learned: FloatArray) -> FloatArray:
        """(N,): the probability of the document's segment over the segment's number."""
        values = learned / np.arange(1, self.segments + 1)
        return np.concatenate(([0.0], values))[self._list_segments(runs, s)]

    def _list_segments(self, runs: AlignedRuns, s: int) -> IntArray:
        """(N,): the segment of each document in its list of source ``s``, from 1; 0 = not returned.

        A rank beyond the length of the list, as where only part of it is given, is in the last one.
        """
        size = -(-runs.lengths[s] // self.segments)[runs.query_index]
        ranks = runs.ranks[s]
        segment = np.minimum((ranks - 1) // np.maximum(size, 1) + 1, self.segments)
        return np.where(ranks > 0, segment, 0)


#: Sizes 5, 15, 35, … reach beyond rank 10,000,000.
SEGMENTS = 20
#: Last rank of each segment.
GROWING_LAST_RANKS = np.cumsum(10 * 2 ** np.arange(SEGMENTS) - 5)


@fusions.register
class SegFuse(SourceRates):
    """``seg_fuse``: Σ_s P_s(segment)·(x_s + 1), with the normalized score x_s of source s.

    Segment k holds 10·2^(k−1) − 5 documents: ranks 1–5, 6–20, 21–55, 56–130, … P_s(k) is the mean
    over the training queries of the share of relevant documents in segment k of source s. An
    unjudged document counts as not relevant, a query without documents there as 0.

    Source: Shokouhi, "Segmentation of search engine results for effective data-fusion", ECIR 2007,
    equations 4 and 5.

    Attributes:
        normalize: How each list's scores are scaled first.
    """

    formula = "Σ P(relevant in the segment)·(score + 1)"
    source = "Shokouhi 2007"

    method: str = "seg_fuse"
    normalize: AnyNormalizer = MinMax()

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - see the base
        """The normalizer."""
        built_in = normalizers.load_built_in()
        return (choice("normalize.method", *(n for n, m in built_in.items() if m.searched)),)

    def learn_source(self, runs: AlignedRuns, s: int) -> FloatArray:
        """(K,): the share of relevant documents in each segment."""
        return _relevant_shares(runs, _growing_segments(runs.ranks[s]), SEGMENTS)

    def source_term(self, runs: AlignedRuns, s: int, learned: FloatArray) -> FloatArray:
        """(N,): the probability of the document's segment times its score and 1."""
        scores = np.nan_to_num(self.normalize.normalize_scores(runs)[s])
        table = np.concatenate(([0.0], learned))
        return np.asarray(table[_growing_segments(runs.ranks[s])] * (scores + 1))


def _growing_segments(ranks: IntArray) -> IntArray:
    """(n,): the segment of each rank, from 1; 0 at rank 0."""
    return np.where(ranks > 0, np.searchsorted(GROWING_LAST_RANKS, ranks) + 1, 0)
