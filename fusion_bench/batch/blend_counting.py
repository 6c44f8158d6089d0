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

from fusion_bench.batch.blend_terms import BlendFormula, FinalScores, rerank_window
from fusion_bench.batch.scoring import KEY_STEP
from fusion_bench.batch.top_k import TopDocuments
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import IntArray, score_keys
from fusion_bench.data.view_cache import cached_by_view
from fusion_bench.fuse import EngineForm

BoolArray = NDArray[np.bool_]

#: Documents that are blended in one go: their numbers stay in the second-level cache.
WINDOW_DOCUMENTS: Final = 1 << 14
#: Comparisons of relevant documents with the first of their lists in one go: bounds the memory.
MOST_PAIRS: Final = 1 << 20


@dataclass(frozen=True, eq=False)
class BlendCounter:
    """One blend over the tops of one fusion.

    Attributes:
        formula: What it makes of them.
        trial: The fusion.
        tops: Its first documents, at least as many as the blend looks at.
    """

    formula: BlendFormula
    trial: EngineForm
    tops: TopDocuments

    @property
    def depth(self) -> int:
        """How many documents of each list it looks at, at most."""
        return int(min(self.formula.blend.depth, self.tops.best.shape[1]))

    def count_ranks(self) -> tuple[IntArray, BoolArray]:
        """(R,) place of each of ``lists.member``, 0 = dropped; (n,) lists that stay open."""
        lists = self.tops.lists
        alone, ranks, left = (
            self.formula.has_few(lists.sizes),
            self.tops.relevant_ranks.copy(),
            self.tops.is_unresolved.copy(),
        )
        inside = (ranks <= self.formula.blend.depth) & ~alone[lists.owner]
        if self.formula.blend.tail == "drop":
            ranks[~inside & ~alone[lists.owner]] = 0
        wanted = np.zeros(len(lists.queries), dtype=bool)
        wanted[lists.owner if self._drops_documents() else lists.owner[inside]] = True
        wanted &= ~alone & ~left
        for exact in (False, True):
            wanted = self._count_lists(np.flatnonzero(wanted), inside, ranks, exact=exact)
        if self.formula.min_relevance is not None:
            outside = np.flatnonzero(~inside & (ranks > 0))
            kept = is_relevant_enough(
                self.formula.runs, self.trial, lists.member[outside], self.formula.min_relevance
            )
            ranks[outside[kept == 0]] = 0
            left[lists.owner[outside[kept < 0]]] = True
        return ranks, left

    def _drops_documents(self) -> bool:
        return self.formula.blend.min_score is not None or self.formula.min_relevance is not None

    def _count_lists(
        self, rows: IntArray, inside: BoolArray, ranks: IntArray, *, exact: bool
    ) -> BoolArray:
        """Place the relevant documents of these lists; (n,) the lists that scores leave open."""
        open_ = np.zeros(len(self.tops.lists.queries), dtype=bool)
        step = max(WINDOW_DOCUMENTS // max(self.depth, 1), 1)
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            open_[
                some[self._place_members(self._final_scores(some, exact=exact), inside, ranks)]
            ] = True
        return open_

    def _final_scores(self, rows: IntArray, *, exact: bool) -> FinalScores:
        """The final scores of the first documents of these lists."""
        runs = self.formula.runs
        return self.formula.final_scores(
            rerank_window(runs, self.tops, self.trial, rows, self.depth, exact=exact)
        )

    def _place_members(self, mixed: FinalScores, inside: BoolArray, ranks: IntArray) -> BoolArray:
        """Write the places of the relevant documents; (m,) lists that scores leave open."""
        member, row = self._list_members(mixed.window.rows)
        within = inside[member]
        # Those beyond the depth move up by as many as were dropped before them.
        behind, gone = (
            member[~within],
            (mixed.window.is_candidate & ~mixed.is_kept).sum(axis=1)[row[~within]],
        )
        ranks[behind] = np.where(ranks[behind] > 0, self.tops.relevant_ranks[behind] - gone, 0)
        member, row = member[within], row[within]
        slot = self.tops.relevant_ranks[member] - 1
        stays = mixed.is_kept[row, slot]
        ranks[member[~stays]] = 0
        bare = stays & ~mixed.has_score[row, slot]
        if bare.any():
            ranks[member[bare]] = mixed.unscored_places(row[bare], slot[bare])
        blended = stays & ~bare
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
        open_ = mixed.is_doubtful
        step = max(MOST_PAIRS // max(self.depth, 1), 1)
        for start in range(0, len(member), step):
            some = slice(start, start + step)
            above, pair, other = mixed.compare_within(row[some], slot[some])
            rough = mixed.error[row[some], 0][pair] > 0
            open_[row[some][pair[rough]]] = True
            pair, other = pair[~rough], other[~rough]
            wins = self._is_above(mixed, row[some][pair], slot[some][pair], other)
            ranks[member[some]] = 1 + above + np.bincount(pair[wins], minlength=len(above))
        return open_

    def _is_above(
        self, mixed: FinalScores, row: IntArray, slot: IntArray, other: IntArray
    ) -> BoolArray:
        """(k,): whether the other document of each pair, its exact score near, is above."""
        member_scores, other_scores = mixed.scores[row, slot], mixed.scores[row, other]
        keys = score_keys(np.concatenate([member_scores, other_scores]))
        member_keys, other_keys = keys[: len(row)], keys[len(row) :]
        earlier = other < slot
        if self.formula.runs.ties == "trec":
            candidates = mixed.window.candidates
            earlier = candidates[row, other] < candidates[row, slot]
        return np.asarray((other_keys > member_keys) | ((other_keys == member_keys) & earlier))


def is_relevant_enough(
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


def has_unscored(blending: BlendCounter) -> bool:
    """Whether some document that is to be reranked may have no score."""
    formula, tops = blending.formula, blending.tops
    runs = formula.runs
    lacking = unscored_by_query(runs, formula.row)[tops.lists.queries] > 0
    rows = np.flatnonzero(lacking & ~formula.has_few(tops.lists.sizes))
    if tops.is_unresolved[rows].any():
        return True
    heads = rerank_window(runs, tops, blending.trial, rows, blending.depth, exact=False)
    scores = runs.rerank[formula.row][heads.candidates]
    return bool((np.isnan(scores) & heads.is_candidate).any())
