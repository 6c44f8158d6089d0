"""The systems that are not shown to be worse than any other.

Multiple comparisons with the best (Hsu 1984, "Constrained simultaneous confidence intervals for
multiple comparisons with the best"), in their conservative form: the intervals of all pairs hold
together, so that the true best is left out with a probability of α at most.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.rows.grouped_rows import number_by_appearance
from fusion_bench.stats.compare_family import ComparedValues
from fusion_bench.stats.comparison import NOISE, paired_difference
from fusion_bench.stats.flips.family_flips import BLOCK_NUMBERS
from fusion_bench.stats.flips.flipped_statistics import FlippedStatistics, prepare_flips
from fusion_bench.stats.flips.shares import FlippedShares
from fusion_bench.stats.flips.sign_flips import draw_flips
from fusion_bench.stats.max_t import FIRST_DRAWS, FamilyRow, judge_row

#: Draws × pairs at most, and draws at least.
MOST_NUMBERS, LEAST_DRAWS = 40_000_000, 1_000


def find_first_group(
    table: ComparedValues, *, seed: int = 0, alpha: float = 0.05, draws: int = FIRST_DRAWS
) -> tuple[str, ...]:
    """The systems not shown to be worse than any other, in the family of all pairs.

    Each system's values are flipped once; the t of a pair follows from both. Only residuals are
    flipped, which hold whatever the true differences are.

    Args:
        table: The systems, the baseline like any other.
        seed: Seed of the signs.
        alpha: 1 − probability that the true best is in it.
        draws: Flips; fewer where there are very many pairs.

    Returns:
        Names in the order of ``table``; every name where nothing tells the spread.
    """
    names = tuple(table.values)
    statistics = prepare_flips([table.values[name] for name in names], table.keys)
    if len(names) < 2 or not statistics.ids:
        return names
    first, second = np.triu_indices(len(names), 1)
    squares = _pair_squares(np.stack(list(table.values.values())), table.keys)[first, second]
    means = (statistics.means[first] - statistics.means[second]) * statistics.queries
    observed = np.where(squares > 0, means**2 / np.maximum(means**2 + squares, NOISE**2), 0.0)
    draws = min(draws, max(LEAST_DRAWS, MOST_NUMBERS // len(first)))
    drawn = _flip_pairs(statistics, squares, statistics.keys(seed), draws)
    largest = np.append(drawn, observed.max())
    flipped = FlippedShares(largest, largest, is_exact=False)
    shares = np.zeros((len(names), len(names)))
    shares[first, second] = np.where(means < 0, observed, 0.0)  # that the first is worse
    shares[second, first] = np.where(means > 0, observed, 0.0)
    size = len(first) if table.trials else 1
    critical = flipped.critical(alpha)

    def is_worse(i: int) -> bool:
        rivals = [j for j in np.argsort(-shares[i], kind="stable") if shares[i, j] >= critical]
        return any(
            judge_row(_pair_row(table, names[i], names[j]), shares[i, j], flipped, alpha, size).p
            <= alpha
            for j in rivals
        )

    return tuple(name for i, name in enumerate(names) if not is_worse(i))


def _pair_row(table: ComparedValues, name: str, rival: str) -> FamilyRow:
    """The difference of a system from a rival, with what their trials add."""
    terms = replace(table, baseline=rival).trial_terms(name)
    difference = paired_difference(table.values[name], table.values[rival])
    return FamilyRow(difference, table.keys, trial_terms=terms)


def _pair_squares(values: FloatArray, keys: tuple[str, ...]) -> FloatArray:
    """(S, S): Σ w_g (D_g − n_g m)² of each pair, N² times the variance of its mean."""
    codes = number_by_appearance(keys)[0]
    order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
    starts, queries = np.cumsum(sizes) - sizes, len(codes)
    weights, squares = queries / (queries - sizes), np.zeros((len(values), len(values)))
    for i, row in enumerate(values[:-1]):
        differences = paired_difference(row, values[i + 1 :])
        residuals = differences - differences.mean(axis=1, keepdims=True)
        sums = np.add.reduceat(residuals[:, order], starts, axis=1)
        squares[i, i + 1 :] = (weights * sums**2).sum(axis=1)
    squares[squares <= NOISE**2 * queries] = 0.0
    return squares


def _flip_pairs(
    statistics: FlippedStatistics, squares: FloatArray, keys: NDArray[np.uint64], draws: int
) -> FloatArray:
    """(draws,): the largest t² / (1 + t²) of the residuals of all pairs after each flip."""
    first, second = np.triu_indices(len(statistics.means), 1)
    step = max(64, BLOCK_NUMBERS // (len(keys) + 8 * len(first)) // 64 * 64)
    values = []
    for start in range(0, draws, step):
        flips = draw_flips(keys, start, min(start + step, draws))
        means, weighted = (sums[first] - sums[second] for sums in statistics.flip_residuals(flips))
        values.append(statistics.to_shares(means, weighted, squares).max(axis=0))
    return np.concatenate(values)
