"""Places of the relevant documents: one more than the number of candidates above each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fusion_bench.batch import native
from fusion_bench.batch.layout import PairBlock
from fusion_bench.batch.scoring import RankScorer, RoughArray, RoughScores
from fusion_bench.batch.sorted_queries import QueryPool, sort_pool
from fusion_bench.data.ordering import FloatArray, IntArray

#: Bytes of a sum of so many Booleans never run over.
BYTE_ROWS: Final = 255
#: Doubtful pairs that are collected before they are settled: bounds their memory.
MOST_DOUBTS: Final = 250_000


class DoubtfulPairs(NamedTuple):
    """Pairs whose order the rough scores leave open.

    Attributes:
        lane: (d,): trial.
        member: (d,): index into ``PairLayout.relevant``.
        other: (d,): row of the other document.
        earlier: (d,): whether the other one wins a tie.
    """

    lane: IntArray
    member: IntArray
    other: IntArray
    earlier: NDArray[np.bool_]


NOTHING: Final[IntArray] = np.empty(0, dtype=np.int64)
NO_DOUBTS: Final = DoubtfulPairs(NOTHING, NOTHING, NOTHING, NOTHING.astype(bool))


class RankCounter:
    """Places the relevant candidates of a scorer's layout, up to a limit, a few trials at a time.

    What it works in is allocated once: the system hands out fresh memory slowly.
    """

    def __init__(self, scorer: RankScorer, limit: int | None = None) -> None:
        self.scorer = scorer
        self.limit = limit
        self.layout = scorer.layout
        rows = len(self.layout.rows)
        self.size = max((block.others.size for block in self.layout.blocks), default=0)
        self.asked = np.zeros(rows, dtype=bool)
        self.keys: FloatArray = np.empty(rows)

    def count_ranks(self, lanes: slice) -> IntArray:
        """(L, R): the place of every relevant candidate in its query, for these trials.

        Beyond the limit a place may be any that is beyond it, and need not be the only one there.
        """
        ranks = np.repeat((self.layout.above + 1)[:, None], lanes.stop - lanes.start, axis=1)
        if self.layout.blocks and not (native.is_usable() and self._count_natively(lanes, ranks)):
            self._count_blocks(lanes, ranks)
        for pool in self.layout.pools:
            self._sort_pool(pool, lanes, ranks)
        return np.ascontiguousarray(ranks.T)

    def _count_blocks(self, lanes: slice, ranks: IntArray) -> None:
        """Add the counts of the blocks to ``ranks``, (R, L)."""
        rough = self.scorer.rough_scores(lanes)
        space = _Buffers(self.size, rough.scores.shape[1], rough.scores.dtype)
        waiting, size = [], 0
        for block in self.layout.blocks:
            certain, doubts = _count_block(block, rough, space)
            ranks[block.members] += certain
            waiting.append(doubts)
            size += len(doubts.lane)
            if size > MOST_DOUBTS:
                self._resolve_doubts(lanes.start, _join_doubts(waiting), ranks)
                waiting, size = [], 0
        if size:
            self._resolve_doubts(lanes.start, _join_doubts(waiting), ranks)

    def _count_natively(self, lanes: slice, ranks: IntArray) -> bool:
        """The same in C, unless there are too many sources for it; whether it did."""
        sums = self.scorer.rough_terms(lanes)
        if len(sums.tables) > native.MOST_TABLES:
            return False
        pairs = self.layout.member_pairs
        certain, lane, pair = native.count_pairs(sums, pairs)
        ranks[pairs.members] += certain
        member = pairs.members[np.searchsorted(pairs.starts, pair, side="right") - 1]
        doubts = DoubtfulPairs(lane, member, pairs.rows[pair], pairs.earlier[pair])
        self._resolve_doubts(lanes.start, doubts, ranks)
        return True

    def _sort_pool(self, pool: QueryPool, lanes: slice, ranks: IntArray) -> None:
        """Write the ranks within a pool into ``ranks``, (R, L)."""
        for lane, trial in enumerate(range(lanes.start, lanes.stop)):
            keys = partial(self.scorer.exact_keys, trial)
            scores = self.scorer.precise_scores(trial, pool)
            for member, place in sort_pool(pool, scores, self.limit, keys):
                ranks[member, lane] = place

    def _resolve_doubts(self, start: int, doubts: DoubtfulPairs, ranks: IntArray) -> None:
        """Add the doubtful pairs to ``ranks``, (R, L), by exact keys and the tie rule."""
        for lane in range(ranks.shape[1]):
            chosen = doubts.lane == lane
            if chosen.any():
                member, other, earlier = (column[chosen] for column in doubts[1:])
                member_keys, other_keys = self._exact_keys(
                    start + lane, self.layout.own_rows[member], other
                )
                above = (other_keys > member_keys) | ((other_keys == member_keys) & earlier)
                ranks[:, lane] += np.bincount(member[above], minlength=len(ranks))

    def _exact_keys(self, trial: int, *rows: IntArray) -> Iterator[FloatArray]:
        """(d,) each: the exact keys of these rows, each row's computed once."""
        for some in rows:
            self.asked[some] = True
        distinct = np.flatnonzero(self.asked)
        self.asked[distinct] = False
        self.keys[distinct] = self.scorer.exact_keys(trial, distinct)
        return (self.keys[some] for some in rows)


class _Buffers:
    """Memory that every block uses again."""

    def __init__(self, size: int, lanes: int, dtype: np.dtype[Any]) -> None:
        self.lanes = lanes
        self.scores = np.empty(size * lanes, dtype=dtype)
        self.over = np.empty(size * lanes, dtype=bool)
        self.least = np.empty(size * lanes, dtype=bool)

    def views(
        self, shape: tuple[int, ...]
    ) -> tuple[RoughArray, NDArray[np.bool_], NDArray[np.bool_]]:
        """Its three arrays, (w, n, L) each."""
        size = shape[0] * shape[1] * self.lanes
        full = (*shape, self.lanes)
        return (
            self.scores[:size].reshape(full),
            self.over[:size].reshape(full),
            self.least[:size].reshape(full),
        )


def _count_block(
    block: PairBlock, rough: RoughScores, space: _Buffers
) -> tuple[IntArray, DoubtfulPairs]:
    gathered, over, least = space.views(block.others.shape)
    np.take(rough.scores, block.others, axis=0, out=gathered, mode="clip")
    np.greater(gathered, rough.upper[block.members], out=over)
    np.greater_equal(gathered, rough.lower[block.members], out=least)
    np.not_equal(over, least, out=least)
    pair, lane = np.divmod(np.flatnonzero(least), space.lanes)
    doubts = DoubtfulPairs(
        lane,
        block.members[pair % len(block.members)],
        block.others.ravel()[pair],
        block.earlier.ravel()[pair],
    )
    return _true_by_column(over), doubts


def _true_by_column(table: NDArray[np.bool_]) -> IntArray:
    """(n, L): how many of (w, n, L) are true. Sums of bytes are eight times as fast as others."""
    as_bytes = table.view(np.uint8)
    total = np.zeros(table.shape[1:], dtype=np.int64)
    for start in range(0, len(table), BYTE_ROWS):
        total += np.add.reduce(as_bytes[start : start + BYTE_ROWS], axis=0, dtype=np.uint8)
    return total


def _join_doubts(parts: list[DoubtfulPairs]) -> DoubtfulPairs:
    return DoubtfulPairs(*(np.concatenate(column) for column in zip(*parts, strict=True)))
