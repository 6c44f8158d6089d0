"""How often the gate's rule passes, fails or alarms, computed from a check's differences.

The sign of every group is drawn anew with probability ½. All statistics of a run are then sums of
±1 × a feature of the group, so one matrix product computes them for all runs.

The groups are drawn with replacement (Efron & Tibshirani 1993, chapter 25: a power estimate from
the empirical distribution) and the mean is moved to a true drop. Unlike a normal approximation this
accounts for skewness: a few queries that lose everything make a false pass likelier than α. Losses
that the sample does not hold are not accounted for.

The t bound is computed as the rule does. The sign-flip test is approximated by the quantile of its
flips: Σ ±v_g is symmetric with variance Σ v² and excess kurtosis −2 Σ v⁴ / (Σ v²)², and Cornish &
Fisher's expansion (1938) to that order gives its quantile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from pydantic import ConfigDict, Field

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.gate.verdict import ALPHA, PowerRates
from fusion_bench.stats import intervals
from fusion_bench.stats.corrections import TIE_TOLERANCE

#: Runs with swapped labels: as many as need this many signs, within these bounds.
SIGNS, LEAST_SWAPS, MOST_SWAPS = 15_000_000, 1_500, 4_000


class RulePower(PowerRates):
    """How often the rule passes and alarms on one check, with its power curve.

    Attributes:
        rejection_drops: Shape (B,), ascending: by resample, the true drop beyond which there is an
            alarm; its empirical distribution is the power curve. Empty where no value changed; all
            infinite with too few groups for the test to reject.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    rejection_drops: FloatArray = Field(default_factory=lambda: np.empty(0))

    def power_at(self, drop: float) -> float:
        """Power at a true drop, between 0 and 1: no number of resamples shows either."""
        return float(
            (np.searchsorted(self.rejection_drops, drop) + 0.5) / (len(self.rejection_drops) + 1)
        )


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


