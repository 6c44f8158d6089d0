"""Sums of terms by rank for a few trials: their pairs laid out, their rough or exact scores.

The place of a relevant document is 1 + how many candidates of its query stand above it. The pairs
(relevant, other) that must be looked at are laid out here, most of them struck out beforehand:
under a fusion that never punishes a better rank, a document that no source puts before the
relevant one can at most tie with it, and one that no source puts behind it always stands above
or ties. Where every better rank also makes a strictly greater key, such pairs are decided.

The rough scores come with bounds: outside of them the order of the keys (see
``fusion_bench.data.ordering``) is certain, inside it is settled on exact keys.

Where many documents of a query are relevant, all of its candidates are sorted, as integers that
carry where each one stands: the leading bits of a positive float64 compare as the number does, and
the last bits, which no key depends on, are given to the place and to whether the candidate is
relevant. So the sort needs no indices, ties fall as the tie rule wants them, and where only the
first places are asked for, a partition is enough. Neighbors that come too near each other are put
in order by their exact keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.aligned_runs import AlignedRuns, cached_by_view
from fusion_bench.data.grouped_rows import count_within_queries, query_of_rows, to_offsets
from fusion_bench.data.ordering import FloatArray, IntArray, score_keys
from fusion_bench.measures.rankings import relevant_candidates
from fusion_bench.methods.fuse import EngineForm, RankSum, best_ranks


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


def _query_pools(
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
    """Documents in chains of neighbors that are too near each other, and the chain of each.

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


class MemberPairs(NamedTuple):
    """Pairs that no dominance decides, one relevant document after the other.

    Attributes:
        members: (n,): indices into ``PairLayout.relevant``, each with at least one pair.
        starts: (n+1,): the pairs of member m are ``starts[m]:starts[m+1]``.
        others: (P,): the other candidate.
    """

    members: IntArray
    starts: IntArray
    others: IntArray


@dataclass(frozen=True, eq=False)
class PairLayout:
    """The relevant candidates of a view and what they are compared with.

    Attributes:
        relevant: (R,): the candidates of grade 1 or better, as stored, hence sorted by query.
        above: (R,): how many others stand above whatever the weights; in a query that is sorted
            all others, which is where its documents are until they are found.
        pairs: What is counted.
        pools: Queries that are sorted.
    """

    relevant: IntArray
    above: IntArray
    pairs: MemberPairs
    pools: tuple[QueryPool, ...]


@cached_by_view()
def pair_layout(runs: AlignedRuns, limits: BatchLimits, *, pruned: bool) -> PairLayout:
    """The layout of a view, made once.

    Args:
        runs: The view.
        limits: Which queries are sorted.
        pruned: Strike out the pairs that dominance decides.
    """
    relevant, query, _ = relevant_candidates(runs)
    relevant_counts = np.bincount(query, minlength=len(runs.queries))
    is_sorted = relevant_counts > limits.counted_relevant
    above = np.where(is_sorted, np.diff(runs.offsets) - 1, 0)[query]
    pairs = _undecided_pairs(
        runs, relevant, above, np.flatnonzero(~is_sorted[query]), limits.layout_pairs, pruned=pruned
    )
    pools = _query_pools(runs, np.flatnonzero(is_sorted), relevant, limits)
    return PairLayout(relevant, above, pairs, pools)


def _undecided_pairs(
    runs: AlignedRuns,
    relevant: IntArray,
    above: IntArray,
    counted: IntArray,
    at_once: int,
    *,
    pruned: bool,
) -> MemberPairs:
    """The undecided pairs; adds to ``above`` how many always stand above each document."""
    nowhere = np.iinfo(np.int32).max
    ranks = np.where(runs.ranks > 0, runs.ranks, nowhere).astype(np.int32) if pruned else None
    sizes = np.diff(runs.offsets)[runs.query_index[relevant[counted]]]
    bounds = np.searchsorted(np.cumsum(sizes), np.arange(0, sizes.sum(), at_once))
    members, others = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for chunk in np.split(counted, sorted({*bounds.tolist()})):
        document = relevant[chunk]
        query = runs.query_index[document]
        offsets = to_offsets(np.diff(runs.offsets)[query])
        row = query_of_rows(offsets)
        other = count_within_queries(offsets) - 1 + runs.offsets[query][row]
        keep = other != document[row]
        if ranks is not None:
            # Whether the other is before the document in no source, and whether behind in none.
            never, always = np.ones((2, len(other)), dtype=bool)
            for source_ranks in ranks:
                document_ranks, other_ranks = source_ranks[document[row]], source_ranks[other]
                never &= other_ranks >= document_ranks
                always &= other_ranks <= document_ranks
            above += np.bincount(chunk[row[always & keep]], minlength=len(above))
            keep &= ~(never | always)
        members.append(chunk[row[keep]])
        others.append(other[keep])
    width = np.bincount(np.concatenate(members), minlength=len(relevant))
    in_pairs = np.flatnonzero(width)
    return MemberPairs(in_pairs, to_offsets(width[in_pairs]), np.concatenate(others))


