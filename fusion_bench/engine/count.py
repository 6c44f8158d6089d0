"""Places of the relevant documents: one more than the number of candidates above each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fusion_bench.engine.layout import Block, Layout, Pool
from fusion_bench.engine.scoring import RoughArray, Scorer
from fusion_bench.order import FloatArray, IntArray

__all__ = ["places"]

#: Bytes of a sum of so many Booleans never run over.
BYTE_ROWS = 255
#: Doubtful pairs that are collected before they are settled: bounds their memory.
MOST_DOUBTS = 250_000


class Doubts(NamedTuple):
    """Pairs whose order the rough scores leave open.

    Attributes:
        lane: (d,): trial.
        member: (d,): index into ``Layout.relevant``.
        other: (d,): row of the other document.
        earlier: (d,): whether the other one wins a tie.
    """

    lane: IntArray
    member: IntArray
    other: IntArray
    earlier: NDArray[np.bool_]


def places(scorer: Scorer, lanes: slice) -> IntArray:
    """(L, R): the place of every relevant candidate in its query, for these trials."""
    layout = scorer.layout
    scores, lower, upper = scorer.rough(lanes)
    found = np.repeat((layout.above + 1)[:, None], scores.shape[1], axis=1)
    waiting, size = [], 0
    for members, certain, doubts in _looked_at(layout, scores, lower, upper):
        found[members] += certain
        waiting.append(doubts)
        size += len(doubts.lane)
        if size > MOST_DOUBTS:
            _settle(scorer, lanes.start, _joined(waiting), found)
            waiting, size = [], 0
    if size:
        _settle(scorer, lanes.start, _joined(waiting), found)
    return np.ascontiguousarray(found.T)


def _looked_at(
    layout: Layout, scores: RoughArray, lower: RoughArray, upper: RoughArray
) -> Iterator[tuple[IntArray, IntArray, Doubts]]:
    """Some members, (n, L) how many others are above each for certain, and what is in doubt."""
    size = max((block.others.size for block in layout.blocks), default=0)
    space = _Space(size, scores.shape[1], scores.dtype)
    for block in layout.blocks:
        yield block.members, *_counted(block, scores, lower, upper, space)
    for pool in layout.pools:
        yield pool.members, *_sorted(pool, scores, lower, upper)


class _Space:
    """Memory that every block uses again."""

    def __init__(self, size: int, lanes: int, dtype: np.dtype[Any]) -> None:
        self.lanes = lanes
        self.scores = np.empty(size * lanes, dtype=dtype)
        self.over = np.empty(size * lanes, dtype=bool)
        self.least = np.empty(size * lanes, dtype=bool)

    def shaped(
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


def _counted(
    block: Block, scores: RoughArray, lower: RoughArray, upper: RoughArray, space: _Space
) -> tuple[IntArray, Doubts]:
    gathered, over, least = space.shaped(block.others.shape)
    np.take(scores, block.others, axis=0, out=gathered, mode="clip")
    np.greater(gathered, upper[block.members], out=over)
    np.greater_equal(gathered, lower[block.members], out=least)
    np.not_equal(over, least, out=least)
    pair, lane = np.divmod(np.flatnonzero(least), space.lanes)
    doubts = Doubts(
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


def _sorted(
    pool: Pool, scores: RoughArray, lower: RoughArray, upper: RoughArray
) -> tuple[IntArray, Doubts]:
    certain = np.empty((len(pool.members), scores.shape[1]), dtype=np.int64)
    parts = []
    for lane in range(scores.shape[1]):
        mine = scores[pool.rows, lane]
        order = np.argsort(mine)
        rising = mine[order]
        first = np.searchsorted(rising, lower[pool.members, lane], side="left")
        last = np.searchsorted(rising, upper[pool.members, lane], side="right")
        certain[:, lane] = len(order) - last
        near = last - first  # the member itself among them
        member = np.repeat(np.arange(len(near)), near)
        start = np.repeat(first - np.cumsum(near) + near, near)
        other = order[start + np.arange(len(member))]
        keep = other != pool.places[member]
        member, other = member[keep], other[keep]
        parts.append(
            Doubts(
                np.full(len(member), lane),
                pool.members[member],
                pool.rows[other],
                other < pool.places[member],
            )
        )
    return certain, _joined(parts)


def _joined(parts: list[Doubts]) -> Doubts:
    return Doubts(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _settle(scorer: Scorer, start: int, doubts: Doubts, found: IntArray) -> None:
    """Add to ``found``, (R, L), what exact keys and the tie rule say of the doubtful pairs."""
    for lane in np.unique(doubts.lane).tolist():
        member, other, earlier = (column[doubts.lane == lane] for column in doubts[1:])
        mine = scorer.layout.own[member]
        keys = _keys(scorer, start + lane, mine, other)
        above = (keys[other] > keys[mine]) | ((keys[other] == keys[mine]) & earlier)
        found[:, lane] += np.bincount(member[above], minlength=len(found))


def _keys(scorer: Scorer, trial: int, *rows: IntArray) -> FloatArray:
    """(U,): the exact key of these rows; what stands elsewhere is not set."""
    asked = np.zeros(len(scorer.layout.rows), dtype=bool)
    for some in rows:
        asked[some] = True
    keys: FloatArray = np.empty(len(asked))
    keys[asked] = scorer.keys(trial, np.flatnonzero(asked))
    return keys