def _swap_labels(
    differences: FloatArray,
    groups: IntArray | None,
    max_drops: list[float],
    levels: RuleLevels,
    *,
    seed: int = 0,
) -> list[RulePower]:
    """The rates without a true difference of C checks that share their queries; G ≥ 2.

    Args:
        differences: Shape (C, Q), finite.
        groups: Shape (Q,), codes; None = every query alone.
        max_drops: m of each check.
        levels: The levels of the rule.
        seed: Seed of the swaps.
    """
    codes, count = intervals.group_codes(groups, differences.shape[1])
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
    runs = min(MOST_SWAPS, max(LEAST_SWAPS, SIGNS // count))
    blocks = []
    for words in intervals.random_words(seed, runs, -(-count // 64), row_bytes=8 * count):
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
        plus, minus = (
            intervals.log_returns(side * sums / mean_size, reach, -max_drop) for side in (1, -1)
        )
        return cls(
            features=np.column_stack([sums, weights * sizes * sums, (plus - minus) / 2]),
            sizes=sizes,
            squares=float((weights * sums**2).sum()),
            size_squares=float((weights * sizes**2).sum()),
            capital=((plus + minus) / 2).sum(axis=0),
            slack=TIE_TOLERANCE * float(np.abs(sums).sum()),
            max_drop=max_drop,
        )

    def decide(self, products: FloatArray, levels: RuleLevels) -> RulePower:
        """The rates, from the products of shape (runs, 2 + bets)."""
        queries, totals = self.sizes.sum(), np.ascontiguousarray(products[:, 0])
        means = totals / queries
        squares = self.squares - 2 * means * products[:, 1] + means**2 * self.size_squares
        errors = np.sqrt(np.maximum(squares, 0)) / queries
        by_t = means - levels.quantile * errors > -self.max_drop
        by_bets = intervals.log_capital(products[:, 2:] + self.capital) >= -np.log(levels.bound)
        below = np.searchsorted(np.sort(totals), totals + self.slack, side="right")
        alarms = (means < -self.max_drop) & (below / len(totals) <= levels.alarm)
        return RulePower(
            pass_rate=float((by_t & by_bets).mean()),
            small_pass_rate=float((by_t & ~by_bets).mean()),
            alarm_rate=float(alarms.mean()),
        )


#: Resamples: as many as need this many draws, within these bounds.
DRAWS, LEAST_SAMPLES, MOST_SAMPLES = 30_000_000, 3_000, 20_000
#: Exponents (i, j) of the sums Σ c^i n^j.
KINDS = [(i, order - i) for order in (1, 2, 4) for i in range(order + 1)]
#: Of those, the ones whose groups are weighted for the variance of CR2.
WEIGHTED_KINDS = [(i, 2 - i) for i in range(3)]
#: Iterations between the quantile and the drop, which depend on each other.
ROUNDS = 4
#: Lower bound of Σ v², whose kurtosis is undefined at 0.
MIN_SQUARE_SUM = 1e-100


@dataclass(frozen=True, eq=False)
class ResampledMoments:
    """Moments of the centered sums c and the sizes n of the groups, by resample; each (B,).

    Attributes:
        sums: At (i, j): Σ c^i n^j, for i + j = 1, 2 and 4.
        weighted: At (i, j): Σ w c^i n^j, for i + j = 2; w = 1 / (1 − n/N) of CR2.
        groups: G.
    """

    sums: dict[tuple[int, int], FloatArray]
    weighted: dict[tuple[int, int], FloatArray]
    groups: int

    @property
    def mean_shift(self) -> FloatArray:
        """(B,): resampled mean − mean."""
        return self.sums[1, 0] / self.sums[0, 1]

    @property
    def standard_error(self) -> FloatArray:
        """(B,): standard error of the mean, see ``stats.intervals.estimate_mean``."""
        squares = _shifted_sum(self.weighted, self.mean_shift, 2)
        return np.asarray(np.sqrt(np.maximum(squares, 0)) / self.sums[0, 1])

    def find_rejection_drops(self, level: float) -> FloatArray:
        """(B,): the true drop beyond which the sign-flip test rejects; inf = it never does.

        Σ v, v = c − drop·n, is rejected below −q·√(Σ v²): beyond the greater root of a quadratic.
        q depends on the drop through the kurtosis only, so a few iterations suffice.
        """
        never = np.full(len(self.mean_shift), np.inf)
        if 0.5**self.groups > level:  # too few groups for the test to reject
            return never
        from fusion_bench.util.special_functions import special  # late, as it is slow

        z, m = float(special.ndtri(1 - level)), self.sums
        quantile = np.full(len(never), z)
        drop = never
        for _ in range(ROUNDS):
            a = m[0, 1] ** 2 - quantile**2 * m[0, 2]
            b = m[0, 1] * m[1, 0] - quantile**2 * m[1, 1]
            c = m[1, 0] ** 2 - quantile**2 * m[2, 0]
            root = b + np.sqrt(np.maximum(b**2 - a * c, 0))
            drop = np.divide(root, a, out=never.copy(), where=a > 0)
            at = np.where(a > 0, drop, 0.0)
            square = np.maximum(_shifted_sum(m, at, 2), MIN_SQUARE_SUM)
            kurtosis = np.clip(-2 * _shifted_sum(m, at, 4) / square**2, -2, 0)
            quantile = z + (z**3 - 3 * z) / 24 * kurtosis
        return drop


def _shifted_sum(
    sums: dict[tuple[int, int], FloatArray], drop: FloatArray, order: int
) -> FloatArray:
    """(B,): Σ (c − drop·n)^order."""
    terms = (comb(order, j) * (-drop) ** j * sums[order - j, j] for j in range(order + 1))
    return np.asarray(sum(terms))


def _resample_moments(
    differences: FloatArray, groups: IntArray | None, seed: int
) -> Iterator[ResampledMoments]:
    """Moments of C checks; all of them share the draws and one matrix product.

    Args:
        differences: Shape (C, Q), finite.
        groups: Shape (Q,), codes; None = every query alone.
        seed: Seed of the draws.
    """
    codes, count = intervals.group_codes(groups, differences.shape[1])
    sizes = np.bincount(codes, minlength=count).astype(np.float64)
    weights = 1 / (1 - sizes / sizes.sum())
    is_single = bool((sizes == 1).all())  # then n^j is 1, w is constant, and columns coincide
    columns: dict[tuple[bool, int, int, int], FloatArray] = {}
    for c, difference in enumerate(differences):
        sums = np.bincount(codes, weights=difference, minlength=count)
        centered = sums - sizes * (sums.sum() / sizes.sum())  # the true mean is 0
        for i, j in KINDS:
            columns[_column_key(c, i, j, is_single)] = centered**i * sizes**j
        for i, j in () if is_single else WEIGHTED_KINDS:
            columns[_column_key(c, i, j, False, weighted=True)] = weights * centered**i * sizes**j
    features = np.stack(list(columns.values()), axis=1)
    blocks = [
        _count_draws(drawn, count) @ features
        for drawn in intervals.draw_groups(
            count, min(MOST_SAMPLES, max(LEAST_SAMPLES, DRAWS // count)), seed
        )
    ]
    moments = dict(zip(columns, np.concatenate(blocks).T, strict=True))
    for c in range(len(differences)):
        plain = {(i, j): moments[_column_key(c, i, j, is_single)] for i, j in KINDS}
        weighted = {
            (i, j): weights[0] * plain[i, j]
            if is_single
            else moments[_column_key(c, i, j, False, weighted=True)]
            for i, j in WEIGHTED_KINDS
        }
        yield ResampledMoments(plain, weighted, count)


def _column_key(
    c: int, i: int, j: int, is_single: bool, *, weighted: bool = False
) -> tuple[bool, int, int, int]:
    """Key of Σ c^i n^j of a check; sums of sizes only are shared by all checks."""
    return (weighted, c if i else 0, i, 0 if is_single else j)


def _count_draws(drawn: IntArray, count: int) -> FloatArray:
    """How often each resample draws each group, shape (b, G); overwrites ``drawn``."""
    drawn += np.arange(len(drawn))[:, None] * count
    flat = np.bincount(drawn.ravel(), minlength=len(drawn) * count)
    return flat.reshape(len(drawn), count).astype(np.float64)


def compute_power(
    differences: FloatArray,
    groups: IntArray | None,
    max_drops: Sequence[float],
    *,
    level: float,
    bound_level: float = ALPHA,
    seed: int = 0,
) -> list[RulePower]:
    """Power of the rule on C checks that share their queries.

    Args:
        differences: Shape (C, Q), finite.
        groups: Shape (Q,), codes; None = every query alone.
        max_drops: m of each check.
        level: Level of the sign-flip test at the first step of Holm: α / number of checks.
        bound_level: Level of both lower bounds.
        seed: Seed of the draws.
    """
    codes, count = intervals.group_codes(groups, differences.shape[1])
    changed = (differences != 0).any(axis=1)
    if count < 2 or not changed.any():
        return [RulePower() for _ in max_drops]
    freedom = intervals.bell_mccaffrey_freedom(np.bincount(codes))
    levels = RuleLevels(bound_level, level, intervals.t_quantile(freedom, 1 - bound_level))
    swaps = _swap_labels(differences, groups, list(max_drops), levels, seed=seed)
    resampled = _resample_moments(differences, groups, seed)
    powers = []
    for is_changed, max_drop, rates, moments in zip(
        changed, max_drops, swaps, resampled, strict=True
    ):
        if not is_changed:
            powers.append(RulePower())
            continue
        drops = np.maximum(max_drop + moments.mean_shift, moments.find_rejection_drops(level))
        drops.sort()
        detectable = float(np.quantile(drops, intervals.POWER, method="higher"))
        passes = moments.mean_shift > levels.quantile * moments.standard_error
        powers.append(
            RulePower(
                **rates.model_dump(include={"pass_rate", "small_pass_rate", "alarm_rate"}),
                min_detectable_drop=detectable if np.isfinite(detectable) else None,
                false_pass_rate=float(passes.mean()),
                rejection_drops=drops,
            )
        )
    return powers
