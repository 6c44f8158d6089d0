"""How the rule decides where there is no true difference: the labels of the two systems swapped.

The sign of every group is drawn anew with probability ½. All statistics of a run are then sums of
±1 × a feature of the group, so one matrix product computes them for all runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.stats.betting_bound import log_capital, log_returns
from fusion_bench.stats.randomization_tests import TIE_TOLERANCE
from fusion_bench.stats.resampling import group_codes, random_words

#: Runs with swapped labels: as many as need this many signs, within these bounds.
SIGNS, LEAST, MOST = 15_000_000, 1_500, 4_000


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
    checks = [
        _SwappedCheck.prepare(
            np.bincount(codes, weights=difference, minlength=count).astype(np.float64), sizes, drop
        )
        for difference, drop in zip(differences, max_drops, strict=True)
    ]
    features = np.concatenate([check.features for check in checks], axis=1)
    products = _multiply_signs(features, seed)  # one product for all checks
    parts = np.split(products, len(checks), axis=1)
    # A row without a difference is `unchanged` in every run, which is neither.
    return [check.decide(part, levels) for check, part in zip(checks, parts, strict=True)]


def _multiply_signs(features: FloatArray, seed: int) -> FloatArray:
    """Random signs of shape (runs, G) times the features of shape (G, F)."""
    count = len(features)
    runs = min(MOST, max(LEAST, SIGNS // count))
    blocks = []
    for words in random_words(seed, runs, -(-count // 64), row_bytes=8 * count):
        octets = words.astype("<u8", copy=False).view(np.uint8)
        plus = np.unpackbits(octets, axis=1, count=count, bitorder="little").astype(np.float64)
        blocks.append(plus @ features)
    return np.asarray(2 * np.concatenate(blocks) - features.sum(axis=0), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _SwappedCheck:
    """What the statistics of one check need beside the products of signs and features.

    Attributes:
        features: Shape (G, 2 + bets): what a sign multiplies.
        sizes: Shape (G,): n_g.
        squares: Σ w (Σ d)², w of CR2.
        size_squares: Σ w n².
        capital: Shape (bets,): the part of the logarithm of the capital that no sign changes.
        slack: Sums closer than this are equal.
        max_drop: m.
    """

    features: FloatArray
    sizes: FloatArray
    squares: float
    size_squares: float
    capital: FloatArray
    slack: float
    max_drop: float

    @classmethod
    def prepare(cls, sums: FloatArray, sizes: FloatArray, max_drop: float) -> _SwappedCheck:
        mean_size = sizes.mean()
        reach = float(sizes.max() / mean_size)
        weights = 1 / (1 - sizes / sizes.sum())  # of CR2, see stats.intervals
        plus, minus = (log_returns(side * sums / mean_size, reach, -max_drop) for side in (1, -1))
        return cls(
            features=np.column_stack([sums, weights * sizes * sums, (plus - minus) / 2]),
            sizes=sizes,
            squares=float((weights * sums**2).sum()),
            size_squares=float((weights * sizes**2).sum()),
            capital=((plus + minus) / 2).sum(axis=0),
            slack=TIE_TOLERANCE * float(np.abs(sums).sum()),
            max_drop=max_drop,
        )

    def decide(self, products: FloatArray, levels: RuleLevels) -> SwapRates:
        """The rates, from the products of shape (runs, 2 + bets)."""
        queries, totals = self.sizes.sum(), np.ascontiguousarray(products[:, 0])
        means = totals / queries
        squares = self.squares - 2 * means * products[:, 1] + means**2 * self.size_squares
        errors = np.sqrt(np.maximum(squares, 0)) / queries
        by_t = means - levels.quantile * errors > -self.max_drop
        by_bets = log_capital(products[:, 2:] + self.capital) >= -np.log(levels.bound)
        below = np.searchsorted(np.sort(totals), totals + self.slack, side="right")
        alarms = (means < -self.max_drop) & (below / len(totals) <= levels.alarm)
        return SwapRates(
            passes=float((by_t & by_bets).mean()),
            small_passes=float((by_t & ~by_bets).mean()),
            alarms=float(alarms.mean()),
        )
