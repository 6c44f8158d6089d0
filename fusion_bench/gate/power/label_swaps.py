"""How the rule decides where there is no true difference: the labels of the two systems swapped.

The sign of every group is drawn anew with probability ½. All statistics of a run are then sums of
±1 × a feature of the group, so one matrix product computes them for all runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.gate.betting_bound import log_capital, log_returns
from fusion_bench.stats.randomization_tests import TIE_TOLERANCE
from fusion_bench.stats.resampling import group_codes, random_words

#: Runs with swapped labels.
SWAPS = 4_000


@dataclass(frozen=True)
class SwapRates:
    """Shares of the runs without a true difference.

    Attributes:
        passes: ``pass``.
        small_passes: ``pass on these queries``.
        alarms: ``fell`` or ``regressed``.
    """

    passes: float
    small_passes: float
    alarms: float


@dataclass(frozen=True, eq=False)
class RuleLevels:
    """The levels at which the rule decides.

    Attributes:
        bound: Of both lower bounds.
        alarm: Of the sign-flip test, at the first step of Holm.
        quantile: Of Student's t, at 1 − ``bound``.
    """

    bound: float
    alarm: float
    quantile: float


def swap_labels(
    differences: FloatArray,
    groups: IntArray | None,
    max_drops: list[float],
    levels: RuleLevels,
    *,
    seed: int = 0,
) -> list[SwapRates]:
    """The rates of C checks that share their queries; G ≥ 2.

    Args:
        differences: Shape (C, Q), finite.
        groups: Shape (Q,), codes; None = every query alone.
        max_drops: m of each check.
        levels: The levels of the rule.
        seed: Seed of the swaps.
    """
    codes, count = group_codes(groups, differences.shape[1])
    sizes = np.bincount(codes, minlength=count).astype(np.float64)
    signs = _draw_signs(count, seed)
    rates = []
    for difference, max_drop in zip(differences, max_drops, strict=True):
        sums = np.bincount(codes, weights=difference, minlength=count).astype(np.float64)
        # A row without a difference is `unchanged` in every run, which is neither.
        rates.append(_decide(signs, sums, sizes, max_drop, levels))
    return rates


def _draw_signs(count: int, seed: int) -> FloatArray:
    """±1 of shape (runs, G)."""
    blocks = [
        np.unpackbits(
            words.astype("<u8", copy=False).view(np.uint8), axis=1, count=count, bitorder="little"
        )
        for words in random_words(seed, SWAPS, -(-count // 64), row_bytes=8 * count)
    ]
    return 2 * np.concatenate(blocks).astype(np.float64) - 1


def _decide(
    signs: FloatArray, sums: FloatArray, sizes: FloatArray, max_drop: float, levels: RuleLevels
) -> SwapRates:
    queries, mean_size = sizes.sum(), sizes.mean()
    reach = float(sizes.max() / mean_size)
    weights = 1 / (1 - sizes / queries)  # of CR2, see stats.intervals
    plus, minus = (log_returns(side * sums / mean_size, reach, -max_drop) for side in (1, -1))
    features = np.column_stack([sums, weights * sizes * sums, (plus - minus) / 2])
    products = signs @ features
    means = products[:, 0] / queries
    squares = (
        (weights * sums**2).sum()
        - 2 * means * products[:, 1]
        + means**2 * (weights * sizes**2).sum()
    )
    errors = np.sqrt(np.maximum(squares, 0)) / queries
    by_t = means - levels.quantile * errors > -max_drop
    capital = log_capital(products[:, 2:] + ((plus + minus) / 2).sum(axis=0))
    by_bets = capital >= -np.log(levels.bound)
    slack = TIE_TOLERANCE * float(np.abs(sums).sum())
    p = np.searchsorted(np.sort(products[:, 0]), products[:, 0] + slack, side="right") / len(signs)
    alarms = (means < -max_drop) & (p <= levels.alarm)
    return SwapRates(
        passes=float((by_t & by_bets).mean()),
        small_passes=float((by_t & ~by_bets).mean()),
        alarms=float(alarms.mean()),
    )