RoughArray: TypeAlias = NDArray[np.floating[Any]]
#: For each of some columns the sources that it looks at.
Columns: TypeAlias = tuple[tuple[int, ...], ...]

#: Scores and the numbers they are made of must lie well inside the range of float64.
LEAST, GREATEST = 1e-250, 1e250
#: Narrower where two of them are multiplied and a third divides.
TINY, HUGE = 1e-100, 1e100
#: Two scores that differ by more than this share of the greater one have different keys: the
#: twelfth digit is worth at most 1e-11 of it, and the exact sum errs by a few units of 2^-53.
KEY_STEP: Final = 2e-11
#: Share of the greatest score that is added to all where they are sorted.
FLOOR: Final = 1e-30


class RoughTerms(NamedTuple):
    """Rough scores of the counted pairs for L trials, not yet added up.

    Attributes:
        tables: (K,) arrays of (D', L): the terms.
        codes: (K,) arrays of (P,): where each pair's other document stands in them, P as in
            ``PairLayout.pairs``.
        lower: (R, L): another scored below it has a smaller key than the relevant document.
        upper: (R, L): another scored above it has a greater key.
    """

    tables: tuple[RoughArray, ...]
    codes: tuple[NDArray[np.int32], ...]
    lower: RoughArray
    upper: RoughArray


class RankScorer:
    """Sums of terms by rank, all of them 0 or more.

    Rough scores are float32, scaled so that none exceeds 1. Each of C terms is off by 2^-24 of
    itself at most, and each addition by 2^-24 of the sum so far: (C + 1)·2^-24 of the score in
    all, as no term is negative. The bounds are four times as wide, which covers both documents of
    a pair, their keys, and the rounding of the bounds.
    """

    def __init__(self, runs: AlignedRuns, trials: Sequence[RankSum], limits: BatchLimits) -> None:
        self.runs, self.trials, self.limits = runs, trials, limits
        columns, tables = zip(*(merged_columns(trial) for trial in trials), strict=True)
        self.columns: Columns = columns[0]
        self.tables = np.array(tables)  # (T, C', D+1)
        pruned = all(_is_strict(self.columns, table) for table in tables)
        self.layout = pair_layout(runs, limits, pruned=pruned)

    @staticmethod
    def unsupported_reason(trial: RankSum, limits: BatchLimits) -> str | None:
        """Why this trial is beyond what the bounds are proven for; None = it is not."""
        if trial.tables.shape[1] > limits.max_rank:
            return f"a rank beyond {limits.max_rank}"
        greatest = float(trial.tables.max(axis=1, initial=0).sum())
        sizes = (greatest, trial.divisor, greatest / trial.divisor)
        if not all(LEAST < size < GREATEST for size in sizes) or (trial.tables < 0).any():
            return "scores beyond the range of the engine"
        return None

    @staticmethod
    def group_key(trial: RankSum) -> tuple[object, ...]:
        """Trials that look at the same columns, and are pruned alike."""
        columns, tables = merged_columns(trial)
        return (RankSum, trial.columns, _is_strict(columns, tables))

    def rough_terms(self, lanes: slice) -> RoughTerms:
        """Rough scores of some trials, before they are added up, and their bounds."""
        tables = self.tables[lanes]
        scale = tables.max(axis=2).sum(axis=1)[:, None, None]
        small = np.ascontiguousarray((tables / scale).transpose(1, 2, 0), dtype=np.float32)
        joined, columns = zip(
            *join_columns(self.columns, small, self.limits.joined_entries), strict=True
        )
        codes, others = zip(
            *(_pair_codes(self.runs, self.layout, some) for some in columns), strict=True
        )
        terms = (np.take(*pair, axis=0) for pair in zip(joined, codes, strict=True))
        sums = reduce(np.add, terms).astype(np.float64)
        margin = np.abs(sums) * (4 * (len(small) + 1) * 2.0**-24) + 1e-35
        lower, upper = (bound.astype(np.float32) for bound in (sums - margin, sums + margin))
        return RoughTerms(joined, others, lower, upper)

    def precise_scores(self, trial: int, pool: QueryPool) -> FloatArray:
        """(P, C): sums in float64, whose errors ``BatchLimits.bits_apart`` covers."""
        tables = self.tables[trial]
        # What the smallest scores gain here is lost on all others, and none is 0.
        floor = tables.max(axis=1).sum() * FLOOR
        ranks = _pool_ranks(self.runs, self.columns, pool, self.tables.shape[2])
        total = np.empty(pool.candidates.shape)
        part = np.empty(pool.candidates.shape)
        for i, (table, codes) in enumerate(zip(tables, ranks, strict=True)):
            with_padding = np.append(table if i else table + floor, 0.0)
            np.take(with_padding, codes, out=part if i else total, mode="clip")
            if i:
                total += part
        return total


