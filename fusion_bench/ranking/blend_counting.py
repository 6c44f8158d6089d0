"""Where a blend puts the relevant documents, by counting who of the first is above each.

Every number is made by the same operations in the same order as in ``methods.blend``, so that
it is the same to the last bit wherever the fused scores are exact. Where these are rough, each
term says by how much it may be off.

Only lists with a relevant document among the first ``depth`` are blended, unless something is
dropped: for all others the order stays the fused one. Scores are rough at first; a list in which
they leave the place of a relevant document open is blended again from exact ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns, ViewCache, cached_by_view
from fusion_bench.data.ordering import KEY_SPACING, BoolArray, FloatArray, IntArray, score_keys
from fusion_bench.data.records import ScoreSpace
from fusion_bench.methods.blend import (
    BlendWeights,
    RerankBlend,
    fixed_scale,
    level_equal_scores,
)
from fusion_bench.ranking.quantized_scores import TopDocuments, true_by_row
from fusion_bench.ranking.term_sums import KEY_STEP


@dataclass(frozen=True, eq=False)
class RerankWindow:
    """The first documents of some lists, in fused order.

    Attributes:
        rows: (m,): which lists.
        queries: (m,): which queries.
        candidates: (m, D): padding repeats a document of the list.
        valid: (m, D): what is not padding.
        fused: Computes their scores, (m, D), as the fusion reports them.
        error: (m, 1): by how much these may be off; 0 = exact.
        cache: What blends make of them alike.
    """

    rows: IntArray
    queries: IntArray
    candidates: IntArray
    is_candidate: BoolArray
    fused: Callable[[], FloatArray]
    error: FloatArray
    cache: ViewCache = field(default_factory=ViewCache)

    @cached_property
    def fused_scores(self) -> FloatArray:
        """(m, D): the scores, which few blends read."""
        return self.fused()


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
        crowded = np.flatnonzero(true_by_row(near) > 1)
        place, other = np.nonzero(near[crowded])
        pair = crowded[place]
        others = other != slot[pair]
        return true_by_row(above), pair[others], other[others]


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
        unit = heads.cache.lookup(
            BlendFormula._rerank_term, (self.row, self.space), lambda: self._rerank_term(heads)
        )
        scored = ~np.isnan(unit)
        if self.blend.missing == "zero":
            unit = np.where(heads.is_candidate & ~scored, 0.0, unit)
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
        if self.mixture.retrieval == "reciprocal_rank":
            reciprocals = 1 / np.arange(1, heads.candidates.shape[1] + 1)
            return np.broadcast_to(reciprocals, heads.candidates.shape), np.zeros_like(heads.error)
        fused = heads.fused_scores
        if self.mixture.retrieval == "fused_min_max":
            fused = np.where(heads.is_candidate, fused, np.nan)
            if not heads.error.any():  # exact
                lists = np.repeat(np.arange(len(fused)), fused.shape[1])
                fused = level_equal_scores(fused.ravel(), lists).reshape(fused.shape)
                return _min_max(fused), heads.error
            spread = np.ptp(np.where(heads.is_candidate, fused, fused[:, :1]), axis=1)[:, None]
            # Equal scores may differ by the spacing of keys, which min-max must not stretch.
            error = heads.error + KEY_SPACING * np.fmax.reduce(np.abs(fused), 1, keepdims=True)
            # Numerator and denominator are off by twice the error each, and the term is at most
            # 1; where they could vanish nothing is known of it.
            known = np.maximum(spread - 2 * error, 0)
            off = np.full_like(spread, 1.0)
            np.divide(4 * error, known, out=off, where=known > 0)
            return _min_max(fused), np.minimum(off, 1.0)
        if self.greatest is not None:
            greatest = self.greatest[heads.queries][:, None]
            return fused / greatest, heads.error / greatest
        return fused, heads.error


def rerank_window(tops: TopDocuments, rows: IntArray, depth: int, *, exact: bool) -> RerankWindow:
    """The first ``depth`` documents of these lists, with rough or exact fused scores."""
    sizes = tops.lists.sizes[rows, None]
    place = np.minimum(tops.best[rows, :depth], sizes - 1)
    candidates = tops.lists.starts[rows, None] + place
    error: FloatArray = np.zeros((len(rows), 1)) if exact else tops.rough_error(rows)

    def fused() -> FloatArray:
        if not exact:
            return np.minimum(tops.rough_scores(rows, depth), tops.trial.ceiling)
        scores = tops.trial.scores(tops.runs, candidates.ravel()).reshape(candidates.shape)
        return np.minimum(scores, tops.trial.ceiling)

    valid = np.arange(candidates.shape[1]) < sizes
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


@dataclass(frozen=True, eq=False)
class BlendCounter:
    """One blend over the tops of one fusion.

    Attributes:
        formula: What it makes of them.
        tops: Its first documents, at least as many as the blend looks at.
    """

    formula: BlendFormula
    tops: TopDocuments

    @property
    def depth(self) -> int:
        """How many documents of each list it looks at, at most."""
        return int(min(self.formula.blend.depth, self.tops.best.shape[1]))

    def has_unscored(self) -> bool:
        """Whether some document that is to be reranked may have no score."""
        runs, lists = self.tops.runs, self.tops.lists
        lacking = unscored_by_query(runs, self.formula.row)[lists.queries] > 0
        rows = np.flatnonzero(lacking & ~self.formula.has_few(lists.sizes))
        if self.tops.is_unresolved[rows].any():
            return True
        heads = rerank_window(self.tops, rows, self.depth, exact=False)
        scores = runs.rerank[self.formula.row][heads.candidates]
        return bool((np.isnan(scores) & heads.is_candidate).any())

    def count_ranks(self) -> tuple[IntArray, BoolArray]:
        """(R,) place of each of ``lists.member``, 0 = dropped; (n,) lists that stay open."""
        lists, blend = self.tops.lists, self.formula.blend
        ranks, left = self.tops.relevant_ranks.copy(), self.tops.is_unresolved.copy()
        alone = self.formula.has_few(lists.sizes)
        inside = (ranks <= blend.depth) & ~alone[lists.owner]
        if blend.tail == "drop":
            ranks[~inside & ~alone[lists.owner]] = 0
        least = self.formula.min_relevance
        drops = blend.min_score is not None or least is not None
        wanted = np.zeros(len(lists.queries), dtype=bool)
        wanted[lists.owner if drops else lists.owner[inside]] = True
        wanted &= ~alone & ~left
        for exact in (False, True):
            wanted = self._count_lists(np.flatnonzero(wanted), inside, ranks, exact=exact)
        if least is not None:
            outside = np.flatnonzero(~inside & (ranks > 0))
            kept = is_relevant_enough(self.tops, lists.member[outside], least)
            ranks[outside[kept == 0]] = 0
            left[lists.owner[outside[kept < 0]]] = True
        return ranks, left

    def _count_lists(
        self, rows: IntArray, inside: BoolArray, ranks: IntArray, *, exact: bool
    ) -> BoolArray:
        """Place the relevant documents of these lists; (n,) the lists that scores leave open."""
        is_open = np.zeros(len(self.tops.lists.queries), dtype=bool)
        step = max(self.tops.lists.limits.window_documents // max(self.depth, 1), 1)
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            window = rerank_window(self.tops, some, self.depth, exact=exact)
            mixed = self.formula.final_scores(window)
            is_open[some[self._place_members(mixed, inside, ranks)]] = True
        return is_open

    def _place_members(self, mixed: FinalScores, inside: BoolArray, ranks: IntArray) -> BoolArray:
        """Write the places of the relevant documents; (m,) lists that scores leave open."""
        member, row = self._list_members(mixed.window.rows)
        within = inside[member]
        # Those beyond the depth move up by as many as were dropped before them.
        behind = member[~within]
        gone = (mixed.window.is_candidate & ~mixed.is_kept).sum(axis=1)[row[~within]]
        ranks[behind] = np.where(ranks[behind] > 0, self.tops.relevant_ranks[behind] - gone, 0)
        member, row = member[within], row[within]
        slot = self.tops.relevant_ranks[member] - 1
        stays = mixed.is_kept[row, slot]
        ranks[member[~stays]] = 0
        blended = stays & mixed.has_score[row, slot]
        bare = stays & ~blended
        if bare.any():
            # Documents without a score keep their fused order, under all that have one.
            is_bare = mixed.is_kept & ~mixed.has_score
            scored = (mixed.is_kept & mixed.has_score).sum(axis=1)
            bare_row, bare_slot = row[bare], slot[bare]
            ranks[member[bare]] = scored[bare_row] + np.cumsum(is_bare, axis=1)[bare_row, bare_slot]
        return self._count_blended(mixed, member[blended], row[blended], slot[blended], ranks)

    def _list_members(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """(k,) relevant documents of these ascending lists, and which of these lists."""
        owner = self.tops.lists.owner
        first, last = np.searchsorted(owner, [rows[0], rows[-1] + 1])
        place = np.searchsorted(rows, owner[first:last])
        there = rows[place] == owner[first:last]
        return np.arange(first, last)[there], place[there]

    def _count_blended(
        self, mixed: FinalScores, member: IntArray, row: IntArray, slot: IntArray, ranks: IntArray
    ) -> BoolArray:
        """Write the places of blended documents; (m,) lists that scores leave open."""
        is_open = mixed.is_doubtful
        step = max(self.tops.lists.limits.compared_pairs // max(self.depth, 1), 1)
        for start in range(0, len(member), step):
            some = slice(start, start + step)
            above, pair, other = mixed.compare_within(row[some], slot[some])
            rough = mixed.error[row[some], 0][pair] > 0
            is_open[row[some][pair[rough]]] = True
            pair, other = pair[~rough], other[~rough]
            ranks[member[some]] = 1 + above
            if not len(pair):
                continue
            own_row, own_slot = row[some][pair], slot[some][pair]
            keys = score_keys(mixed.scores[[own_row, own_row], [own_slot, other]])
            # Equal keys keep the fused order, which is that of the slots.
            wins = (keys[1] > keys[0]) | ((keys[1] == keys[0]) & (other < own_slot))
            ranks[member[some]] += np.bincount(pair[wins], minlength=len(above))
        return is_open


def is_relevant_enough(tops: TopDocuments, candidates: IntArray, least: float) -> IntArray:
    """(n,): 1 for a candidate whose fused score is not below ``least``, 0 for others.

    −1 where one that is tied with it could be: then candidates above it may have gone.
    """
    scores = np.minimum(tops.trial.scores(tops.runs, candidates), tops.trial.ceiling)
    near = np.abs(scores - least) <= KEY_STEP * np.abs(scores)
    return np.where(near, -1, (scores >= least).astype(np.int64))


@cached_by_view()
def unscored_by_query(runs: AlignedRuns, row: int) -> IntArray:
    """(Q,): how many candidates have no score in a rerank list."""
    unscored = np.isnan(runs.rerank[row])
    return np.bincount(runs.query_index[unscored], minlength=len(runs.queries))
