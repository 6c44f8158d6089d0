"""The two terms of a blend on the first documents of some lists, as the blend itself has them.

Every number is made by the same operations in the same order as in ``fusion_bench.blend``, so that
it is the same to the last bit wherever the fused scores are exact. Where these are rough, each
term says by how much it may be off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fusion_bench.batch.scoring import KEY_STEP
from fusion_bench.batch.top_k import TopDocuments
from fusion_bench.blend import BlendWeights, RerankBlend, fixed_scale
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.data.records import ScoreSpace


@dataclass(frozen=True, eq=False)
class RerankWindow:
    """The first documents of some lists, in fused order.

    Attributes:
        rows: (m,): which lists.
        queries: (m,): which queries.
        candidates: (m, D): padding repeats a document of the list.
        valid: (m, D): what is not padding.
        fused: (m, D): scores as the fusion reports them.
        error: (m, 1): by how much these may be off; 0 = exact.
    """

    rows: IntArray
    queries: IntArray
    candidates: IntArray
    is_candidate: BoolArray
    fused_scores: FloatArray
    error: FloatArray


class FinalScores(NamedTuple):
    """The first documents of some lists with their final scores.

    Attributes:
        heads: The documents.
        scored: (m, D): which have a rerank score.
        kept: (m, D): which are not dropped.
        final: (m, D): final scores; −∞ where a document is dropped or has no rerank score.
        error: (m, 1): by how much these may be off; 0 = exact.
        doubt: (m,): lists in which it is not certain what is dropped.
    """

    window: RerankWindow
    has_score: BoolArray
    is_kept: BoolArray
    scores: FloatArray
    error: FloatArray
    is_doubtful: BoolArray

    def compare_within(self, row: IntArray, slot: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """(k,) how many are certainly above each document, and pairs of it and one that is near.

        Final scores that differ by more than both their errors and the twelfth digit of one of
        them have keys in the same order; the rounding of rough ones is within their error.
        """
        list_scores = self.scores[row]
        score = self.scores[row, slot][:, None]
        margin = 2 * self.error[row] + np.abs(score) * KEY_STEP
        above = list_scores > score + margin
        near = (list_scores >= score - margin) & ~above
        crowded = np.flatnonzero(near.sum(axis=1) > 1)
        place, other = np.nonzero(near[crowded])
        pair = crowded[place]
        others = other != slot[pair]
        return above.sum(axis=1), pair[others], other[others]


@dataclass(frozen=True, eq=False)
class BlendFormula:
    """What one blend makes of the first documents of a list.

    Attributes:
        runs: The view.
        blend: The blend.
        mixture: What its final scores are made of.
        space: Score space of its rerank list.
        min_relevance: As a system has it.
        greatest: (Q,): no fused score can be greater; None = not needed.
    """

    runs: AlignedRuns
    blend: RerankBlend
    mixture: BlendWeights
    space: ScoreSpace
    min_relevance: float | None
    greatest: FloatArray | None

    @property
    def row(self) -> int:
        """Row of the rerank list."""
        return self.runs.rerankers.index(self.blend.reranker)

    def has_few(self, sizes: IntArray) -> BoolArray:
        """(n,): which lists of these sizes are too short to be reranked."""
        return np.asarray((sizes <= self.blend.skip_limit) & (not self.blend.always_rerank))

    def final_scores(self, heads: RerankWindow) -> FinalScores:
        """The final scores of these documents."""
        unit = self._rerank_term(heads)
        scored = ~np.isnan(unit)
        if self.blend.missing == "zero":
            unit[heads.is_candidate & ~scored] = 0.0
            scored = heads.is_candidate
        final, error = self._mix(heads, unit)
        kept = heads.is_candidate.copy()
        if self.blend.min_score is not None:
            kept &= ~(scored & (unit < self.blend.min_score))
        doubt = np.zeros(len(unit), dtype=bool)
        if self.min_relevance is not None:
            shown = np.where(scored, final, heads.fused_scores)
            off = np.where(scored, error, heads.error)
            kept &= ~(shown < self.min_relevance)
            near = (np.abs(shown - self.min_relevance) <= off) & (off > 0)
            doubt[(near & heads.is_candidate).any(axis=1)] = True
        return FinalScores(
            heads, scored, kept, np.where(kept & scored, final, -np.inf), error, doubt
        )

    def _rerank_term(self, heads: RerankWindow) -> FloatArray:
        """(m, D): rerank scores on the unit scale; NaN = none. See ``on_unit_scale``."""
        given = fixed_scale(self.runs, self.row, self.space)[heads.candidates]
        given[~heads.is_candidate] = np.nan
        if self.space == "unbounded":
            return _min_max(given)
        if self.space == "order":
            ranks = self.runs.rerank_ranks[self.row][heads.candidates]
            return _by_order(np.where(np.isnan(given), np.iinfo(np.int64).max, ranks))
        return given

    def _mix(self, heads: RerankWindow, unit: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(m, D) final scores, and (m, 1) by how much they may be off."""
        if self.mixture.retrieval is None:
            return unit, np.zeros((len(unit), 1))
        depth = unit.shape[1]
        share = self.mixture.retrieval_weights[:depth]
        term, off = self._retrieval_term(heads)
        return self.mixture.rerank_weights[:depth] * unit + share * term, off * share.max(initial=0)

    def _retrieval_term(self, heads: RerankWindow) -> tuple[FloatArray, FloatArray]:
        """(m, D) the retrieval term, and (m, 1) by how much it may be off."""
        fused = heads.fused_scores
        if self.mixture.retrieval == "reciprocal_rank":
            reciprocals = 1 / np.arange(1, fused.shape[1] + 1)
            return np.broadcast_to(reciprocals, fused.shape), np.zeros_like(heads.error)
        if self.mixture.retrieval == "fused_min_max":
            term = _min_max(np.where(heads.is_candidate, fused, np.nan))
            spread = np.ptp(np.where(heads.is_candidate, fused, fused[:, :1]), axis=1)[:, None]
            # Numerator and denominator are off by twice the error each, and the term is at most
            # 1; where they could vanish nothing is known of it.
            known = np.maximum(spread - 2 * heads.error, 0)
            off = np.full_like(spread, 1.0)
            np.divide(4 * heads.error, known, out=off, where=known > 0)
            return term, np.where(heads.error > 0, np.minimum(off, 1.0), 0.0)
        if self.greatest is not None:
            greatest = self.greatest[heads.queries][:, None]
            return fused / greatest, heads.error / greatest
        return fused, heads.error


