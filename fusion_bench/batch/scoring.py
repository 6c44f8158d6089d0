"""Scores of the rows of a layout for a few trials: roughly and fast, and exactly for a few.

The rough scores come with bounds: outside of them the order of the keys (see
``fusion_bench.data.ordering``) is certain, inside it is settled on exact keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.batch.layout import PairLayout, pair_layout
from fusion_bench.batch.sorted_queries import QueryPool
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, score_keys, sum_terms
from fusion_bench.data.view_cache import cached_by_view
from fusion_bench.fuse import RankSum, best_ranks

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
#: Longest table of terms by rank.
DEEPEST: Final = 1 << 16
#: Most entries of a table of two columns: for a few trials it fits the second-level cache.
JOINED: Final = 1 << 14
#: Bytes of the rough scores of a few trials: beyond the caches, more trials at once gain nothing.
MOST_BYTES: Final = 1 << 24
#: Trials at once: that many float32 numbers are what the processor copies in one go.
MOST_LANES: Final = 8


class RoughScores(NamedTuple):
    """Scores of L trials with their bounds.

    Attributes:
        scores: (U+1, L): of every row; −∞ in the last.
        lower: (R, L): a row scored below it has a smaller key than the relevant document.
        upper: (R, L): a row scored above it has a greater key.
    """

    scores: RoughArray
    lower: RoughArray
    upper: RoughArray


class RoughTerms(NamedTuple):
    """Rough scores of the counted pairs for L trials, not yet added up.

    Attributes:
        tables: (K,) arrays of (D', L): the terms.
        codes: (K,) arrays of (P,): where each pair's other document stands in them, P as in
            ``PairLayout.member_pairs``.
        lower: (R, L): as in :class:`Rough`.
        upper: (R, L): as in :class:`Rough`.
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

    def __init__(self, runs: AlignedRuns, trials: Sequence[RankSum]) -> None:
        self.trials = trials
        self.columns, tables = zip(*(merged_columns(trial) for trial in trials), strict=True)
        self.tables = np.array(tables)  # (T, C', D+1)
        self.pruned = all(map(_is_strict, self.columns, self.tables))
        self.layout = pair_layout(runs, merged=True, pruned=self.pruned)
        self.space = np.empty((2, 0, 0), dtype=np.float32)
        self.runs = runs

    @staticmethod
    def unsupported_reason(trial: RankSum) -> str | None:
        """Why this trial is beyond what the bounds are proven for; None = it is not."""
        if trial.tables.shape[1] > DEEPEST:
            return f"a rank beyond {DEEPEST}"
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

    @property
    def batch_size(self) -> int:
        """How many trials to score at once."""
        return max(1, min(MOST_LANES, MOST_BYTES // (4 * (len(self.layout.rows) + 1))))

    def rough_scores(self, lanes: slice) -> RoughScores:
        """Rough scores of some trials, gathered from the tables and added up.

        The next call may write over them.
        """
        small = self._scaled_tables(lanes)
        shape = (2, len(self.layout.rows) + 1, small.shape[2])
        if self.space.shape != shape:
            self.space = np.empty(shape, dtype=np.float32)
        counted = self.layout.counted
        scores = self.space[0]
        scores[-1] = -np.inf
        total, part = self.space[:, :counted]
        for i, (table, columns) in enumerate(self._join_columns(small)):
            codes = _row_codes(self.runs, self.layout, columns)
            np.take(table, codes[:counted], axis=0, out=part if i else total, mode="clip")
            if i:
                total += part
        return RoughScores(scores, *_score_bounds(scores[self.layout.own_rows], len(small)))

    def rough_terms(self, lanes: slice) -> RoughTerms:
        """The same scores before they are added up, and their bounds."""
        small = self._scaled_tables(lanes)
        tables, columns = zip(*self._join_columns(small), strict=True)
        terms = [
            np.take(table, _row_codes(self.runs, self.layout, some)[self.layout.own_rows], axis=0)
            for table, some in zip(tables, columns, strict=True)
        ]
        bounds = _score_bounds(reduce(np.add, terms), len(small))
        return RoughTerms(
            tables, tuple(_pair_codes(self.runs, self.layout, some) for some in columns), *bounds
        )

    def _scaled_tables(self, lanes: slice) -> RoughArray:
        """(C', D+1, L): the tables, scaled so that no score exceeds 1."""
        tables = self.tables[lanes]
        scale = tables.max(axis=2).sum(axis=1)[:, None, None]
        return np.ascontiguousarray((tables / scale).transpose(1, 2, 0), dtype=np.float32)

    def precise_scores(self, trial: int, pool: QueryPool) -> FloatArray:
        """Sums in float64, whose errors :data:`fusion_bench.batch.sorted_queries.STEP` covers."""
        tables = self.tables[trial]
        # What the smallest scores gain here is lost on all others, and none is 0.
        floor = tables.max(axis=1).sum() * FLOOR
        ranks = _pool_ranks(self.runs, self.layout, self.columns[0], pool, self.tables.shape[2])
        total = np.empty(pool.rows.shape)
        part = np.empty(pool.rows.shape)
        for i, (table, codes) in enumerate(zip(tables, ranks, strict=True)):
            with_padding = np.append(table if i else table + floor, 0.0)
            np.take(with_padding, codes, out=part if i else total, mode="clip")
            if i:
                total += part
        return total

    def _join_columns(self, tables: RoughArray) -> Iterator[tuple[RoughArray, Columns]]:
        """Tables of (D', L) and what they are of: two columns at once where they fit.

        A table of two columns is small, and saves every row a look-up.
        """
        columns, (depth, lanes) = self.columns[0], tables.shape[1:]
        step = 2 if depth**2 <= JOINED else 1
        for c in range(0, len(columns), step):
            if c + step > len(columns) or step == 1:
                yield tables[c], columns[c : c + 1]
            else:
                both = tables[c][:, None] + tables[c + 1]
                yield both.reshape(-1, lanes), columns[c : c + 2]

    def exact_keys(self, trial: int, rows: IntArray) -> FloatArray:
        """(n,): as :meth:`Fusion.fuse` computes the scores, then their keys."""
        given = self.trials[trial]
        terms = [
            table[_row_ranks(self.runs, self.layout, column)[rows]]
            for column, table in zip(given.columns, given.tables, strict=True)
        ]
        return score_keys(sum_terms(np.array(terms)) / given.divisor)


@cached_by_view()
def _row_ranks(runs: AlignedRuns, layout: PairLayout, column: tuple[int, ...]) -> IntArray:
    """(U,): each row's best rank among these sources."""
    return best_ranks(runs.ranks[np.array(column, dtype=int)][:, layout.rows])


@cached_by_view()
def _row_codes(runs: AlignedRuns, layout: PairLayout, columns: Columns) -> IntArray:
    """(U,): each row's ranks in one or two columns, packed."""
    radix = runs.max_rank + 1
    ranks = (_row_ranks(runs, layout, column) for column in columns)
    return reduce(lambda high, low: high * radix + low, ranks)


@cached_by_view()
def _pair_codes(runs: AlignedRuns, layout: PairLayout, columns: Columns) -> NDArray[np.int32]:
    """(P,): those of the other document of each counted pair."""
    return _row_codes(runs, layout, columns)[layout.member_pairs.rows].astype(np.int32)


@cached_by_view()
def _pool_ranks(
    runs: AlignedRuns, layout: PairLayout, columns: Columns, pool: QueryPool, padding: int
) -> list[IntArray]:
    """(P, C) for each column: the best rank of each candidate; ``padding`` where there is none."""
    ranks = (np.append(_row_ranks(runs, layout, column), padding) for column in columns)
    return [row_ranks[pool.rows] for row_ranks in ranks]


def merged_columns(trial: RankSum) -> tuple[tuple[tuple[int, ...], ...], FloatArray]:
    """The distinct columns and the (C', D+1) sum of the tables of each."""
    columns = tuple(dict.fromkeys(trial.columns))
    tables = np.zeros((len(columns), trial.tables.shape[1]))
    for column, table in zip(trial.columns, trial.tables, strict=True):
        tables[columns.index(column)] += table
    return columns, tables


def _score_bounds(scores: RoughArray, columns: int) -> tuple[RoughArray, RoughArray]:
    """Below and above each sum of so many columns; the class says why so wide."""
    sums = scores.astype(np.float64)
    margin = np.abs(sums) * (4 * (columns + 1) * 2.0**-24) + 1e-35
    return (sums - margin).astype(scores.dtype), (sums + margin).astype(scores.dtype)


def _is_strict(columns: tuple[tuple[int, ...], ...], tables: FloatArray) -> bool:
    """Whether a better rank in any one source always makes a strictly greater key.

    Of two documents of which one is nowhere behind, it is before the other in some source, by at
    least one step of that source's table; every other term is no smaller.
    """
    falls = -np.diff(np.concatenate([tables[:, 1:], tables[:, :1]], axis=1), axis=1)
    least = KEY_STEP * tables.max(axis=1).sum()
    alone = np.array([len(column) == 1 for column in columns])
    return bool((falls >= 0).all() and (falls[alone] > least).all())
