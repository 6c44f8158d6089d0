"""Candidates sorted as integers that carry where each one stands.

A score and the place of its candidate are packed into one integer: the leading bits of a positive
float64 compare as the number does, and the last bits, which no key depends on, are given to the
place and to whether the candidate is relevant. So the sort needs no indices, ties fall as the
tie rule wants them, and where only the first places are asked for, a partition is enough.
Neighbors that come too near each other are put in order by their exact keys.

A key is a quantized score, falling, with the candidate's place in storage in its low bits: one
sort of plain integers orders a list and remembers who is who. Candidates are stored in the order
of the tie rule, so equal scores come out in that order too. Neighbors nearer than the quantum
and its error are left for exact settling.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.aligned_runs import AlignedRuns, cached_by_view
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.measures.rankings import relevant_candidates


@dataclass(frozen=True)
class BatchLimits:
    """Limits of the batch engine: they bound its time and memory, and change no value.

    Attributes:
        counted_relevant: A query with more relevant candidates is sorted: a sort of its candidates
            costs about as much as counting for so many.
        layout_pairs: Pairs looked at at once while the pairs of a view are laid out.
        counted_pairs: Pairs that numpy counts at once: they stay in the second-level cache.
        pool_candidates: Candidates of one table of sorted queries: they stay there as well.
        pool_margin: Places sorted beyond those asked for: neighbors of the last ones matter too.
        partition_factor: A sort of fewer candidates than so many times the places asked for costs
            less than a partition.
        bits_apart: Positive float64 scores with different keys are further apart than this, read
            as integers: see ``KEY_STEP``, and a little for their own rounding. A unit in the last
            place is at least 2^-53 of a number.
        native_tables: Terms of a sum that the loop in C has room for.
        max_rank: Longest table of terms by rank; systems of deeper runs are not supported.
        joined_entries: Entries of a table of two columns: it fits the second-level cache.
        block_candidates: Candidates of one block of sorted lists: they stay there as well.
        narrow_width: Lists beyond this length need keys of 64 bits.
        spare_places: Places kept beyond the depth of a blend, so that doubts across it can be
            resolved.
        compared_relevant: With more relevant documents a list, they are searched for.
        fusions: Fusions whose lists are sorted together, block by block.
        window_documents: Documents that are blended at once: they stay in the second-level cache.
        compared_pairs: Comparisons of blended documents at once.
    """

    counted_relevant: int = 24
    layout_pairs: int = 500_000
    counted_pairs: int = 4_000
    pool_candidates: int = 100_000
    pool_margin: int = 28
    partition_factor: int = 2
    bits_apart: int = int(2.1e-11 * 2**53) + 1
    native_tables: int = 16
    max_rank: int = 1 << 16
    joined_entries: int = 1 << 14
    block_candidates: int = 1 << 16
    narrow_width: int = 1 << 9
    spare_places: int = 12
    compared_relevant: int = 24
    fusions: int = 8
    window_documents: int = 1 << 14
    compared_pairs: int = 1 << 20


#: Makes exact keys of some candidates.
Keys = Callable[[IntArray], FloatArray]


@dataclass(frozen=True, eq=False)
class QueryPool:
    """Some queries of about equally many candidates, side by side.

    Attributes:
        counts: (P,): candidates of each query.
        candidates: (P, C): the candidates of each query, as stored; padded with -1.
        member: (P, C): index into ``PairLayout.relevant``; -1 for what is not relevant.
        low: (P, C): what is subtracted from, see :func:`sort_pool`.
        bits: How many bits hold the place and the relevance.
        limits: When to sort only some.
    """

    counts: IntArray
    candidates: IntArray
    member: IntArray
    low: IntArray
    bits: int
    limits: BatchLimits

    @property
    def doubtful_gap(self) -> int:
        """Packed scores that are not further apart than this need exact keys."""
        return self.limits.bits_apart + (2 << self.bits)  # and the bits that were given away


def query_pools(
    runs: AlignedRuns, queries: IntArray, relevant: IntArray, limits: BatchLimits
) -> tuple[QueryPool, ...]:
    """Queries of about equally many candidates together, so that little is padded."""
    sizes = np.diff(runs.offsets)
    member_of = np.full(len(runs.documents), -1, dtype=np.int64)
    member_of[relevant] = np.arange(len(relevant))
    queries = queries[np.argsort(sizes[queries], kind="stable")]
    pools = []
    for batch in width_batches(sizes[queries], limits.pool_candidates):
        some = queries[batch]
        place = np.arange(int(sizes[some[-1]]))
        candidates = runs.offsets[some][:, None] + place
        candidates[place >= sizes[some][:, None]] = -1
        member = np.where(candidates < 0, -1, member_of[candidates])
        bits = max(len(place) - 1, 1).bit_length() + 1
        # Something from the middle of the range, so that nothing taken from it runs over.
        middle = ((1 << 62) >> bits << bits) + (1 << bits) - 1
        low = place * 2 + (member >= 0) + middle
        pools.append(QueryPool(sizes[some], candidates, member, low, bits, limits))
    return tuple(pools)


def width_batches(widths: IntArray, most: int) -> Iterator[slice]:
    """Cut rows of rising width into tables of so many entries at most; one row at least."""
    start = 0
    while start < len(widths):
        # Widths rise, so a table is as wide as its last row.
        ahead = widths[start : start + most]
        fits = ahead * np.arange(1, len(ahead) + 1) <= most
        stop = start + max(int(fits.sum()), 1)
        yield slice(start, stop)
        start = stop


def sort_pool(
    pool: QueryPool, scores: FloatArray, limit: int | None, keys: Keys
) -> Iterator[tuple[IntArray, IntArray]]:
    """Relevant documents with their places, in one or two parts.

    Args:
        pool: The queries.
        scores: (P, C): positive, 0 where padded; written over. Those further apart than
            2.1e-11 of the greater have certainly different keys, in this order.
        limit: Places beyond need not be found; None = all are asked for.
        keys: Makes exact keys of candidates.

    Yields:
        (m,): indices into ``PairLayout.relevant``, and (m,) places. Whoever is beyond the limit is
        left out.
    """
    # Integers that rise as scores fall, and equal scores as stored; padding is last.
    packed = scores.view(np.int64)
    packed |= (1 << pool.bits) - 1
    np.subtract(pool.low, packed, out=packed)
    width = packed.shape[1]
    queries = np.arange(len(packed))
    size = width if limit is None else limit + pool.limits.pool_margin
    if limit is None or width <= pool.limits.partition_factor * size:
        packed.sort(axis=1)
        yield _relevant_ranks(pool, packed, queries, limit or width, keys)
        return
    first = np.partition(packed, size - 1, axis=1)[:, :size]
    first.sort(axis=1)
    # Whom the last one seen is near to, the first one not seen may be near to as well.
    apart = np.diff(first, axis=1) > pool.doubtful_gap
    unsure = ~apart[:, limit - 1 :].any(axis=1) & (pool.counts > size)
    yield _relevant_ranks(pool, first[~unsure], queries[~unsure], limit, keys)
    if unsure.any():
        rest = np.sort(packed[unsure], axis=1)
        yield _relevant_ranks(pool, rest, queries[unsure], limit, keys)


def _relevant_ranks(
    pool: QueryPool, packed: IntArray, queries: IntArray, limit: int, keys: Keys
) -> tuple[IntArray, IntArray]:
    """The relevant ones among the first places of these queries."""
    width = packed.shape[1]
    mask = (1 << pool.bits) - 1
    flat = packed.reshape(-1)
    _resolve_doubts(pool, packed, queries, limit, keys)
    at = np.flatnonzero((packed[:, :limit] & 1).astype(bool))
    query, place = np.divmod(at, min(limit, width))
    origin = (flat[query * width + place] & mask) >> 1
    return pool.member[queries[query], origin], place + 1


def _resolve_doubts(
    pool: QueryPool, packed: IntArray, queries: IntArray, limit: int, keys: Keys
) -> None:
    """Put those who are too near each other into the order of their exact keys, in place."""
    width, mask = packed.shape[1], (1 << pool.bits) - 1
    items, group = _doubtful_chains(pool, packed, queries, limit)
    if len(items) == 0:
        return
    flat = packed.reshape(-1)
    values = flat[items]
    place = (values & mask) >> 1
    exact = keys(pool.candidates[queries[items // width], place])
    flat[items] = values[np.lexsort((place, -exact, group))]


def _doubtful_chains(
    pool: QueryPool, packed: IntArray, queries: IntArray, limit: int
) -> tuple[IntArray, IntArray]:
    """Who stands in a chain of neighbors too near each other, and which chain that is.

    Chains without a relevant document are left as they are, as are those beyond the limit.
    """
    width = packed.shape[1]
    near = np.flatnonzero(np.diff(packed, axis=1) <= pool.doubtful_gap)
    query, column = np.divmod(near, max(width - 1, 1))
    link = (query * width + column)[column + 1 < pool.counts[queries[query]]]
    head = np.flatnonzero(np.diff(link, prepend=-2) > 1)
    start, size = link[head], np.diff(head, append=len(link)) + 1
    kept = start % width < limit
    items, before = _stretch_indices(start[kept], size[kept])
    if len(items) == 0:
        return items, items
    kept[kept] = np.bitwise_or.reduceat(packed.reshape(-1)[items] & 1, before) > 0
    items, before = _stretch_indices(start[kept], size[kept])
    return items, np.repeat(np.arange(len(before)), size[kept])


def _stretch_indices(start: IntArray, size: IntArray) -> tuple[IntArray, IntArray]:
    """The whole numbers of some stretches, one after another, and where each stretch begins."""
    before = np.cumsum(size) - size
    return np.repeat(start - before, size) + np.arange(int(size.sum())), before


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
def candidate_lists(runs: AlignedRuns, which: Which, limits: BatchLimits) -> CandidateLists:
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
