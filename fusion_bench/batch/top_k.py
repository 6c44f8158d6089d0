"""The first documents of each fused list, in order, and the places of all relevant ones.

Lists are sorted by quantised keys; neighbours whose order those leave open are settled on exact
ones. A list whose doubtful neighbours reach further down than was kept is left to the plain path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fusion_bench.batch.quantized_scores import quantized_scores
from fusion_bench.batch.sorting import BlockKeys, CandidateLists, ListBlock, QuantizedScores, Which
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.grouped_rows import count_within_queries, to_offsets
from fusion_bench.data.ordering import FloatArray, IntArray, score_keys
from fusion_bench.fuse import EngineForm

#: Places kept beyond the depth, so that doubts across it can be settled.
SPARE: Final = 12
#: Bytes of a sum of so many Booleans never run over, and are by far the fastest to add.
BYTE_COLUMNS: Final = 255
#: With more relevant documents a list, on average, they are searched for instead of counted.
MOST_COUNTED: Final = 24


@dataclass(frozen=True, eq=False)
class TopDocuments:
    """Fused lists of one fusion.

    Attributes:
        lists: The lists.
        places: (R,): place of each of ``lists.member``, from 1.
        best: (n, D): candidates in fused order, as places in storage from 0; what stands beyond
            a list's length means nothing.
        scores: (n, D): their quantised scores, negative.
        unit: (n, 1): what one unit of these is worth.
        base: (n, 1): what none is worth.
        error: Units by which they may be off.
        open: (n,): lists that could not be settled.
    """

    lists: CandidateLists
    relevant_ranks: IntArray
    best: NDArray[np.signedinteger[Any]]
    scores: NDArray[np.signedinteger[Any]]
    unit: FloatArray
    base: FloatArray
    error: float
    is_unresolved: NDArray[np.bool_]

    def rough_scores(self, rows: IntArray, depth: int) -> tuple[FloatArray, FloatArray]:
        """(m, D) what the fusion decides on, roughly, and (m, 1) by how much it may be off."""
        unit, base = self.unit[rows], self.base[rows]
        # One more unit than the error covers the rounding of these very numbers.
        return base - self.scores[rows, :depth] * unit, unit * (self.error + 1)


class _ListState:
    """What the blocks of one trial leave behind."""

    def __init__(self, lists: CandidateLists, width: int) -> None:
        rows = len(lists.queries)
        self.places = np.zeros(len(lists.member), dtype=np.int64)
        self.best = np.zeros((rows, width), dtype=np.int32)
        self.scores = np.zeros((rows, width), dtype=lists.dtype)
        self.near = np.zeros((rows, width), dtype=bool)
        self.unit = np.zeros((rows, 1))
        self.base = np.zeros((rows, 1))
        self.open = np.zeros(rows, dtype=bool)
        self.members: list[IntArray] = []
        self.others: list[IntArray] = []


def top_documents(
    runs: AlignedRuns, which: Which, trials: Sequence[EngineForm], depth: int
) -> Iterator[TopDocuments]:
    """The tops of some fusions of one view, block by block: a block stays in the cache.

    Args:
        runs: The view.
        which: See :func:`candidate_lists`.
        trials: The fusions.
        depth: How many documents to keep of each list; 0 = only place the relevant ones.
    """
    makers = [quantized_scores(runs, which, trial) for trial in trials]
    if not makers:
        return
    lists = makers[0].lists
    longest = lists.blocks[-1].width if lists.blocks else 0
    states = [_ListState(lists, min(depth + SPARE, longest) if depth else 0) for _ in trials]
    for number, block in enumerate(lists.blocks):
        for maker, state in zip(makers, states, strict=True):
            _sort_block(lists, block, maker.block_keys(number), maker, state)
    for trial, maker, state in zip(trials, makers, states, strict=True):
        _resolve_members(runs, lists, trial, state)
        _resolve_order(runs, lists, trial, state)
        cut = slice(min(depth, longest))
        best, scores = state.best[:, cut], state.scores[:, cut]
        yield TopDocuments(
            lists, state.places, best, scores, state.unit, state.base, maker.error, state.open
        )


def _sort_block(
    lists: CandidateLists,
    block: ListBlock,
    given: BlockKeys,
    maker: QuantizedScores,
    state: _ListState,
) -> None:
    """Sort one block, keep the first of each list and place its relevant documents."""
    owner = lists.owner[block.members] - block.rows.start
    score = given.keys[owner, lists.storage_places[block.members]] >> given.bits
    given.keys.sort(axis=1)
    if state.best.shape[1]:
        _keep_first(lists, block, given, maker.slack, state)
    # Places among the sorted keys before which all are better, and from which on all are worse.
    limits = (score - maker.slack) << given.bits, (score + maker.slack + 1) << given.bits
    first, last = _count_smaller(given.keys, owner, *limits)
    state.places[block.members] = first + 1
    doubtful = np.flatnonzero(last - first > 1)
    if len(doubtful):
        near = (last - first)[doubtful]
        repeated = np.repeat(doubtful, near)
        column = count_within_queries(to_offsets(near)) - 1 + first[repeated]
        place = given.keys[owner[repeated], column] & ((1 << given.bits) - 1)
        repeated += block.members.start
        other = place + lists.starts[lists.owner[repeated]]
        keep = other != lists.member[repeated]
        state.members.append(repeated[keep])
        state.others.append(other[keep])


def _count_smaller(
    keys: NDArray[Any], owner: IntArray, *limits: NDArray[Any]
) -> Iterator[IntArray]:
    """(m,) for each of the limits: how many keys of its list, sorted, are below it."""
    if len(owner) <= MOST_COUNTED * len(keys):
        list_keys = keys[owner]
        for limit in limits:
            yield _true_by_row(list_keys < limit[:, None])
        return
    ends = np.searchsorted(owner, np.arange(len(keys) + 1))
    for limit in limits:
        parts = zip(keys, ends[:-1], ends[1:], strict=True)
        yield np.concatenate([row.searchsorted(limit[a:b]) for row, a, b in parts])


def _true_by_row(table: NDArray[np.bool_]) -> IntArray:
    """(m,): how many of (m, w) are true."""
    as_bytes = table.view(np.uint8)
    total = np.zeros(len(table), dtype=np.int64)
    for start in range(0, table.shape[1], BYTE_COLUMNS):
        some = as_bytes[:, start : start + BYTE_COLUMNS]
        total += np.add.reduce(some, axis=1, dtype=np.uint8)
    return total


def _keep_first(
    lists: CandidateLists, block: ListBlock, given: BlockKeys, slack: int, state: _ListState
) -> None:
    """The first of each list, and which neighbours are in doubt."""
    width = min(state.best.shape[1], block.width)
    first = given.keys[:, :width]
    scores = first >> given.bits
    state.best[block.rows, :width] = first & ((1 << given.bits) - 1)
    state.scores[block.rows, :width] = scores
    state.unit[block.rows], state.base[block.rows] = given.unit, given.base
    near = np.diff(scores, axis=1) <= slack
    near &= np.arange(1, width) < lists.sizes[block.rows, None]
    state.near[block.rows, : width - 1] = near


def _exact_keys(runs: AlignedRuns, trial: EngineForm, candidates: IntArray) -> FloatArray:
    """(n,): exact keys, each candidate's computed once."""
    distinct, inverse = np.unique(candidates, return_inverse=True)
    return score_keys(trial.scores(runs, distinct))[inverse]


