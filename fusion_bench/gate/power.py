"""What the gate's rule can see: found by resampling a check's own differences.

The groups are drawn with replacement (Efron & Tibshirani 1993, chapter 25: a power estimate from
the empirical distribution), the mean is moved to a true drop, and the rule is asked. Skewed
differences, which a normal approximation passes over, so count: a few queries that lose
everything make a false pass likelier than α.

The lower bound is the rule's own. The randomisation test stands here as the quantile of its sign
flips: Σ ±v_g is symmetric with variance Σ v² and excess kurtosis −2 Σ v⁴ / (Σ v²)², and Cornish &
Fisher's expansion (1938) to that order gives its quantile. ``gate --self-test`` runs the real test
and holds both to each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.gate.verdict import ALPHA, MIN_CHANGED
from fusion_bench.stats.intervals import t_quantile
from fusion_bench.stats.resampling import draw_groups, group_codes

__all__ = ["POWER", "RulePower", "compute_power"]

#: The power that the smallest detectable drop is stated for.
POWER = 0.8
#: Resamples: as many as fit this many draws, within these bounds.
DRAWS, LEAST, MOST = 40_000_000, 4_000, 20_000
#: Exponents (i, j) of the sums Σ c^i n^j that are needed.
KINDS = [(i, order - i) for order in (1, 2, 4) for i in range(order + 1)]
#: Rounds in which the quantile and the drop settle each other.
ROUNDS = 4
#: Instead of a Σ v² of 0, whose kurtosis says nothing.
LITTLE = 1e-100


@dataclass(frozen=True, eq=False)
class RulePower:
    """What the rule can see on one check.

    Attributes:
        detectable: Smallest true drop that is called ``regressed`` with power .8; None where no
            value changed or nothing tells the spread.
        false_pass: Chance of a ``pass`` at a true drop of exactly m; None likewise.
        needed: Shape (B,), ascending: by resample, the true drop beyond which it is called
            ``regressed``; its empirical distribution is the power curve. Empty where no value
            changed; all infinite where there are too few groups for the test ever to reject.
    """

    min_detectable_drop: float | None
    false_pass_rate: float | None
    rejection_drops: FloatArray

    def power_at(self, drop: float) -> float:
        """Power at a true drop; never quite 0 or 1, which no number of resamples shows."""
        return float(
            (np.searchsorted(self.rejection_drops, drop) + 0.5) / (len(self.rejection_drops) + 1)
        )


def compute_power(
    differences: FloatArray,
    groups: IntArray | None,
    max_drops: Sequence[float],
    *,
    level: float,
    alpha: float = ALPHA,
    seed: int = 0,
) -> list[RulePower]:
    """Power of the rule on C checks that share their queries.

    Args:
        differences: Shape (C, Q), finite.
        groups: Shape (Q,), codes; None = every query alone.
        max_drops: m of each check.
        level: Of the test, at the first step of Holm: α / number of checks.
        alpha: Of the lower bound.
        seed: Of the draws.
    """
    codes, count = group_codes(groups, differences.shape[1])
    changed = (differences != 0).sum(axis=1)
    nothing = RulePower(None, None, np.empty(0))
    if count < 2:
        return [nothing for _ in max_drops]
    found = []
    for c, moments in enumerate(_resample_moments(differences, codes, count, seed)):
        if not changed[c]:
            found.append(nothing)
            continue
        max_drop = max_drops[c]
        shift, error = moments.mean_shift, moments.standard_error(count)
        few = changed[c] < MIN_CHANGED  # then the mean alone decides
        bound = 0.0 if few else t_quantile(count - 1, 1 - alpha) * error
        needed = max_drop + shift
        if not few:
            needed = np.maximum(needed, _find_rejection_drops(moments, count, level))
        needed.sort()
        passes = shift >= bound if few else shift > bound
        detectable = float(np.quantile(needed, POWER, method="higher"))
        finite = np.isfinite(detectable)
        found.append(RulePower(detectable if finite else None, float(passes.mean()), needed))
    return found


@dataclass(frozen=True, eq=False)
class _Moments:
    """Of the centred sums c and the sizes n of the groups in each resample; each (B,).

    Attributes:
        powers: At (i, j): Σ c^i n^j, for i + j = 1, 2 and 4.
    """

    sums: dict[tuple[int, int], FloatArray]

    @property
    def mean_shift(self) -> FloatArray:
        """(B,): resampled mean − mean."""
        return self.sums[1, 0] / self.sums[0, 1]

    def standard_error(self, count: int) -> FloatArray:
        """(B,): standard error of the mean, see ``statistics.estimate``."""
        residuals = self.shifted_sum(self.mean_shift, 2)
        size = self.sums[0, 1]
        return np.asarray(np.sqrt(count / (count - 1) * np.maximum(residuals, 0)) / size)

    def shifted_sum(self, drop: FloatArray, order: int) -> FloatArray:
        """(B,): Σ (c − drop·n)^order."""
        terms = (comb(order, j) * (-drop) ** j * self.sums[order - j, j] for j in range(order + 1))
        return np.asarray(sum(terms))


def _find_rejection_drops(moments: _Moments, count: int, level: float) -> FloatArray:
    """(B,): the true drop beyond which the randomisation test rejects; inf = it never can.

    Σ v, v = c − drop·n, is rejected where it is below −q·√(Σ v²): beyond the greater root of a
    quadratic. q depends on the drop by the kurtosis alone, which a few rounds settle.
    """
    never = np.full(len(moments.mean_shift), np.inf)
    if 0.5**count >= level:  # no set of signs is rare enough
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
        square = np.maximum(moments.shifted_sum(at, 2), LITTLE)
        kurtosis = np.clip(-2 * moments.shifted_sum(at, 4) / square**2, -2, 0)
        quantile = z + (z**3 - 3 * z) / 24 * kurtosis
    return drop


def _resample_moments(
    differences: FloatArray, codes: IntArray, count: int, seed: int
) -> Iterator[_Moments]:
    """Moments of every check; all share their draws, and one product of matrices."""
    sizes = np.bincount(codes, minlength=count).astype(np.float64)
    alone = bool((sizes == 1).all())  # then n^j is 1, and fewer columns say the same
    columns: dict[tuple[int, int, int], FloatArray] = {}
    for c, difference in enumerate(differences):
        sums = np.bincount(codes, weights=difference, minlength=count)
        centred = sums - sizes * (sums.sum() / sizes.sum())  # the true mean is 0
        for i, j in KINDS:
            columns[_column_key(c, i, j, alone=alone)] = centred**i * sizes**j
    features = np.stack(list(columns.values()), axis=1)
    blocks = [
        _count_draws(drawn, count) @ features
        for drawn in draw_groups(count, min(MOST, max(LEAST, DRAWS // count)), seed)
    ]
    found = dict(zip(columns, np.concatenate(blocks).T, strict=True))
    for c in range(len(differences)):
        yield _Moments({(i, j): found[_column_key(c, i, j, alone=alone)] for i, j in KINDS})


def _column_key(c: int, i: int, j: int, *, alone: bool) -> tuple[int, int, int]:
    """Where Σ c^i n^j of a check stands; sums of sizes alone are everybody's."""
    return (c if i else 0, i, 0 if alone else j)


def _count_draws(drawn: IntArray, count: int) -> FloatArray:
    """How often each group is in each resample, shape (b, G)."""
    rows = np.arange(len(drawn))[:, None] * count
    flat = np.bincount((drawn + rows).ravel(), minlength=len(drawn) * count)
    return flat.reshape(len(drawn), count).astype(np.float64)