def rerank_window(tops: TopDocuments, rows: IntArray, depth: int, *, exact: bool) -> RerankWindow:
    """The first ``depth`` documents of these lists, with rough or exact fused scores."""
    sizes = tops.lists.sizes[rows, None]
    place = np.minimum(tops.best[rows, :depth], sizes - 1)
    candidates = tops.lists.starts[rows, None] + place
    if exact:
        fused = tops.trial.scores(tops.runs, candidates.ravel()).reshape(candidates.shape)
        error: FloatArray = np.zeros((len(rows), 1))
    else:
        fused, error = tops.rough_scores(rows, depth)
    valid = np.arange(candidates.shape[1]) < sizes
    fused = np.minimum(fused, tops.trial.ceiling)
    return RerankWindow(rows, tops.lists.queries[rows], candidates, valid, fused, error)


def _min_max(values: FloatArray) -> FloatArray:
    """Min-max of each row over what is not NaN; 1 where all are equal. See ``min_max_within``."""
    low = np.fmin.reduce(values, axis=1, keepdims=True)
    high = np.fmax.reduce(values, axis=1, keepdims=True)
    out = np.where(np.isnan(values), np.nan, 1.0)
    halves = values / 2 - low / 2, high / 2 - low / 2  # differences themselves may overflow
    np.divide(*halves, out=out, where=~np.isnan(values) & (high > low))
    return out


def _by_order(ranks: IntArray) -> FloatArray:
    """(n+1−i)/n for the i-th of the n ranks of each row; NaN where there is none."""
    nowhere = ranks == np.iinfo(np.int64).max
    # No two candidates of a list have the same rank in another one.
    order = np.argsort(ranks, axis=1)
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.arange(1, ranks.shape[1] + 1)[None], axis=1)
    size = (~nowhere).sum(axis=1)[:, None]
    return np.where(nowhere, np.nan, (size + 1 - place) / np.maximum(size, 1))
