"""What is known of a query before anybody judges it: its text's length, and its lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, sum_terms
from fusion_bench.errors import AlignmentError

#: Depth of the features that take no other.
DEPTH = 10
#: Persistence of rank-biased overlap.
PERSISTENCE = 0.9


@dataclass(frozen=True, eq=False)
class QueryFeatures:
    """Features of Q queries over S sources; those of a query depend on no other query.

    None of them reads a judgment.

    Attributes:
        runs: Every source of the system, each cut at its depth.
        weights: Shape (S,): the fusion's weights; 1 where it has none.
        fuse: Returns the system's fused list without a policy: scores and 1-based positions, (N,)
            each, and the offsets of its queries, (Q+1,).
    """

    runs: AlignedRuns
    weights: FloatArray
    fuse: Callable[[], tuple[FloatArray, IntArray, IntArray]]

    @property
    def lengths(self) -> IntArray:
        """(S, Q): documents that each source returned."""
        return self.runs.lengths

    def top_scores(self, depth: int = DEPTH) -> FloatArray:
        """(S, Q, depth): each source's scores in the order of its ranks; NaN behind its end."""
        shape = (len(self.runs.sources), len(self.runs.queries), depth)
        top: FloatArray = np.full(shape, np.nan)
        for s, ranks in enumerate(self.runs.ranks):
            rows = np.flatnonzero((ranks > 0) & (ranks <= depth))
            top[s, self.runs.query_index[rows], ranks[rows] - 1] = self.runs.scores[s, rows]
        return top

    def fused_top_scores(self, depth: int = DEPTH) -> FloatArray:
        """(Q, depth): scores of the fused list; NaN behind its end."""
        scores, positions, offsets = self.fuse()
        query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        rows = np.flatnonzero((positions > 0) & (positions <= depth))
        top: FloatArray = np.full((len(offsets) - 1, depth), np.nan)
        top[query[rows], positions[rows] - 1] = scores[rows]
        return top

    def margins(self, window: int = DEPTH) -> FloatArray:
        """(S, Q): top score − mean of the next ``window`` ones; 0 where there is no next one."""
        return margin(self.top_scores(window + 1))

    def entropies(self, depth: int = DEPTH) -> FloatArray:
        """(S, Q): see :func:`entropy`."""
        return entropy(self.top_scores(depth))

    def variations(self, depth: int = DEPTH) -> FloatArray:
        """(S, Q): see :func:`variation`."""
        return variation(self.top_scores(depth))

    def _shared_depths(self, first: int, second: int, depth: int) -> IntArray:
        """(Q, depth): documents that both sources have among their first 1 … ``depth``."""
        ranks = self.runs.ranks[[first, second]]
        worse = ranks.max(axis=0)
        rows = np.flatnonzero((ranks > 0).all(axis=0) & (worse <= depth))
        place = self.runs.query_index[rows] * depth + worse[rows] - 1
        counts = np.bincount(place, minlength=len(self.runs.queries) * depth)
        shared: IntArray = np.cumsum(counts.reshape(-1, depth), axis=1)
        return shared

    def overlaps(self, depth: int = DEPTH) -> FloatArray:
        """(Q,): share of their first ``depth`` documents that two sources share, mean over pairs.

        Of lists that are shorter, the share of the longer one's documents; 0 where both are empty,
        1 for a single source.
        """
        sizes = np.minimum(self.lengths, depth)
        shares = [
            self._shared_depths(a, b, depth)[:, -1] / np.maximum(np.maximum(sizes[a], sizes[b]), 1)
            for a, b in combinations(range(len(sizes)), 2)
        ]
        return mean_of_rows(shares) if shares else np.ones(len(self.runs.queries))

    def rank_overlaps(self, depth: int = DEPTH) -> FloatArray:
        """(Q,): rank-biased overlap of two sources to ``depth``, mean over pairs of sources.

        Σ p^(d−1)·|A_d ∩ B_d| / d over Σ p^(d−1), p = .9 (Webber, Moffat and Zobel, "A similarity
        measure for indefinite rankings", TOIS 2010, equation 4, cut at ``depth`` and divided by
        its greatest value).
        """
        depths = np.arange(1, depth + 1)
        factors = PERSISTENCE ** (depths - 1)
        values = [
            (self._shared_depths(a, b, depth) / depths) @ factors / factors.sum()
            for a, b in combinations(range(len(self.runs.sources)), 2)
        ]
        return mean_of_rows(values) if values else np.ones(len(self.runs.queries))

    def count_words(self) -> FloatArray:
        """(Q,): words of each query's text, separated by blanks.

        Raises:
            AlignmentError: A query has no text.
        """
        words = self.runs.words or (None,) * len(self.runs.queries)
        for query, count in zip(self.runs.queries, words, strict=True):
            if count is None:
                raise AlignmentError(
                    f"query {query!r} has no text, and the policy counts its words: add 'text' to "
                    "the queries file, or choose another feature"
                )
        return np.array(words, dtype=np.float64)


