"""Where a blend puts the relevant documents, by counting who of the first is above each.

Only lists with a relevant document among the first ``depth`` are blended, unless something is
dropped: for all others the order stays the fused one. Scores are rough at first; a list in which
they leave the place of a relevant document open is blended again from exact ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fusion_bench.batch.blend_terms import Heads, heads_of, rerank_term, retrieval_term
from fusion_bench.batch.scoring import KEY_STEP
from fusion_bench.batch.top_k import Tops
from fusion_bench.blend import Mixture, RerankBlend
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, score_keys
from fusion_bench.data.records import ScoreSpace
from fusion_bench.fuse import Compiled

__all__ = ["Blending", "kept_places", "lacks_scores", "unscored_by_query"]

BoolArray = NDArray[np.bool_]

#: Documents that are blended in one go: their numbers stay in the second-level cache.
HEADS: Final = 1 << 14
#: Comparisons of relevant documents with the first of their lists in one go: bounds the memory.
MOST_PAIRS: Final = 1 << 20


@dataclass(frozen=True, eq=False)
class Blending:
    """One blend over the tops of one fusion.

    Attributes:
        runs: The view.
        trial: The fusion.
        tops: Its first documents, at least as many as the blend looks at.
        blend: The blend.
        mixture: What its final scores are made of.
        space: Score space of its rerank list.
        min_relevance: As a system has it.
        greatest: (Q,): no fused score can be greater.
    """

    runs: AlignedRuns
    trial: Compiled
    tops: Tops
    blend: RerankBlend
    mixture: Mixture
    space: ScoreSpace
    min_relevance: float | None
    greatest: FloatArray | None

    @property
    def row(self) -> int:
        """Row of the rerank list."""
        return self.runs.rerankers.index(self.blend.reranker)

    @property
    def depth(self) -> int:
        """How many documents of each list it looks at, at most."""
        return int(min(self.blend.depth, self.tops.best.shape[1]))

    def alone(self) -> BoolArray:
        """(n,): lists that are too short to be reranked."""
        short = self.tops.lists.sizes <= self.blend.skip_limit
        return np.asarray(short & (not self.blend.always_rerank))

    def places(self) -> tuple[IntArray, BoolArray]:
        """(R,) place of each of ``lists.member``, 0 = dropped; (n,) lists that stay open."""
        lists = self.tops.lists
        alone, found, left = self.alone(), self.tops.places.copy(), self.tops.open.copy()
        inside = (found <= self.blend.depth) & ~alone[lists.owner]
        if self.blend.tail == "drop":
            found[~inside & ~alone[lists.owner]] = 0
        wanted = np.zeros(len(lists.queries), dtype=bool)
        wanted[lists.owner if self._drops() else lists.owner[inside]] = True
        wanted &= ~alone & ~left
        for exact in (False, True):
            wanted = self._blended(np.flatnonzero(wanted), inside, found, exact=exact)
        if self.min_relevance is not None:
            outside = np.flatnonzero(~inside & (found > 0))
            kept = kept_places(self.runs, self.trial, lists.member[outside], self.min_relevance)
            found[outside[kept == 0]] = 0
            left[lists.owner[outside[kept < 0]]] = True
        return found, left

    def _drops(self) -> bool:
        return self.blend.min_score is not None or self.min_relevance is not None

    def _blended(
        self, rows: IntArray, inside: BoolArray, found: IntArray, *, exact: bool
    ) -> BoolArray:
        """Place the relevant documents of these lists; (n,) the lists that scores leave open."""
        open_ = np.zeros(len(self.tops.lists.queries), dtype=bool)
        step = max(HEADS // max(self.depth, 1), 1)
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            open_[some[self._placed(self._mixed(some, exact=exact), inside, found)]] = True
        return open_

    def _mixed(self, rows: IntArray, *, exact: bool) -> _Mixed:
        """The final scores of the first documents of these lists."""
        heads = heads_of(self.runs, self.tops, self.trial, rows, self.depth, exact=exact)
        unit = rerank_term(self.runs, self.row, self.space, heads)
        scored = ~np.isnan(unit)
        if self.blend.missing == "zero":
            unit[heads.valid & ~scored] = 0.0
            scored = heads.valid
        final, error = self._final(heads, unit)
        kept = heads.valid.copy()
        if self.blend.min_score is not None:
            kept &= ~(scored & (unit < self.blend.min_score))
        doubt = np.zeros(len(rows), dtype=bool)
        if self.min_relevance is not None:
            shown = np.where(scored, final, heads.fused)
            off = np.where(scored, error, heads.error)
            kept &= ~(shown < self.min_relevance)
            near = (np.abs(shown - self.min_relevance) <= off) & (off > 0)
            doubt[(near & heads.valid).any(axis=1)] = True
        return _Mixed(heads, scored, kept, np.where(kept & scored, final, -np.inf), error, doubt)

    def _final(self, heads: Heads, unit: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(m, D) final scores, and (m, 1) by how much they may be off."""
        if self.mixture.retrieval is None:
            return unit, np.zeros((len(unit), 1))
        depth = unit.shape[1]
        share, rerank_share = self.mixture.shares[:depth], self.mixture.rerank_shares[:depth]
        queries = self.tops.lists.queries[heads.rows]
        greatest = None if self.greatest is None else self.greatest[queries][:, None]
        term, off = retrieval_term(self.mixture, heads, greatest)
        final = rerank_share * unit
        final += share * term
        return final, off * share.max(initial=0)

    def _placed(self, mixed: _Mixed, inside: BoolArray, found: IntArray) -> BoolArray:
        """Write the places of the relevant documents; (m,) lists that scores leave open."""
        mine, row = self._members(mixed.heads.rows)
        within = inside[mine]
        # Those beyond the depth move up by as many as were dropped before them.
        behind, gone = mine[~within], (mixed.heads.valid & ~mixed.kept).sum(axis=1)[row[~within]]
        found[behind] = np.where(found[behind] > 0, self.tops.places[behind] - gone, 0)
        mine, row = mine[within], row[within]
        slot = self.tops.places[mine] - 1
        stays = mixed.kept[row, slot]
        found[mine[~stays]] = 0
        bare = stays & ~mixed.scored[row, slot]
        if bare.any():
            found[mine[bare]] = mixed.unscored_places(row[bare], slot[bare])
        blended = stays & ~bare
        return self._counted(mixed, mine[blended], row[blended], slot[blended], found)

    def _members(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """(k,) relevant documents of these ascending lists, and which of these lists."""
        owner = self.tops.lists.owner
        first, last = np.searchsorted(owner, [rows[0], rows[-1] + 1])
        place = np.searchsorted(rows, owner[first:last])
        there = rows[place] == owner[first:last]
        return np.arange(first, last)[there], place[there]

    def _counted(
        self, mixed: _Mixed, mine: IntArray, row: IntArray, slot: IntArray, found: IntArray
    ) -> BoolArray:
        """Write the places of blended documents; (m,) lists that scores leave open."""
        open_ = mixed.doubt
        step = max(MOST_PAIRS // max(self.depth, 1), 1)
        for start in range(0, len(mine), step):
            some = slice(start, start + step)
            above, pair, other = mixed.compared(row[some], slot[some])
            rough = mixed.error[row[some], 0][pair] > 0
            open_[row[some][pair[rough]]] = True
            pair, other = pair[~rough], other[~rough]
            wins = self._wins(mixed, row[some][pair], slot[some][pair], other)
            found[mine[some]] = 1 + above + np.bincount(pair[wins], minlength=len(above))
        return open_

    def _wins(self, mixed: _Mixed, row: IntArray, slot: IntArray, other: IntArray) -> BoolArray:
        """(k,): whether the other document of each pair, its exact score near, is above."""
        mine, theirs = mixed.final[row, slot], mixed.final[row, other]
        keys = score_keys(np.concatenate([mine, theirs]))
        ours, others = keys[: len(row)], keys[len(row) :]
        earlier = other < slot
        if self.runs.ties == "trec":
            candidates = mixed.heads.candidates
            earlier = candidates[row, other] < candidates[row, slot]
        return np.asarray((others > ours) | ((others == ours) & earlier))


class _Mixed(NamedTuple):
    """The first documents of some lists with their final scores.

    Attributes:
        heads: The documents.
        scored: (m, D): which have a rerank score.
        kept: (m, D): which are not dropped.
        final: (m, D): final scores; −∞ where a document is dropped or has no rerank score.
        error: (m, 1): by how much these may be off; 0 = exact.
        doubt: (m,): lists in which it is not certain what is dropped.
    """

    heads: Heads
    scored: BoolArray
    kept: BoolArray
    final: FloatArray
    error: FloatArray
    doubt: BoolArray

    def unscored_places(self, row: IntArray, slot: IntArray) -> IntArray:
        """(k,): documents without a score keep their fused order, under all that have one."""
        bare = self.kept & ~self.scored
        return np.asarray(
            (self.kept & self.scored).sum(axis=1)[row] + np.cumsum(bare, axis=1)[row, slot]
        )

    def compared(self, row: IntArray, slot: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """(k,) how many are certainly above each document, and pairs of it and one that is near.

        Final scores that differ by more than both their errors and the twelfth digit of one of
        them have keys in the same order; the rounding of rough ones is within their error.
        """
        theirs = self.final[row]
        own = self.final[row, slot][:, None]
        margin = 2 * self.error[row] + np.abs(own) * KEY_STEP
        above = theirs > own + margin
        near = (theirs >= own - margin) & ~above
        crowded = np.flatnonzero(near.sum(axis=1) > 1)
        place, other = np.nonzero(near[crowded])
        pair = crowded[place]
        others = other != slot[pair]
        return above.sum(axis=1), pair[others], other[others]


def kept_places(runs: AlignedRuns, trial: Compiled, candidates: IntArray, least: float) -> IntArray:
    """(n,): 1 for a candidate whose fused score is not below ``least``, 0 for others.

    −1 where one that is tied with it could be: then candidates above it may have gone.
    """
    scores = np.minimum(trial.scores(runs, candidates), trial.ceiling)
    near = np.abs(scores - least) <= KEY_STEP * np.abs(scores)
    return np.where(near, -1, (scores >= least).astype(np.int64))


def unscored_by_query(runs: AlignedRuns, row: int) -> IntArray:
    """(Q,): how many candidates have no score in a rerank list."""

    def count() -> IntArray:
        unscored = np.isnan(runs.rerank[row])
        return np.bincount(runs.query_index[unscored], minlength=len(runs.queries))

    return runs.memo(("engine", "unscored", row), count)


def lacks_scores(blending: Blending) -> bool:
    """Whether some document that is to be reranked may have no score."""
    runs, tops = blending.runs, blending.tops
    lacking = unscored_by_query(runs, blending.row)[tops.lists.queries] > 0
    rows = np.flatnonzero(lacking & ~blending.alone())
    if tops.open[rows].any():
        return True
    heads = heads_of(runs, tops, blending.trial, rows, blending.depth, exact=False)
    scores = runs.rerank[blending.row][heads.candidates]
    return bool((np.isnan(scores) & heads.valid).any())
