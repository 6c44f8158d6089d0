"""Where a blend puts the relevant documents, by counting who of the first is above each.

Only lists with a relevant document among the first ``depth`` are blended, unless something is
dropped: for all others the order stays the fused one. Scores are rough at first; a list in which
they leave the place of a relevant document open is blended again from exact ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusion_bench.batch.blend_terms import BlendFormula, FinalScores, rerank_window
from fusion_bench.batch.scoring import KEY_STEP
from fusion_bench.batch.top_k import TopDocuments
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, IntArray, score_keys
from fusion_bench.data.view_cache import cached_by_view


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
            own_row, own_slot = row[some][pair], slot[some][pair]
            keys = score_keys(mixed.scores[[own_row, own_row], [own_slot, other]])
            is_earlier = other < own_slot
            if self.tops.runs.ties == "trec":
                candidates = mixed.window.candidates
                is_earlier = candidates[own_row, other] < candidates[own_row, own_slot]
            wins = (keys[1] > keys[0]) | ((keys[1] == keys[0]) & is_earlier)
            ranks[member[some]] = 1 + above + np.bincount(pair[wins], minlength=len(above))
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