def mean_of_rows(rows: Sequence[FloatArray] | FloatArray) -> FloatArray:
    """(Q,): the mean over the first axis, the same to the last bit for any order of the rows."""
    return sum_terms(np.stack(list(rows))) / len(rows)


def margin(top: FloatArray) -> FloatArray:
    """Top score − mean of the others, over the last axis; 0 where there is no top or no others."""
    counts = np.isfinite(top[..., 1:]).sum(axis=-1)
    rest = np.nansum(top[..., 1:], axis=-1) / np.maximum(counts, 1)
    return np.where((counts > 0) & np.isfinite(top[..., 0]), top[..., 0] - rest, 0.0)


def entropy(top: FloatArray) -> FloatArray:
    """Normalized Shannon entropy of min-max scaled scores, over the last axis, in [0, 1].

    With x the scores scaled to [0, 1] and p = x / Σ x: −Σ p·ln p / ln n. Near 0 = one document
    stands out. 0 for a single document; 1 for equal scores, and for an empty list.
    """
    known = np.isfinite(top)
    counts = known.sum(axis=-1)
    low = np.min(np.where(known, top, np.inf), axis=-1, keepdims=True)
    high = np.max(np.where(known, top, -np.inf), axis=-1, keepdims=True)
    is_flat = ~(high > low)[..., 0]
    spread = np.where(is_flat[..., None], 1.0, high - low)
    scaled = np.where(known & ~is_flat[..., None], top - np.where(counts[..., None], low, 0.0), 0.0)
    scaled = scaled / spread
    shares = scaled / np.where(is_flat, 1.0, scaled.sum(axis=-1))[..., None]
    logs = np.log(np.where(shares > 0, shares, 1.0))
    value = -(shares * logs).sum(axis=-1) / np.log(np.maximum(counts, 2))
    return np.where(counts == 1, 0.0, np.where(is_flat, 1.0, value))


def variation(top: FloatArray) -> FloatArray:
    """Standard deviation of the scores over their mean's size, over the last axis.

    0 for fewer than two scores, and where the mean is 0.
    """
    known = np.isfinite(top)
    counts = np.maximum(known.sum(axis=-1), 1)
    means = np.where(known, top, 0.0).sum(axis=-1) / counts
    squares = np.where(known, top - means[..., None], 0.0) ** 2
    deviations = np.sqrt(squares.sum(axis=-1) / counts)
    return np.where(means != 0, deviations / np.where(means != 0, np.abs(means), 1.0), 0.0)


def relative_gap(top: FloatArray) -> FloatArray:
    """(first − second) / (first − last) score over the last axis, in [0, 1].

    1 where fewer than two scores are known: nothing competes; 0 where all are equal.
    """
    known = np.isfinite(top)
    counts = known.sum(axis=-1)
    last = np.min(np.where(known, top, np.inf), axis=-1)
    second = top[..., 1] if top.shape[-1] > 1 else last
    with np.errstate(invalid="ignore"):
        gap, spread = top[..., 0] - second, top[..., 0] - last
        share = np.where(spread > 0, gap / np.where(spread > 0, spread, 1.0), 0.0)
    return np.where(counts < 2, 1.0, share)
