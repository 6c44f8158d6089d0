"""Quantized scores of each kind of fusion: the first documents of each fused list, in order.

A key is a quantized score, falling, with the candidate's place in storage in its low bits: one
sort of plain integers orders a list and remembers who is who. Candidates are stored in the order
of the tie rule, so equal scores come out in that order too. Neighbors nearer than the quantum
and its error are settled on exact keys. A list whose doubtful neighbors reach further down than
was kept is left to the plain path.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.aligned_runs import AlignedRuns, cached_by_view
from fusion_bench.data.grouped_rows import count_within_queries, to_offsets
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray, greatest_size, score_keys
from fusion_bench.measures.rankings import relevant_candidates
from fusion_bench.methods.fuse import CandidateScores, EngineForm, RankSum, WeightedMean
from fusion_bench.ranking.term_sums import (
    HUGE,
    TINY,
    BatchLimits,
    Columns,
    RankScorer,
    is_above,
    join_columns,
    merged_columns,
    pack_ranks,
    width_batches,
)

KeyArray: TypeAlias = NDArray[np.signedinteger[Any]]
Which: TypeAlias = Literal["relevant", "all"]


class ListBlock(NamedTuple):
    """Lists of about equal length.

    Attributes:
        rows: Which of ``CandidateLists.queries``.
        members: Which of ``CandidateLists.member``.
        width: The greatest length.
        beyond: (n, w'): which of the last w' columns are padding.
    """

    rows: slice
    members: slice
    width: int
    beyond: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CandidateLists:
    """The candidates of some queries, shortest lists first.

    Attributes:
        queries: (n,).
        starts: (n,): first candidate of each.
        sizes: (n,).
        which: (R,): index of each relevant candidate among those of the view, as stored.
        member: (R,): the relevant candidates, by list.
        owner: (R,): list of each.
        storage_places: (R,): its place in storage, from 0.
        blocks: The lists cut into blocks.
        limits: How they are cut.
    """

    queries: IntArray
    starts: IntArray
    sizes: IntArray
    which: IntArray
    member: IntArray
    owner: IntArray
    storage_places: IntArray
    blocks: tuple[ListBlock, ...]
    limits: BatchLimits

    @property
    def longest(self) -> int:
        """The greatest length."""
        return int(self.sizes[-1]) if len(self.sizes) else 0

    def key_type(self, width: int) -> np.dtype[Any]:
        """Holds the keys of lists of this length."""
        return np.dtype(np.int32 if width <= self.limits.narrow_width else np.int64)

    def candidate_grid(self, block: ListBlock) -> IntArray:
        """(n, w): every candidate; padding repeats the last of the list."""
        place = np.minimum(np.arange(block.width), self.sizes[block.rows, None] - 1)
        return self.starts[block.rows, None] + place


@cached_by_view()
def _candidate_lists(runs: AlignedRuns, which: Which, limits: BatchLimits) -> CandidateLists:
    """The lists of a view, laid out once.

    Args:
        runs: The view.
        which: Only queries with a relevant candidate, or all with any.
        limits: How they are cut into blocks.
    """
    sizes = np.diff(runs.offsets)
    relevant, owner, _ = relevant_candidates(runs)
    wanted = sizes > 0
    if which == "relevant":
        wanted &= np.bincount(owner, minlength=len(sizes)) > 0
    queries = np.flatnonzero(wanted)
    queries = queries[np.argsort(sizes[queries], kind="stable")]
    row = np.full(len(sizes), -1)
    row[queries] = np.arange(len(queries))
    by_row = np.argsort(row[owner], kind="stable")
    member = relevant[by_row]
    owner = row[owner[by_row]]
    starts = runs.offsets[queries]
    return CandidateLists(
        queries,
        starts,
        sizes[queries],
        by_row,
        member,
        owner,
        member - starts[owner],
        tuple(_cut_blocks(sizes[queries], owner, limits.block_candidates)),
        limits,
    )


def _cut_blocks(sizes: IntArray, owner: IntArray, most: int) -> Iterator[ListBlock]:
    """Blocks of rising lengths."""
    for rows in width_batches(sizes, most):
        least, width = sizes[[rows.start, rows.stop - 1]].tolist()
        first, last = np.searchsorted(owner, [rows.start, rows.stop]).tolist()
        beyond = np.arange(least, width) >= sizes[rows, None]
        yield ListBlock(rows, slice(first, last), width, beyond)


class BlockKeys(NamedTuple):
    """What one block's lists are sorted by.

    Attributes:
        keys: (n, w): the smaller the better; padding last.
        bits: How many low bits hold the place in storage.
        unit: (n, 1): what one unit of the rest is worth, of the score as the fusion decides.
        base: (n, 1): what none is worth.
    """

    keys: KeyArray
    bits: int
    unit: FloatArray
    base: FloatArray


class QuantizedScores(ABC):
    """Quantized scores of one fusion.

    Attributes:
        error: Units by which a quantized score may be off.
    """

    error: float

    def __init__(self, runs: AlignedRuns, lists: CandidateLists) -> None:
        self.runs, self.lists = runs, lists

    @property
    def slack(self) -> int:
        """Scores that are more units apart have keys in the same order (see below)."""
        return int(np.ceil(2 * self.error)) + 1

    def block_keys(self, number: int) -> BlockKeys:
        """The keys of one block."""
        block = self.lists.blocks[number]
        bits = max(block.width - 1, 1).bit_length()
        dtype = self.lists.key_type(block.width)
        keys, unit, base = self._quantize_block(number, bits, dtype)
        keys += np.arange(block.width, dtype=dtype)
        least = block.width - block.beyond.shape[1]
        keys[:, least:][block.beyond] = np.iinfo(dtype).max
        return BlockKeys(keys, bits, unit, base)

    @abstractmethod
    def _quantize_block(
        self, number: int, bits: int, dtype: np.dtype[Any]
    ) -> tuple[KeyArray, FloatArray, FloatArray]:
        """(n, w) negative quantized scores, shifted by ``bits``; unit and base, (n, 1)."""


#: Bits of a quantized mean: about what float32 tells apart, and they leave 9 for a place.
MEAN_BITS: Final = 22
#: Normalized scores that a view remembers row by row.
FEATURES_KEPT: Final = 2
#: Smaller weights, against the greatest, are too near the end of the range of float32.
LEAST_SHARE: Final = 1e-18
#: Scores of a query that differ by less than this share of their size are not quantized.
LEAST_SPREAD: Final = 1e-3
#: Bits of a score in a wide key: its quantum is then well above the twelfth digit of a score.
WIDE_BITS: Final = 33


def quantized_scores(
    runs: AlignedRuns, which: Which, trial: EngineForm, limits: BatchLimits
) -> QuantizedScores:
    """Quantized scores of a fusion of this form."""
    lists = _candidate_lists(runs, which, limits)
    if isinstance(trial, RankSum):
        return QuantizedRankSum(runs, lists, trial)
    if isinstance(trial, CandidateScores):
        return QuantizedCandidates(runs, lists, trial)
    return QuantizedMean(runs, lists, trial)


def unsupported_reason(runs: AlignedRuns, trial: EngineForm, limits: BatchLimits) -> str | None:
    """Why a fusion is beyond what the bounds are proven for; None = it is not."""
    if isinstance(trial, RankSum):
        return RankScorer.unsupported_reason(trial, limits)
    if isinstance(trial, CandidateScores):
        return _unsupported_scores(float(np.abs(trial.all_scores(runs)).max(initial=0)))
    least, most = float(trial.weights.min()), float(trial.weights.max())
    if not (least > TINY and most < HUGE and least / most > LEAST_SHARE):
        return "weights beyond the range of the engine"
    return _unsupported_scores(_greatest_feature(runs, trial))


def _unsupported_scores(greatest: float) -> str | None:
    """Why scores whose greatest size is this one cannot be quantized; None = they can."""
    is_in_range = greatest == 0 or TINY < greatest < HUGE
    return None if is_in_range else "scores beyond the range of the engine"


@cached_by_view(keep=FEATURES_KEPT, key=lambda mean: mean.key)
def _greatest_feature(runs: AlignedRuns, trial: WeightedMean) -> float:  # noqa: ARG001 - cached in it
    return greatest_size(trial.normalized)  # what counts for absence is never greater


class QuantizedRankSum(QuantizedScores):
    """Sums of quantized terms: integers, so that only the C' roundings of its tables err."""

    def __init__(self, runs: AlignedRuns, lists: CandidateLists, trial: RankSum) -> None:
        super().__init__(runs, lists)
        self.trial = trial
        self.columns, self.tables = merged_columns(trial)
        self.greatest = float(self.tables.max(axis=1).sum())
        # Two columns joined are rounded once; the rest is the rounding of float64 sums.
        self.error = len(self.columns) / 2 + 0.01
        self.shifted: dict[tuple[int, np.dtype[Any]], list[tuple[KeyArray, Columns]]] = {}

    def _quantize_block(
        self, number: int, bits: int, dtype: np.dtype[Any]
    ) -> tuple[KeyArray, FloatArray, FloatArray]:
        room = 31 - bits if dtype == np.int32 else WIDE_BITS
        scale = (2.0**room - 2 * self.slack) / self.greatest  # what is compared must fit too
        if (bits, dtype) not in self.shifted:
            most = self.lists.limits.joined_entries
            self.shifted[bits, dtype] = [
                (-(np.rint(table * scale).astype(dtype) << bits), columns)
                for table, columns in join_columns(self.columns, self.tables, most)
            ]
        tables, joined = zip(*self.shifted[bits, dtype], strict=True)
        packed = _block_codes(self.runs, self.lists, joined)[number]
        first, *rest = zip(tables, packed, strict=True)
        keys = np.take(*first, mode="clip")
        part = np.empty_like(keys)
        for table, codes in rest:
            keys += np.take(table, codes, out=part, mode="clip")
        unit = np.full((len(keys), 1), 1 / scale / self.trial.divisor)
        return keys, unit, np.zeros((len(keys), 1))


@cached_by_view()
def _block_codes(
    runs: AlignedRuns, lists: CandidateLists, joined: tuple[Columns, ...]
) -> list[list[NDArray[np.int32]]]:
    """Packed ranks (n, w) of each block, for each one or two columns that are joined."""
    ranks = [pack_ranks(runs, columns).astype(np.int32) for columns in joined]
    grids = map(lists.candidate_grid, lists.blocks)
    return [[row.take(grid, mode="clip") for row in ranks] for grid in grids]


class _ScaledBlock(NamedTuple):
    """Features of one block on [0, 1].

    Attributes:
        values: (S, n, w); 0 where a source says nothing.
        pattern: (n, w): which of ``patterns`` says something; None = all do everywhere.
        low: (n, 1): what 0 stands for.
        spread: (n, 1): what 1 stands for above that.
        wide: (n, 1): false where scores hardly differ, so that all became 0.
    """

    values: NDArray[np.float32]
    pattern: IntArray | None
    low: FloatArray
    spread: FloatArray
    wide: NDArray[np.bool_]


class QuantizedMean(QuantizedScores):
    """Weighted means of features that are first put on [0, 1], query by query.

    That changes a mean as it changes its features. Each of S features and weights, products and
    sums is off by 2^-24 of at most 1, and so is the quotient: (2S + 4)·2^-24 in all.
    """

    def __init__(self, runs: AlignedRuns, lists: CandidateLists, trial: WeightedMean) -> None:
        super().__init__(runs, lists)
        self.trial = trial
        self.patterns, self.blocks = _scaled_features(runs, lists, trial)
        self.weights = trial.weights / trial.weights.sum()
        self.inverse = 1 / (self.patterns @ self.weights)
        self.error = 0.51 + (2 * len(self.weights) + 4) * 2.0**-24 * 2**MEAN_BITS
        self.scale = 2.0**MEAN_BITS - 2 * self.slack

    def _quantize_block(
        self, number: int, bits: int, dtype: np.dtype[Any]
    ) -> tuple[KeyArray, FloatArray, FloatArray]:
        given: _ScaledBlock = self.blocks[number]
        total = given.values[0] * np.float32(self.weights[0])
        part = np.empty_like(total)
        for values, weight in zip(given.values[1:], self.weights[1:], strict=True):
            np.multiply(values, np.float32(weight), out=part)
            total += part
        inverse = (-self.scale * self.inverse).astype(np.float32)
        if given.pattern is None:
            total *= inverse[0]
        else:
            np.take(inverse, given.pattern, out=part, mode="clip")
            total *= part
        keys = np.rint(total, out=total).astype(dtype)
        keys <<= bits
        return keys, np.where(given.wide, given.spread / self.scale, given.spread), given.low


@cached_by_view(keep=FEATURES_KEPT, key=lambda lists, mean: (lists, mean.key))
def _scaled_features(
    runs: AlignedRuns, lists: CandidateLists, trial: WeightedMean
) -> tuple[FloatArray, list[_ScaledBlock]]:
    """The (K, S) patterns of sources that say something, and the features of each block."""
    if trial.is_complete:
        patterns, pattern = np.ones((1, len(trial.weights))), np.zeros(0, dtype=np.int64)
    else:
        patterns, pattern = _number_patterns(~np.isnan(trial.features(runs, slice(None))))
    blocks = []
    for block in lists.blocks:
        grid = lists.candidate_grid(block)
        scaled = trial.features(runs, grid)
        low, high = (
            keep.reduce(keep.reduce(scaled, axis=0), axis=1)[:, None] for keep in (np.fmin, np.fmax)
        )
        spread = high - low
        wide = _is_wide(low, high)
        scaled -= low
        scaled /= np.where(wide, spread, np.inf)
        values = np.fmax(scaled, 0).astype(np.float32)
        blocks.append(
            _ScaledBlock(values, None if len(patterns) == 1 else pattern[grid], low, spread, wide)
        )
    return patterns, blocks


def _number_patterns(said: BoolArray) -> tuple[FloatArray, IntArray]:
    """The distinct columns of (S, N) as (K, S) rows, and (N,) which of them each is."""
    packed = np.packbits(said, axis=0)
    if len(packed) > 1:
        _, first, number = np.unique(packed, axis=1, return_index=True, return_inverse=True)
        return said.T[first].astype(np.float64), number.ravel()
    is_used = np.bincount(packed[0], minlength=256) > 0
    codes = np.flatnonzero(is_used).astype(np.uint8)
    patterns = np.unpackbits(codes[:, None], axis=1, count=len(said)).astype(np.float64)
    return patterns, (np.cumsum(is_used) - 1)[packed[0]]


class QuantizedCandidates(QuantizedScores):
    """Scores that are known exactly, put on [0, 1] query by query: only their rounding errs."""

    def __init__(self, runs: AlignedRuns, lists: CandidateLists, trial: CandidateScores) -> None:
        super().__init__(runs, lists)
        self.scores = trial.all_scores(runs)
        self.error = 0.51
        self.scale = 2.0**MEAN_BITS - 2 * self.slack

    def _quantize_block(
        self, number: int, bits: int, dtype: np.dtype[Any]
    ) -> tuple[KeyArray, FloatArray, FloatArray]:
        scores = self.scores[self.lists.candidate_grid(self.lists.blocks[number])]
        low, high = (keep(scores, axis=1, keepdims=True) for keep in (np.min, np.max))
        spread = high - low
        wide = _is_wide(low, high)
        scaled = np.where(wide, scores - low, 0.0) / np.where(wide, spread, 1.0)
        keys = np.rint(scaled * -self.scale).astype(dtype) << bits
        return keys, np.where(wide, spread / self.scale, spread), low


def _is_wide(low: FloatArray, high: FloatArray) -> BoolArray:
    """Where scores differ enough to be quantized.

    Elsewhere all become 0, hence near each other, hence settled exactly.
    """
    return high - low > LEAST_SPREAD * np.maximum(np.abs(low), np.abs(high))


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

    def rough_scores(self, rows: IntArray, depth: int) -> FloatArray:
        """(m, D): what the fusion decides on, roughly."""
        return self._base[rows] - self._scores[rows, :depth] * self._unit[rows]

    def rough_error(self, rows: IntArray) -> FloatArray:
        """(m, 1): by how much rough scores may be off."""
        # One more unit than the error covers the rounding of these very numbers.
        return self._unit[rows] * (self.maker.error + 1)

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
        keys = score_keys(self.trial.scores(self.runs, candidate))
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
        which: See :func:`_candidate_lists`.
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
            yield true_by_row(list_keys < bound[:, None])
        return
    ends = np.searchsorted(owner, np.arange(len(keys) + 1))
    for bound in bounds:
        parts = zip(keys, ends[:-1], ends[1:], strict=True)
        yield np.concatenate([row.searchsorted(bound[a:b]) for row, a, b in parts])


def true_by_row(table: NDArray[np.bool_]) -> IntArray:
    """(m,): how many of (m, w) are true."""
    as_bytes = table.view(np.uint8)
    total = np.zeros(len(table), dtype=np.int64)
    for start in range(0, table.shape[1], BYTE_COLUMNS):
        some = as_bytes[:, start : start + BYTE_COLUMNS]
        total += np.add.reduce(some, axis=1, dtype=np.uint8)
    return total
