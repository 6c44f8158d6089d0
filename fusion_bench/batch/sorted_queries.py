"""Queries with many relevant documents: their candidates are sorted, not counted.

A score and the place of its candidate are packed into one integer: the leading bits of a positive
float64 compare as the number does, and the last bits, which no key depends on, are given to the
place and to whether the candidate is relevant. So the sort needs no indices, ties fall as the
tie rule wants them, and where only the first places are asked for, a partition is enough.
Neighbours that come too near each other are put in order by their exact keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray

#: Beyond the places asked for: neighbours of the last ones must be seen too.
MARGIN: Final = 28
#: A sort of fewer candidates than so many times the places asked for costs less than a partition.
WORTH_PARTING: Final = 2
#: Scores further apart than this share of the greater have different keys: see ``KEY_STEP``, and
#: a little for their own rounding.
STEP: Final = 2.1e-11
#: Read as integers, two positive float64 that differ by no more of the greater are no further
#: apart than this: a unit in the last place is at least 2^-53 of a number.
BITS_APART: Final = int(STEP * 2**53) + 1

#: Candidates of one table of sorted queries: they stay in the second-level cache as well.
POOL_SIZE: Final = 100_000

#: Exact keys of some rows.
Keys = Callable[[IntArray], FloatArray]


@dataclass(frozen=True, eq=False)
class QueryPool:
    """Some queries of about equally many candidates, side by side.

    Attributes:
        counts: (P,): candidates of each query.
        rows: (P, C): row of each candidate, as stored; padded with the row past the last.
        member: (P, C): index into ``PairLayout.relevant``; -1 for what is not relevant.
        low: (P, C): what is subtracted from, see :func:`_packed`.
        bits: How many bits hold the place and the relevance.
    """

    counts: IntArray
    rows: IntArray
    member: IntArray
    low: IntArray
    bits: int


def _query_pool(counts: IntArray, rows: IntArray, member: IntArray) -> QueryPool:
    """A pool from what its queries hold; see :class:`Pool`."""
    width = rows.shape[1]
    bits = max(width - 1, 1).bit_length() + 1
    mask = (1 << bits) - 1
    place = np.arange(width)[None, :] * 2 + (member >= 0)
    # Something from the middle of the range, so that nothing that is taken from it runs over.
    return QueryPool(counts, rows, member, place + (((1 << 62) >> bits << bits) + mask), bits)


def query_pools(
    runs: AlignedRuns, queries: IntArray, relevant: IntArray, row_of: IntArray, *, padding: int
) -> tuple[QueryPool, ...]:
    """Queries of about equally many candidates together, so that little is padded."""
    sizes = np.diff(runs.offsets)
    member_of = np.full(len(runs.documents), -1, dtype=np.int64)
    member_of[relevant] = np.arange(len(relevant))
    pools = []
    for some in width_batches(queries[np.argsort(sizes[queries], kind="stable")], sizes, POOL_SIZE):
        place = np.arange(int(sizes[some[-1]]))
        inside = place < sizes[some][:, None]
        at = np.where(inside, runs.offsets[some][:, None] + place, 0)
        rows, member = (
            np.where(inside, table[at], outside)
            for table, outside in ((row_of, padding), (member_of, -1))
        )
        pools.append(_query_pool(sizes[some], rows, member))
    return tuple(pools)


def width_batches(items: IntArray, width: IntArray, most: int) -> Iterator[IntArray]:
    """Items, of rising width, in tables of so many entries at most; one item at least."""
    start = 0
    while start < len(items):
        # Widths rise, so a table is as wide as its last item.
        ahead = width[items[start : start + most]]
        fits = ahead * np.arange(1, len(ahead) + 1) <= most
        take = max(int(fits.sum()), 1)
        yield items[start : start + take]
        start += take


def sort_pool(
    pool: QueryPool, scores: FloatArray, limit: int | None, keys: Keys
) -> Iterator[tuple[IntArray, IntArray]]:
    """Relevant documents with their places, in one or two parts.

    Args:
        pool: The queries.
        scores: (P, C): positive, 0 where padded; written over. Those further apart than
            :data:`STEP` of the greater have certainly different keys, in this order.
        limit: Places beyond need not be found; None = all are asked for.
        keys: Makes exact keys of rows.

    Yields:
        (m,): indices into ``PairLayout.relevant``, and (m,) places. Whoever is beyond the limit is
        left out.
    """
    packed = _pack_scores(pool, scores)
    width = packed.shape[1]
    queries = np.arange(len(packed))
    if limit is None or width <= WORTH_PARTING * (limit + MARGIN):
        packed.sort(axis=1)
        yield _relevant_ranks(pool, packed, queries, limit or width, keys)
        return
    size = limit + MARGIN
    first = np.partition(packed, size - 1, axis=1)[:, :size]
    first.sort(axis=1)
    # Whom the last one seen is near to, the first one not seen may be near to as well.
    apart = np.diff(first, axis=1) > _doubtful_gap(pool)
    unsure = ~apart[:, limit - 1 :].any(axis=1) & (pool.counts > size)
    yield _relevant_ranks(pool, first[~unsure], queries[~unsure], limit, keys)
    if unsure.any():
        rest = np.sort(packed[unsure], axis=1)
        yield _relevant_ranks(pool, rest, queries[unsure], limit, keys)


def _pack_scores(pool: QueryPool, scores: FloatArray) -> IntArray:
    """(P, C): integers that rise as scores fall, and equal scores as stored; padding is last."""
    packed = scores.view(np.int64)
    packed |= (1 << pool.bits) - 1
    return np.subtract(pool.low, packed, out=packed)


def _doubtful_gap(pool: QueryPool) -> int:
    """Packed scores that are not further apart than this need exact keys."""
    return BITS_APART + (2 << pool.bits)  # and the bits that were given away


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
    exact = keys(pool.rows[queries[items // width], place])
    flat[items] = values[np.lexsort((place, -exact, group))]


def _doubtful_chains(
    pool: QueryPool, packed: IntArray, queries: IntArray, limit: int
) -> tuple[IntArray, IntArray]:
    """Who stands in a chain of neighbours too near each other, and which chain that is.

    Chains without a relevant document are left as they are, as are those beyond the limit.
    """
    width = packed.shape[1]
    near = np.flatnonzero(np.diff(packed, axis=1) <= _doubtful_gap(pool))
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
