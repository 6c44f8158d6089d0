"""Queries with many relevant documents: their candidates are sorted, not counted.

A score and the place of its candidate are packed into one integer: the leading bits of a positive
float64 compare as the number does, and the last bits, which no key depends on, are given to the
place and to whether the candidate is relevant. So the sort needs no indices, ties fall as the
tie rule wants them, and where only the first places are asked for, a partition is enough.
Neighbors that come too near each other are put in order by their exact keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from fusion_bench.batch.limits import BatchLimits
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray

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
