"""How the rule decides at a true drop: a check's differences, resampled.

The groups are drawn with replacement (Efron & Tibshirani 1993, chapter 25: a power estimate from
the empirical distribution) and the mean is moved to a true drop. Unlike a normal approximation this
accounts for skewness: a few queries that lose everything make a false pass likelier than α. Losses
that the sample does not hold are not accounted for.

The t bound is computed as the rule does. The sign-flip test is approximated by the quantile of its
flips: Σ ±v_g is symmetric with variance Σ v² and excess kurtosis −2 Σ v⁴ / (Σ v²)², and Cornish &
Fisher's expansion (1938) to that order gives its quantile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.stats.resampling import draw_groups, group_codes

#: Resamples: as many as need this many draws, within these bounds.
DRAWS, LEAST, MOST = 30_000_000, 3_000, 20_000
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
        from scipy.special import ndtri  # late, as it is slow

        z, m = float(ndtri(1 - level)), self.sums
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


def resample_moments(
    differences: FloatArray, groups: IntArray | None, seed: int
) -> Iterator[ResampledMoments]:
    """Moments of C checks; all of them share the draws and one matrix product.

    Args:
        differences: Shape (C, Q), finite.
        groups: Shape (Q,), codes; None = every query alone.
        seed: Seed of the draws.
    """
    codes, count = group_codes(groups, differences.shape[1])
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
        for drawn in draw_groups(count, min(MOST, max(LEAST, DRAWS // count)), seed)
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