def is_above(
    runs: AlignedRuns, trial: EngineForm, candidates: IntArray, others: IntArray
) -> NDArray[np.bool_]:
    """(n,): whether the other of two candidates is above, by exact keys and the tie rule."""
    keys = exact_keys(runs, trial, np.stack([candidates, others]))
    return np.asarray((keys[1] > keys[0]) | ((keys[1] == keys[0]) & (others < candidates)))


def exact_keys(runs: AlignedRuns, trial: EngineForm, candidates: IntArray) -> FloatArray:
    """Exact keys of candidates, any shape; each candidate's is computed once."""
    distinct, inverse = np.unique(candidates, return_inverse=True)
    return score_keys(trial.scores(runs, distinct))[inverse.reshape(candidates.shape)]


def join_columns(
    columns: Columns, tables: NDArray[Any], most: int
) -> Iterator[tuple[NDArray[Any], Columns]]:
    """Tables of (D', …) and what they are of: two columns at once where they have few entries.

    A table of two columns is small, and saves every row a look-up.
    """
    depth, *lanes = tables.shape[1:]
    step = 2 if depth**2 <= most else 1
    for c in range(0, len(columns), step):
        if c + step > len(columns) or step == 1:
            yield tables[c], columns[c : c + 1]
        else:
            both = tables[c][:, None] + tables[c + 1]
            yield both.reshape(-1, *lanes), columns[c : c + 2]


def pack_ranks(runs: AlignedRuns, columns: Columns) -> IntArray:
    """(N,): where each candidate stands in a table that :func:`join_columns` makes."""
    ranks = (_column_ranks(runs, column) for column in columns)
    return reduce(lambda high, low: high * (runs.max_rank + 1) + low, ranks)


def _column_ranks(runs: AlignedRuns, column: tuple[int, ...]) -> IntArray:
    """(N,): each candidate's best rank among these sources."""
    if len(column) == 1:
        return np.asarray(runs.ranks[column[0]])
    everywhere = set(column) == set(range(len(runs.ranks)))
    return best_ranks(runs.ranks if everywhere else runs.ranks[[*column]])


@cached_by_view()
def _pair_codes(
    runs: AlignedRuns, layout: PairLayout, columns: Columns
) -> tuple[IntArray, NDArray[np.int32]]:
    """(R,) and (P,): packed ranks of relevant candidates, and of the other one of each pair."""
    ranks = pack_ranks(runs, columns)
    return ranks[layout.relevant], ranks.astype(np.int32)[layout.pairs.others]


@cached_by_view()
def _pool_ranks(
    runs: AlignedRuns, columns: Columns, pool: QueryPool, padding: int
) -> list[IntArray]:
    """(P, C) for each column: the best rank of each candidate; ``padding`` where there is none."""
    is_padding = pool.candidates < 0
    return [
        np.where(is_padding, padding, _column_ranks(runs, column)[pool.candidates])
        for column in columns
    ]


def merged_columns(trial: RankSum) -> tuple[Columns, FloatArray]:
    """The distinct columns and the (C', D+1) sum of the tables of each."""
    columns = tuple(dict.fromkeys(trial.columns))
    tables = np.zeros((len(columns), trial.tables.shape[1]))
    for column, table in zip(trial.columns, trial.tables, strict=True):
        tables[columns.index(column)] += table
    return columns, tables


def _is_strict(columns: Columns, tables: FloatArray) -> bool:
    """Whether a better rank in any one source always makes a strictly greater key.

    Of two documents of which one is nowhere behind, it is before the other in some source, by at
    least one step of that source's table; every other term is no smaller.
    """
    falls = -np.diff(np.concatenate([tables[:, 1:], tables[:, :1]], axis=1), axis=1)
    least = KEY_STEP * tables.max(axis=1).sum()
    alone = np.array([len(column) == 1 for column in columns])
    return bool((falls >= 0).all() and (falls[alone] > least).all())
