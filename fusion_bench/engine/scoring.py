"""Scores of the rows of a layout for a few trials: roughly and fast, and exactly for a few.

The rough scores come with bounds: outside of them the order of the keys (see
``fusion_bench.order``) is certain, inside it is settled on exact keys.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial, reduce
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.align import AlignedRuns
from fusion_bench.engine.layout import Layout, best_ranks, layout_of
from fusion_bench.engine.pools import Pool
from fusion_bench.fuse import Compiled, RankSum, WeightedMean
from fusion_bench.order import FloatArray, IntArray, score_keys, sum_terms

__all__ = ["MeanScorer", "RankScorer", "Rough", "RoughArray", "Scorer", "Sums", "scorer_class"]

RoughArray: TypeAlias = NDArray[np.floating[Any]]
#: For each of some columns the sources that it looks at.
Columns: TypeAlias = tuple[tuple[int, ...], ...]

#: Scores and the numbers they are made of must lie well inside the range of float64.
LEAST, GREATEST = 1e-250, 1e250
#: Narrower where two of them are multiplied and a third divides.
TINY, HUGE = 1e-100, 1e100
#: Normalisers whose scores a view remembers row by row.
FEATURES_KEPT: Final = 2
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
#: Rows of which a weighted mean is computed in one go.
MEAN_ROWS: Final = 1 << 13


class Rough(NamedTuple):
    """Scores of L trials with their bounds.

    Attributes:
        scores: (U+1, L): of every row; −∞ in the last.
        lower: (R, L): a row scored below it has a smaller key than the relevant document.
        upper: (R, L): a row scored above it has a greater key.
    """

    scores: RoughArray
    lower: RoughArray
    upper: RoughArray


class Sums(NamedTuple):
    """Rough scores of the counted pairs for L trials, not yet added up.

    Attributes:
        tables: (K,) arrays of (D', L): the terms.
        codes: (K,) arrays of (P,): where each pair's other document stands in them, P as in
            ``Layout.by_member``.
        lower: (R, L): as in :class:`Rough`.
        upper: (R, L): as in :class:`Rough`.
    """

    tables: tuple[RoughArray, ...]
    codes: tuple[NDArray[np.int32], ...]
    lower: RoughArray
    upper: RoughArray


class Scorer(ABC):
    """Scores the rows of a layout for L trials.

    Attributes:
        layout: Of the view.
        width: Bytes of one rough score.
    """

    layout: Layout
    width: int

    @staticmethod
    @abstractmethod
    def refusal(runs: AlignedRuns, trial: Any) -> str | None:  # noqa: ANN401 - of its own form
        """Why this trial is beyond what the bounds are proven for; None = it is not."""

    @staticmethod
    @abstractmethod
    def group(trial: Any) -> tuple[object, ...]:  # noqa: ANN401
        """Trials of one group may share a scorer."""

    @abstractmethod
    def __init__(self, runs: AlignedRuns, trials: Sequence[Any]) -> None:
        """Scores for a view and trials of one group."""

    @property
    def lanes(self) -> int:
        """How many trials to score at once."""
        return max(1, min(MOST_LANES, MOST_BYTES // (self.width * (len(self.layout.rows) + 1))))

    @abstractmethod
    def rough(self, lanes: slice) -> Rough:
        """Rough scores of some trials; the next call may write over them."""

    def sums(self, lanes: slice) -> Sums | None:  # noqa: ARG002 - most have none
        """The same scores before they are added up, where they are sums of few terms."""
        return None

    @abstractmethod
    def fine(self, trial: int, pool: Pool) -> FloatArray:
        """(P, C): scores as :func:`fusion_bench.engine.pools.places` wants them."""

    @abstractmethod
    def keys(self, trial: int, rows: IntArray) -> FloatArray:
        """(n,): exact keys of these rows."""

    def _bounded(self, scores: RoughArray, relative: float, absolute: float) -> Rough:
        return Rough(scores, *_bounds(scores[self.layout.own], relative, absolute))


def _bounds(scores: RoughArray, relative: float, absolute: float) -> tuple[RoughArray, RoughArray]:
    """Below and above each score: its size times ``relative``, and ``absolute``."""
    mine = scores.astype(np.float64)
    margin = np.abs(mine) * relative + absolute
    return (mine - margin).astype(scores.dtype), (mine + margin).astype(scores.dtype)


def scorer_class(compiled: Compiled) -> type[Scorer]:
    """Who scores fusions of this form."""
    return RankScorer if isinstance(compiled, RankSum) else MeanScorer


class RankScorer(Scorer):
    """Sums of terms by rank, all of them 0 or more.

    Rough scores are float32, scaled so that none exceeds 1. Each of C terms is off by 2^-24 of
    itself at most, and each addition by 2^-24 of the sum so far: (C + 1)·2^-24 of the score in
    all, as no term is negative. The bounds are four times as wide, which covers both documents of
    a pair, their keys, and the rounding of the bounds.
    """

    width = 4

    def __init__(self, runs: AlignedRuns, trials: Sequence[RankSum]) -> None:
        self.trials = trials
        self.columns, tables = zip(*(_merged(trial) for trial in trials), strict=True)
        self.tables = np.array(tables)  # (T, C', D+1)
        self.pruned = all(map(_strict, self.columns, self.tables))
        self.layout = layout_of(runs, merged=True, pruned=self.pruned)
        self.space = np.empty((2, 0, 0), dtype=np.float32)
        self.runs = runs

    @staticmethod
    def refusal(
        runs: AlignedRuns,  # noqa: ARG004 - part of the contract
        trial: RankSum,
    ) -> str | None:
        """The tables reach further, or their numbers are greater or smaller, than is proven."""
        if trial.tables.shape[1] > DEEPEST:
            return f"a rank beyond {DEEPEST}"
        greatest = float(trial.tables.max(axis=1, initial=0).sum())
        sizes = (greatest, trial.divisor, greatest / trial.divisor)
        if not all(LEAST < size < GREATEST for size in sizes) or (trial.tables < 0).any():
            return "scores beyond the range of the engine"
        return None

    @staticmethod
    def group(trial: RankSum) -> tuple[object, ...]:
        """Trials that look at the same columns, and are pruned alike."""
        columns, tables = _merged(trial)
        return (RankSum, trial.columns, _strict(columns, tables))

    def rough(self, lanes: slice) -> Rough:
        """Gathered from the tables and added up."""
        small = self._small(lanes)
        shape = (2, len(self.layout.rows) + 1, small.shape[2])
        if self.space.shape != shape:
            self.space = np.empty(shape, dtype=np.float32)
        counted = self.layout.counted
        scores = self.space[0]
        scores[-1] = -np.inf
        total, part = self.space[:, :counted]
        for i, (table, columns) in enumerate(self._joined(small)):
            codes = self._codes(columns)
            np.take(table, codes[:counted], axis=0, out=part if i else total, mode="clip")
            if i:
                total += part
        return self._bounded(scores, *_margin(small))

    def sums(self, lanes: slice) -> Sums:
        """The tables, and the bounds of what they add up to."""
        small = self._small(lanes)
        tables, columns = zip(*self._joined(small), strict=True)
        mine = [
            np.take(table, self._codes(some)[self.layout.own], axis=0)
            for table, some in zip(tables, columns, strict=True)
        ]
        bounds = _bounds(reduce(np.add, mine), *_margin(small))
        return Sums(tables, tuple(map(self._pair_codes, columns)), *bounds)

    def _small(self, lanes: slice) -> RoughArray:
        """(C', D+1, L): the tables, scaled so that no score exceeds 1."""
        tables = self.tables[lanes]
        scale = tables.max(axis=2).sum(axis=1)[:, None, None]
        return np.ascontiguousarray((tables / scale).transpose(1, 2, 0), dtype=np.float32)

    def fine(self, trial: int, pool: Pool) -> FloatArray:
        """Sums in float64, whose errors :data:`fusion_bench.engine.pools.STEP` covers."""
        tables = self.tables[trial]
        # What the smallest scores gain here is lost on all others, and none is 0.
        floor = tables.max(axis=1).sum() * FLOOR
        total = np.empty(pool.rows.shape)
        part = np.empty(pool.rows.shape)
        for i, (table, codes) in enumerate(zip(tables, self._pooled(pool), strict=True)):
            with_padding = np.append(table if i else table + floor, 0.0)
            np.take(with_padding, codes, out=part if i else total, mode="clip")
            if i:
                total += part
        return total

    def _pooled(self, pool: Pool) -> list[IntArray]:
        """(P, C) for each column: the best rank of each candidate; past the tables if padded."""
        last = self.tables.shape[2]

        def laid_out() -> list[IntArray]:
            ranks = (np.append(self._ranks(column), last) for column in self.columns[0])
            return [found[pool.rows] for found in ranks]

        return self.runs.memo(("engine", "pool", self.pruned, self.columns[0], pool), laid_out)

    def _joined(self, tables: RoughArray) -> Iterator[tuple[RoughArray, Columns]]:
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

    def keys(self, trial: int, rows: IntArray) -> FloatArray:
        """(n,): as :meth:`Fusion.fuse` computes the scores, then their keys."""
        given = self.trials[trial]
        terms = [
            table[self._ranks(column)[rows]]
            for column, table in zip(given.columns, given.tables, strict=True)
        ]
        return score_keys(sum_terms(np.array(terms)) / given.divisor)

    def _codes(self, columns: Columns) -> IntArray:
        """(U,): each row's ranks in one or two columns, packed."""
        key = ("engine", "codes", self.pruned, columns)
        radix = self.runs.deepest + 1
        return self.runs.memo(
            key, lambda: reduce(lambda high, low: high * radix + low, map(self._ranks, columns))
        )

    def _pair_codes(self, columns: Columns) -> NDArray[np.int32]:
        """(P,): those of the other document of each counted pair."""
        key = ("engine", "pair codes", self.pruned, columns)
        rows = self.layout.by_member.rows
        return self.runs.memo(key, lambda: self._codes(columns)[rows].astype(np.int32))

    def _ranks(self, column: tuple[int, ...]) -> IntArray:
        """(U,): each row's best rank among these sources."""
        key = ("engine", "ranks", self.pruned, column)
        ranks, rows = self.runs.ranks, self.layout.rows
        return self.runs.memo(key, lambda: best_ranks(ranks[np.array(column, dtype=int)][:, rows]))


def _merged(trial: RankSum) -> tuple[tuple[tuple[int, ...], ...], FloatArray]:
    """The distinct columns and the (C', D+1) sum of the tables of each."""
    columns = tuple(dict.fromkeys(trial.columns))
    tables = np.zeros((len(columns), trial.tables.shape[1]))
    for column, table in zip(trial.columns, trial.tables, strict=True):
        tables[columns.index(column)] += table
    return columns, tables


def _margin(tables: RoughArray) -> tuple[float, float]:
    """Relative and absolute width of the bounds of sums over (C', D+1, L) float32 tables."""
    return 4 * (len(tables) + 1) * 2.0**-24, 1e-35


def _strict(columns: tuple[tuple[int, ...], ...], tables: FloatArray) -> bool:
    """Whether a better rank in any one source always makes a strictly greater key.

    Of two documents of which one is nowhere behind, it is before the other in some source, by at
    least one step of that source's table; every other term is no smaller.
    """
    falls = -np.diff(np.concatenate([tables[:, 1:], tables[:, :1]], axis=1), axis=1)
    least = KEY_STEP * tables.max(axis=1).sum()
    alone = np.array([len(column) == 1 for column in columns])
    return bool((falls >= 0).all() and (falls[alone] > least).all())


class MeanScorer(Scorer):
    """Weighted means of scores, which may have any sign.

    Rough scores are float64. A mean is at most as great as the greatest feature, and a few units
    of 2^-53 of that bound its error, cancellation or not.
    """

    width = 8

    def __init__(self, runs: AlignedRuns, trials: Sequence[WeightedMean]) -> None:
        self.layout = layout_of(runs, merged=False, pruned=False)
        self.weights = np.array([trial.weights for trial in trials])  # (T, S)
        self.features = _features(runs, trials[0])
        self.space: FloatArray = np.empty((0, 0))

    @staticmethod
    def refusal(runs: AlignedRuns, trial: WeightedMean) -> str | None:
        """The weights or the scores are greater or smaller than is proven."""
        least, most = float(trial.weights.min()), float(trial.weights.max())
        if not (least > TINY and most < HUGE and least / most > TINY):
            return "weights beyond the range of the engine"
        greatest = _features(runs, trial).greatest
        if greatest and not TINY < greatest < HUGE:
            return "scores beyond the range of the engine"
        return None

    @staticmethod
    def group(trial: WeightedMean) -> tuple[object, ...]:
        """Trials that differ only in their weights."""
        return (WeightedMean, trial.key)

    def rough(self, lanes: slice) -> Rough:
        """Products of features and weights, over the weights that count."""
        weights = self.weights[lanes]
        weights = weights / weights.max(axis=1)[:, None]
        given = self.features
        size = given.values.shape[1]
        if self.space.shape[1] != len(weights):
            self.space = np.empty((size + 1, len(weights)))
        scores = self.space
        scores[-1] = -np.inf
        divisors = given.patterns @ weights.T
        size = self.layout.counted
        for start in range(0, size, MEAN_ROWS):
            rows = slice(start, min(start + MEAN_ROWS, size))
            part = weights @ given.values[:, rows]
            divisor = np.take(divisors, given.pattern[rows], axis=0, mode="clip")
            np.divide(part.T, divisor, out=scores[rows])
        width = 8 * (len(self.weights[0]) + 3) * 2.0**-53
        return self._bounded(scores, KEY_STEP, width * given.greatest)

    def fine(self, trial: int, pool: Pool) -> FloatArray:
        """Means and three times the greatest feature, so that none is near 0 or below."""
        given, weights = self.features, self.weights[trial] / self.weights[trial].max()
        means = (weights @ given.values) / (given.patterns @ weights)[given.pattern]
        means += 3 * given.greatest or 1.0
        return np.asarray(np.append(means, 0.0)[pool.rows])

    def keys(self, trial: int, rows: IntArray) -> FloatArray:
        """(n,): as :meth:`Fusion.fuse` computes the scores, then their keys."""
        weights = self.weights[trial][:, None]
        counted = self.features.patterns[self.features.pattern[rows]].T > 0
        total = sum_terms(np.where(counted, weights * self.features.values[:, rows], 0.0))
        return score_keys(total / sum_terms(np.where(counted, weights, 0.0)))


class _Features(NamedTuple):
    """What the sources say of each row.

    Attributes:
        values: (S, U): 0 where a source says nothing.
        patterns: (K, S): 1 for a source that says something, 0 for one that does not.
        pattern: (U,): which of these each row has.
        greatest: The greatest absolute value.
    """

    values: FloatArray
    patterns: FloatArray
    pattern: IntArray
    greatest: float


def _features(runs: AlignedRuns, trial: WeightedMean) -> _Features:
    key = ("features", trial.key)
    return runs.memo(key, partial(_laid_out, runs, trial), keep=FEATURES_KEPT)


def _laid_out(runs: AlignedRuns, trial: WeightedMean) -> _Features:
    layout = layout_of(runs, merged=False, pruned=False)
    features = trial.features()[:, layout.rows]
    counted = ~np.isnan(features)
    packed = np.packbits(counted, axis=0)
    # Up to eight sources make one byte, and numpy is far faster with single numbers.
    codes, axis = (packed[0], None) if len(packed) == 1 else (packed, 1)
    _, first, pattern = np.unique(codes, axis=axis, return_index=True, return_inverse=True)
    values = np.where(counted, features, 0.0)
    greatest = float(np.abs(values).max(initial=0))
    return _Features(values, counted.T[first].astype(np.float64), pattern.ravel(), greatest)
