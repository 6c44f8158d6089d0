"""Power of the gate's rule, by resampling a check's differences.

The groups are drawn with replacement (Efron & Tibshirani 1993, chapter 25: a power estimate from
the empirical distribution), the mean is moved to a true drop, and the rule is applied. Unlike a
normal approximation this accounts for skewness: a few queries that lose everything make a false
pass likelier than α.

The lower bound is computed as the rule does. The randomization test is approximated by the
quantile of its sign flips: Σ ±v_g is symmetric with variance Σ v² and excess kurtosis
−2 Σ v⁴ / (Σ v²)², and Cornish & Fisher's expansion (1938) to that order gives its quantile.
``gate --self-test`` runs the test itself and compares both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.gate.verdict import ALPHA, MIN_CHANGED
from fusion_bench.stats.intervals import POWER, t_quantile
from fusion_bench.stats.resampling import draw_groups, group_codes

#: Resamples: as many as need this many draws, within these bounds.
DRAWS, LEAST, MOST = 40_000_000, 4_000, 20_000
#: Exponents (i, j) of the sums Σ c^i n^j.
KINDS = [(i, order - i) for order in (1, 2, 4) for i in range(order + 1)]
#: Iterations between the quantile and the drop, which depend on each other.
ROUNDS = 4
#: Lower bound of Σ v², whose kurtosis is undefined at 0.
MIN_SQUARE_SUM = 1e-100


@dataclass(frozen=True, eq=False)
class RulePower:
    """Power of the rule on one check.

    Attributes:
        min_detectable_drop: Smallest true drop that is called ``regressed`` with 80 % power;
            None where no value changed or no spread is known.
        false_pass_rate: Probability of ``pass`` at a true drop of exactly m; None likewise.
        rejection_drops: Shape (B,), ascending: by resample, the true drop beyond which it is
            called ``regressed``; its empirical distribution is the power curve. Empty where no
            value changed; all infinite with too few groups for the test to reject.
    """

    min_detectable_drop: float | None
    false_pass_rate: float | None
    rejection_drops: FloatArray

    def power_at(self, drop: float) -> float:
        """Power at a true drop, between 0 and 1: no number of resamples shows either."""
        return float(
            (np.searchsorted(self.rejection_drops, drop) + 0.5) / (len(self.rejection_drops) + 1)
        )


def compute_power(
    differences: FloatArray,
    groups: IntArray | None,
    max_drops: Sequence[float],
    *,
    level: float,
    seed: int = 0,
) -> list[RulePower]:
    """Power of the rule on C checks that share their queries.

    Args:
        differences: Shape (C, Q), finite.
        groups: Shape (Q,), codes; None = every query alone.
        max_drops: m of each check.
        level: Level of the test at the first step of Holm: α / number of checks.
        seed: Seed of the draws.
    """
    codes, count = group_codes(groups, differences.shape[1])
    changed = (differences != 0).sum(axis=1)
    unknown = RulePower(None, None, np.empty(0))
    if count < 2:
        return [unknown for _ in max_drops]
    powers = []
    for c, moments in enumerate(_resample_moments(differences, codes, count, seed)):
        if not changed[c]:
            powers.append(unknown)
            continue
        max_drop = max_drops[c]
        shift, error = moments.mean_shift, moments.standard_error(count)
        few = changed[c] < MIN_CHANGED  # then the mean alone decides
        bound = 0.0 if few else t_quantile(count - 1, 1 - ALPHA) * error
        needed = max_drop + shift
        if not few:
            needed = np.maximum(needed, _find_rejection_drops(moments, count, level))
        needed.sort()
        passes = shift >= bound if few else shift > bound
        detectable = float(np.quantile(needed, POWER, method="higher"))
        finite = np.isfinite(detectable)
        powers.append(RulePower(detectable if finite else None, float(passes.mean()), needed))
    return powers


@dataclass(frozen=True, eq=False)
class _Moments:
    """Moments of the centered sums c and the sizes n of the groups, by resample; each (B,).

    Attributes:
        sums: At (i, j): Σ c^i n^j, for i + j = 1, 2 and 4.
    """

    sums: dict[tuple[int, int], FloatArray]

    @property
    def mean_shift(self) -> FloatArray:
        """(B,): resampled mean − mean."""
        return self.sums[1, 0] / self.sums[0, 1]

    def standard_error(self, count: int) -> FloatArray:
        """(B,): standard error of the mean, see ``stats.intervals.estimate_mean``."""
        residuals = self.shifted_sum(self.mean_shift, 2)
        size = self.sums[0, 1]
        return np.asarray(np.sqrt(count / (count - 1) * np.maximum(residuals, 0)) / size)

    def shifted_sum(self, drop: FloatArray, order: int) -> FloatArray:
        """(B,): Σ (c − drop·n)^order."""
        terms = (comb(order, j) * (-drop) ** j * self.sums[order - j, j] for j in range(order + 1))
        return np.asarray(sum(terms))


def _find_rejection_drops(moments: _Moments, count: int, level: float) -> FloatArray:
    """(B,): the true drop beyond which the randomization test rejects; inf = it never does.

    Σ v, v = c − drop·n, is rejected below −q·√(Σ v²): beyond the greater root of a quadratic.
    q depends on the drop through the kurtosis only, so a few iterations suffice.
    """
    never = np.full(len(moments.mean_shift), np.inf)
    if 0.5**count >= level:  # too few groups for the test to reject
        return never
    from scipy.special import ndtri  # late, as it is slow

    z, m = float(ndtri(1 - level)), moments.sums
    quantile = np.full(len(never), z)
    drop = never
    for _ in range(ROUNDS):
        a = m[0, 1] ** 2 - quantile**2 * m[0, 2]
        b = m[0, 1] * m[1, 0] - quantile**2 * m[1, 1]
        c = m[1, 0] ** 2 - quantile**2 * m[2, 0]
        root = b + np.sqrt(np.maximum(b**2 - a * c, 0))
        drop = np.divide(root, a, out=never.copy(), where=a > 0)
        at = np.where(a > 0, drop, 0.0)
        square = np.maximum(moments.shifted_sum(at, 2), MIN_SQUARE_SUM)
        kurtosis = np.clip(-2 * moments.shifted_sum(at, 4) / square**2, -2, 0)
        quantile = z + (z**3 - 3 * z) / 24 * kurtosis
    return drop


def _resample_moments(
    differences: FloatArray, codes: IntArray, count: int, seed: int
) -> Iterator[_Moments]:
    """Moments of every check; all checks share the draws and one matrix product."""
    sizes = np.bincount(codes, minlength=count).astype(np.float64)
    is_single = bool((sizes == 1).all())  # then n^j is 1, and columns coincide
    columns: dict[tuple[int, int, int], FloatArray] = {}
    for c, difference in enumerate(differences):
        sums = np.bincount(codes, weights=difference, minlength=count)
        centered = sums - sizes * (sums.sum() / sizes.sum())  # the true mean is 0
        for i, j in KINDS:
            columns[_column_key(c, i, j, is_single=is_single)] = centered**i * sizes**j
    features = np.stack(list(columns.values()), axis=1)
    blocks = [
        _count_draws(drawn, count) @ features
        for drawn in draw_groups(count, min(MOST, max(LEAST, DRAWS // count)), seed)
    ]
    moments = dict(zip(columns, np.concatenate(blocks).T, strict=True))
    for c in range(len(differences)):
        yield _Moments(
            {(i, j): moments[_column_key(c, i, j, is_single=is_single)] for i, j in KINDS}
        )


def _column_key(c: int, i: int, j: int, *, is_single: bool) -> tuple[int, int, int]:
    """Key of Σ c^i n^j of a check; sums of sizes only are shared by all checks."""
    return (c if i else 0, i, 0 if is_single else j)


def _count_draws(drawn: IntArray, count: int) -> FloatArray:
    """How often each resample draws each group, shape (b, G)."""
    rows = np.arange(len(drawn))[:, None] * count
    flat = np.bincount((drawn + rows).ravel(), minlength=len(drawn) * count)
    return flat.reshape(len(drawn), count).astype(np.float64)
