"""The first documents of each fused list, in order, and the places of all relevant ones.

Lists are sorted by quantized keys; neighbors whose order those leave open are settled on exact
ones. A list whose doubtful neighbors reach further down than was kept is left to the plain path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fusion_bench.batch.limits import BatchLimits
from fusion_bench.batch.quantized_scores import quantized_scores
from fusion_bench.batch.scoring import exact_keys, is_above
from fusion_bench.batch.sorting import BlockKeys, ListBlock, QuantizedScores, Which
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.rows.grouped_rows import count_within_queries, to_offsets
from fusion_bench.fuse import EngineForm

#: Bytes of a sum of so many Booleans never run over, and are by far the fastest to add.
BYTE_COLUMNS: Final = 255


class TopDocuments:
    """Fused lists of one fusion.

    Attributes:
        runs: The view.
        trial: The fusion.
        lists: The lists.
        relevant_ranks: (R,): place of each of ``lists.member``, from 1.
        best: (n, D): candidates in fused order, as places in storage from 0; what stands beyond
            a list's length means nothing. D is the depth and a few to spare.
        is_unresolved: (n,): lists whose first ``depth`` documents stay in doubt.
    """

    def __init__(self, maker: QuantizedScores, trial: EngineForm, depth: int) -> None:
        self.runs, self.lists, self.trial = maker.runs, maker.lists, trial
        self.maker = maker
        rows, spare = len(self.lists.queries), self.lists.limits.spare_places
        width = min(depth + spare, self.lists.longest) if depth else 0
        self.relevant_ranks = np.zeros(len(self.lists.member), dtype=np.int64)
        self.best = np.zeros((rows, width), dtype=np.int32)
        self.is_unresolved = np.zeros(rows, dtype=bool)
        self._scores = np.zeros((rows, width), dtype=self.lists.key_type(self.lists.longest))
        self._is_near = np.zeros((rows, width), dtype=bool)  # to the one behind
        self._unit, self._base = np.zeros((rows, 1)), np.zeros((rows, 1))
        self._members: list[IntArray] = []  # of pairs in doubt
        self._others: list[IntArray] = []

    def rough_scores(self, rows: IntArray, depth: int) -> tuple[FloatArray, FloatArray]:
        """(m, D) what the fusion decides on, roughly, and (m, 1) by how much it may be off."""
        unit, base = self._unit[rows], self._base[rows]
        # One more unit than the error covers the rounding of these very numbers.
        return base - self._scores[rows, :depth] * unit, unit * (self.maker.error + 1)

    def sort_block(self, number: int) -> None:
        """Sort one block, keep the first of each list and place its relevant documents."""
        lists, block, slack = self.lists, self.lists.blocks[number], self.maker.slack
        given = self.maker.block_keys(number)
        owner = lists.owner[block.members] - block.rows.start
        score = given.keys[owner, lists.storage_places[block.members]] >> given.bits
        given.keys.sort(axis=1)
        if self.best.shape[1]:
            self._keep_first(block, given)
        # Places among the sorted keys before which all are better, and from which on all worse.
        bounds = (score - slack) << given.bits, (score + slack + 1) << given.bits
        first, last = _count_smaller(given.keys, owner, lists.limits.compared_relevant, *bounds)
        self.relevant_ranks[block.members] = first + 1
        doubtful = np.flatnonzero(last - first > 1)
        if len(doubtful):
            near = (last - first)[doubtful]
            repeated = np.repeat(doubtful, near)
            column = count_within_queries(to_offsets(near)) - 1 + first[repeated]
            place = given.keys[owner[repeated], column] & ((1 << given.bits) - 1)
            repeated += block.members.start
            other = place + lists.starts[lists.owner[repeated]]
            keep = other != lists.member[repeated]
            self._members.append(repeated[keep])
            self._others.append(other[keep])

    def _keep_first(self, block: ListBlock, given: BlockKeys) -> None:
        """The first of each list, and which neighbors are in doubt."""
        width = min(self.best.shape[1], block.width)
        first = given.keys[:, :width]
        scores = first >> given.bits
        self.best[block.rows, :width] = first & ((1 << given.bits) - 1)
        self._scores[block.rows, :width] = scores
        self._unit[block.rows], self._base[block.rows] = given.unit, given.base
        near = np.diff(scores, axis=1) <= self.maker.slack
        near &= np.arange(1, width) < self.lists.sizes[block.rows, None]
        self._is_near[block.rows, : width - 1] = near

    def resolve_members(self) -> None:
        """Add to the places what exact keys and the tie rule say of doubtful pairs."""
        if not self._members:
            return
        member, other = np.concatenate(self._members), np.concatenate(self._others)
        above = is_above(self.runs, self.trial, self.lists.member[member], other)
        self.relevant_ranks += np.bincount(member[above], minlength=len(self.relevant_ranks))

    def resolve_order(self) -> None:
        """Put doubtful neighbors in the order of their exact keys."""
        near, width = self._is_near, self.best.shape[1]
        pairs = np.flatnonzero(near)
        if not len(pairs):
            return
        # A list longer than what was kept, in doubt from the depth to the end of that.
        spare = self.lists.limits.spare_places
        reaching = near[:, max(width - spare - 1, 0) : width - 1].all(axis=1)
        self.is_unresolved |= reaching & (self.lists.sizes > width)
        crowd = near.copy()
        crowd.ravel()[pairs + 1] = True  # the last column is never near what follows
        place = np.flatnonzero(crowd)
        best, scores = self.best.ravel(), self._scores.ravel()
        candidate = self.lists.starts[place // width] + best[place]
        keys = exact_keys(self.runs, self.trial, candidate)
        at = np.searchsorted(place, pairs)
        upper, lower = keys[at], keys[at + 1]
        wrong = (upper < lower) | ((upper == lower) & (candidate[at] > candidate[at + 1]))
        if not wrong.any():
            return
        chain = np.cumsum(~near.ravel()[place - 1] | (place == 0)) - 1
        bad = np.flatnonzero(np.bincount(chain[at[wrong]], minlength=chain[-1] + 1)[chain])
        order = bad[np.lexsort((candidate[bad], -keys[bad], chain[bad]))]
        best[place[bad]], scores[place[bad]] = best[place[order]], scores[place[order]]


def top_documents(
    runs: AlignedRuns, which: Which, trials: Sequence[EngineForm], depth: int, limits: BatchLimits
) -> Iterator[TopDocuments]:
    """The tops of some fusions of one view, block by block: a block stays in the cache.

    Args:
        runs: The view.
        which: See :func:`candidate_lists`.
        trials: The fusions.
        depth: How many documents to keep of each list; 0 = only place the relevant ones.
        limits: How lists are sorted.
    """
    makers = [quantized_scores(runs, which, trial, limits) for trial in trials]
    tops = [TopDocuments(*given, depth) for given in zip(makers, trials, strict=True)]
    for number in range(len(makers[0].lists.blocks)):
        for top in tops:
            top.sort_block(number)
    for top in tops:
        top.resolve_members()
        top.resolve_order()
        yield top


def _count_smaller(
    keys: NDArray[Any], owner: IntArray, most_compared: int, *bounds: NDArray[Any]
) -> Iterator[IntArray]:
    """(m,) for each of the bounds: how many keys of its list, sorted, are below it."""
    if len(owner) <= most_compared * len(keys):
        list_keys = keys[owner]
        for bound in bounds:
            yield _true_by_row(list_keys < bound[:, None])
        return
    ends = np.searchsorted(owner, np.arange(len(keys) + 1))
    for bound in bounds:
        parts = zip(keys, ends[:-1], ends[1:], strict=True)
        yield np.concatenate([row.searchsorted(bound[a:b]) for row, a, b in parts])


def _true_by_row(table: NDArray[np.bool_]) -> IntArray:
    """(m,): how many of (m, w) are true."""
    as_bytes = table.view(np.uint8)
    total = np.zeros(len(table), dtype=np.int64)
    for start in range(0, table.shape[1], BYTE_COLUMNS):
        some = as_bytes[:, start : start + BYTE_COLUMNS]
        total += np.add.reduce(some, axis=1, dtype=np.uint8)
    return total