def _resolve_members(
    runs: AlignedRuns, lists: CandidateLists, trial: EngineForm, state: _ListState
) -> None:
    """Add to the places what exact keys and the tie rule say of doubtful pairs."""
    if not state.members:
        return
    member, other = np.concatenate(state.members), np.concatenate(state.others)
    candidate = lists.member[member]
    keys = _exact_keys(runs, trial, np.concatenate([candidate, other]))
    candidate_keys, other_keys = keys[: len(candidate)], keys[len(candidate) :]
    above = (other_keys > candidate_keys) | ((other_keys == candidate_keys) & (other < candidate))
    state.places += np.bincount(member[above], minlength=len(state.places))


def _resolve_order(
    runs: AlignedRuns, lists: CandidateLists, trial: EngineForm, state: _ListState
) -> None:
    """Put doubtful neighbours in the order of their exact keys."""
    width = state.best.shape[1]
    pairs = np.flatnonzero(state.near)
    if not len(pairs):
        return
    # A list longer than what was kept, in doubt from the depth to the end of that.
    reaching = state.near[:, max(width - SPARE - 1, 0) : width - 1].all(axis=1)
    state.open |= reaching & (lists.sizes > width)
    crowd = state.near.copy()
    crowd.ravel()[pairs + 1] = True  # the last column is never near what follows
    place = np.flatnonzero(crowd)
    row = place // width
    best = state.best.ravel()
    candidate = lists.starts[row] + best[place]
    keys = _exact_keys(runs, trial, candidate)
    at = np.searchsorted(place, pairs)
    upper, lower = keys[at], keys[at + 1]
    wrong = (upper < lower) | ((upper == lower) & (candidate[at] > candidate[at + 1]))
    if not wrong.any():
        return
    chain = np.cumsum(~state.near.ravel()[place - 1] | (place == 0)) - 1
    bad = np.flatnonzero(np.bincount(chain[at[wrong]], minlength=chain[-1] + 1)[chain])
    order = bad[np.lexsort((candidate[bad], -keys[bad], chain[bad]))]
    scores = state.scores.ravel()
    best[place[bad]], scores[place[bad]] = best[place[order]], scores[place[order]]
