"""Sums of terms by rank for a few trials: their pairs laid out, their rough or exact scores.

The place of a relevant document is 1 + how many candidates of its query stand above it. The pairs
(relevant, other) that must be looked at are laid out here, most of them struck out beforehand:
under a fusion that never punishes a better rank, a document that no source puts before the
relevant one can at most tie with it, and one that no source puts behind it always stands above
or ties. Where every better rank also makes a strictly greater key, such pairs are decided.

The rough scores come with bounds: outside of them the order of the keys (see
``fusion_bench.data.ordering``) is certain, inside it is settled on exact keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from fusion_bench.ranking.sorting import BatchLimits, QueryPool, query_pools


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
    pools = query_pools(runs, np.flatnonzero(is_sorted), relevant, limits)
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
    for chunk in np.split(counted, np.unique(bounds)):
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


def pack_ranks(runs: AlignedRuns, columns: Columns, candidates: IntArray) -> IntArray:
    """Where candidates, any shape, stand in a table that :func:`join_columns` makes."""
    ranks = (_column_ranks(runs, column, candidates) for column in columns)
    return reduce(lambda high, low: high * (runs.max_rank + 1) + low, ranks)


def _column_ranks(runs: AlignedRuns, column: tuple[int, ...], candidates: IntArray) -> IntArray:
    """Each candidate's best rank among these sources."""
    return best_ranks(np.array([runs.ranks[source][candidates] for source in column]))


@cached_by_view()
def _pair_codes(
    runs: AlignedRuns, layout: PairLayout, columns: Columns
) -> tuple[IntArray, NDArray[np.int32]]:
    """(R,) and (P,): packed ranks of relevant candidates, and of the other one of each pair."""
    others = pack_ranks(runs, columns, layout.pairs.others)
    return pack_ranks(runs, columns, layout.relevant), others.astype(np.int32)


@cached_by_view()
def _pool_ranks(
    runs: AlignedRuns, columns: Columns, pool: QueryPool, padding: int
) -> list[IntArray]:
    """(P, C) for each column: the best rank of each candidate; ``padding`` where there is none."""
    is_padding = pool.candidates < 0
    return [
        np.where(is_padding, padding, _column_ranks(runs, column, pool.candidates))
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
