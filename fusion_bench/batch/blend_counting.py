"""Where a blend puts the relevant documents, by counting who of the first is above each.

Only lists with a relevant document among the first ``depth`` are blended, unless something is
dropped: for all others the order stays the fused one. Scores are rough at first; a list in which
they leave the place of a relevant document open is blended again from exact ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fusion_bench.batch.blend_terms import BlendFormula, FinalScores, heads_of
from fusion_bench.batch.scoring import KEY_STEP
from fusion_bench.batch.top_k import Tops
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import IntArray, score_keys
from fusion_bench.data.view_cache import cached_by_view
from fusion_bench.fuse import EngineForm

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
        formula: What it makes of them.
        trial: The fusion.
        tops: Its first documents, at least as many as the blend looks at.
    """

    formula: BlendFormula
    trial: EngineForm
    tops: Tops

    @property
    def depth(self) -> int:
        """How many documents of each list it looks at, at most."""
        return int(min(self.formula.blend.depth, self.tops.best.shape[1]))

    def places(self) -> tuple[IntArray, BoolArray]:
        """(R,) place of each of ``lists.member``, 0 = dropped; (n,) lists that stay open."""
        lists = self.tops.lists
        alone, found, left = (
            self.formula.has_few(lists.sizes),
            self.tops.places.copy(),
            self.tops.open.copy(),
        )
        inside = (found <= self.formula.blend.depth) & ~alone[lists.owner]
        if self.formula.blend.tail == "drop":
            found[~inside & ~alone[lists.owner]] = 0
        wanted = np.zeros(len(lists.queries), dtype=bool)
        wanted[lists.owner if self._drops() else lists.owner[inside]] = True
        wanted &= ~alone & ~left
        for exact in (False, True):
            wanted = self._blended(np.flatnonzero(wanted), inside, found, exact=exact)
        if self.formula.min_relevance is not None:
            outside = np.flatnonzero(~inside & (found > 0))
            kept = kept_places(
                self.formula.runs, self.trial, lists.member[outside], self.formula.min_relevance
            )
            found[outside[kept == 0]] = 0
            left[lists.owner[outside[kept < 0]]] = True
        return found, left

    def _drops(self) -> bool:
        return self.formula.blend.min_score is not None or self.formula.min_relevance is not None

    def _blended(
        self, rows: IntArray, inside: BoolArray, found: IntArray, *, exact: bool
    ) -> BoolArray:
        """Place the relevant documents of these lists; (n,) the lists that scores leave open."""
        open_ = np.zeros(len(self.tops.lists.queries), dtype=bool)
        step = max(HEADS // max(self.depth, 1), 1)
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            open_[some[self._placed(self._scores(some, exact=exact), inside, found)]] = True
        return open_

    def _scores(self, rows: IntArray, *, exact: bool) -> FinalScores:
        """The final scores of the first documents of these lists."""
        runs = self.formula.runs
        return self.formula.final_scores(
            heads_of(runs, self.tops, self.trial, rows, self.depth, exact=exact)
        )

    def _placed(self, mixed: FinalScores, inside: BoolArray, found: IntArray) -> BoolArray:
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
        self, mixed: FinalScores, mine: IntArray, row: IntArray, slot: IntArray, found: IntArray
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

    def _wins(
        self, mixed: FinalScores, row: IntArray, slot: IntArray, other: IntArray
    ) -> BoolArray:
        """(k,): whether the other document of each pair, its exact score near, is above."""
        mine, theirs = mixed.final[row, slot], mixed.final[row, other]
        keys = score_keys(np.concatenate([mine, theirs]))
        ours, others = keys[: len(row)], keys[len(row) :]
        earlier = other < slot
        if self.formula.runs.ties == "trec":
            candidates = mixed.heads.candidates
            earlier = candidates[row, other] < candidates[row, slot]
        return np.asarray((others > ours) | ((others == ours) & earlier))


def kept_places(
    runs: AlignedRuns, trial: EngineForm, candidates: IntArray, least: float
) -> IntArray:
    """(n,): 1 for a candidate whose fused score is not below ``least``, 0 for others.

    −1 where one that is tied with it could be: then candidates above it may have gone.
    """
    scores = np.minimum(trial.scores(runs, candidates), trial.ceiling)
    near = np.abs(scores - least) <= KEY_STEP * np.abs(scores)
    return np.where(near, -1, (scores >= least).astype(np.int64))


@cached_by_view()
def unscored_by_query(runs: AlignedRuns, row: int) -> IntArray:
    """(Q,): how many candidates have no score in a rerank list."""
    unscored = np.isnan(runs.rerank[row])
    return np.bincount(runs.query_index[unscored], minlength=len(runs.queries))


def lacks_scores(blending: Blending) -> bool:
    """Whether some document that is to be reranked may have no score."""
    formula, tops = blending.formula, blending.tops
    runs = formula.runs
    lacking = unscored_by_query(runs, formula.row)[tops.lists.queries] > 0
    rows = np.flatnonzero(lacking & ~formula.has_few(tops.lists.sizes))
    if tops.open[rows].any():
        return True
    heads = heads_of(runs, tops, blending.trial, rows, blending.depth, exact=False)
    scores = runs.rerank[formula.row][heads.candidates]
    return bool((np.isnan(scores) & heads.valid).any())
