"""Quantized scores of each kind of fusion: sums of terms by rank, weighted means, any others."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fusion_bench.batch.limits import BatchLimits
from fusion_bench.batch.scoring import (
    HUGE,
    TINY,
    Columns,
    RankScorer,
    join_columns,
    merged_columns,
    pack_ranks,
)
from fusion_bench.batch.sorting import (
    CandidateLists,
    KeyArray,
    QuantizedScores,
    Which,
    candidate_lists,
)
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.data.view_cache import cached_by_view
from fusion_bench.fuse import CandidateScores, EngineForm, RankSum, WeightedMean

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
    lists = candidate_lists(runs, which, limits)
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
def _greatest_feature(runs: AlignedRuns, trial: WeightedMean) -> float:
    return float(np.nanmax(np.abs(trial.all_features(runs)), initial=0))


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
        first, *rest = (
            (table, _block_codes(self.runs, self.lists, columns)[number])
            for table, columns in self.shifted[bits, dtype]
        )
        keys = np.take(*first, mode="clip")
        part = np.empty_like(keys)
        for table, codes in rest:
            keys += np.take(table, codes, out=part, mode="clip")
        unit = np.full((len(keys), 1), 1 / scale / self.trial.divisor)
        return keys, unit, np.zeros((len(keys), 1))


@cached_by_view()
def _block_codes(runs: AlignedRuns, lists: CandidateLists, columns: Columns) -> list[IntArray]:
    """Of each block (n, w): the ranks in one or two columns, packed."""
    return [pack_ranks(runs, columns, lists.candidate_grid(block)) for block in lists.blocks]


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
    features = trial.all_features(runs)
    said = ~np.isnan(features)
    packed = np.packbits(said, axis=0)
    codes, axis = (packed[0], None) if len(packed) == 1 else (packed, 1)
    _, first, pattern = np.unique(codes, axis=axis, return_index=True, return_inverse=True)
    patterns = said.T[first].astype(np.float64)
    pattern = pattern.ravel()
    blocks = []
    for block in lists.blocks:
        grid = lists.candidate_grid(block)
        block_features = features[:, grid]
        low = np.nanmin(block_features, axis=(0, 2))[:, None]
        high = np.nanmax(block_features, axis=(0, 2))[:, None]
        spread = high - low
        wide = _is_wide(low, high)
        scaled = np.where(wide, block_features - low, np.nan) / np.where(wide, spread, 1.0)
        blocks.append(
            _ScaledBlock(
                np.nan_to_num(scaled).astype(np.float32),
                None if len(patterns) == 1 else pattern[grid],
                low,
                spread,
                wide,
            )
        )
    return patterns, blocks


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
