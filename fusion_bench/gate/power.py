"""What the gate's rule can see: found by resampling a check's own differences.

The groups are drawn with replacement (Efron & Tibshirani 1993, chapter 17: a power estimate from
the empirical distribution), the mean is moved to a true drop, and the rule is asked. Skewed
differences, which a normal approximation passes over, so count: a few queries that lose
everything make a false pass likelier than α. The randomisation test stands here as its t
equivalent; ``gate --self-test`` holds both to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fusion_bench.gate.verdict import ALPHA, FEW
from fusion_bench.order import FloatArray, IntArray
from fusion_bench.statistics import draw_groups, group_codes, t_quantile

__all__ = ["POWER", "Powers", "powers"]

#: The power that the smallest detectable drop is stated for.
POWER = 0.8
#: Resamples: as many as fit this many draws, within these bounds.
DRAWS, LEAST, MOST = 40_000_000, 4_000, 20_000


@dataclass(frozen=True, eq=False)
class Powers:
    """What the rule can see on one check.

    Attributes:
        detectable: Smallest true drop that is called ``regressed`` with power .8; None where no
            value changed or nothing tells the spread.
        false_pass: Chance of a ``pass`` at a true drop of exactly m; None likewise.
        needed: Shape (B,), ascending: by resample, the true drop beyond which it is called
            ``regressed``; its empirical distribution is the power curve. Empty likewise.
    """

    detectable: float | None
    false_pass: float | None
    needed: FloatArray

    def at(self, drop: float) -> float:
        """Power at a true drop."""
        return float(np.searchsorted(self.needed, drop) / len(self.needed))


def powers(
    differences: FloatArray,
    groups: IntArray | None,
    max_drops: Sequence[float],
    *,
    level: float,
    alpha: float = ALPHA,
    seed: int = 0,
) -> list[Powers]:
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
    nothing = Powers(None, None, np.empty(0))
    if count < 2:
        return [nothing for _ in max_drops]
    shifts, errors = _resampled(differences, codes, count, seed)
    found = []
    for c, max_drop in enumerate(max_drops):
        if not changed[c]:
            found.append(nothing)
            continue
        few = changed[c] < FEW  # then the mean alone decides
        reach = 0.0 if few else t_quantile(count - 1, 1 - level) * errors[:, c]
        bound = 0.0 if few else t_quantile(count - 1, 1 - alpha) * errors[:, c]
        needed = np.sort(shifts[:, c] + np.maximum(max_drop, reach))
        passes = shifts[:, c] >= bound if few else shifts[:, c] > bound
        found.append(Powers(float(np.quantile(needed, POWER)), float(passes.mean()), needed))
    return found


def _resampled(
    differences: FloatArray, codes: IntArray, count: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Resampled mean − mean and its standard error (see ``statistics.estimate``), both (B, C)."""
    sums = np.stack([np.bincount(codes, weights=row, minlength=count) for row in differences])
    sizes = np.bincount(codes, minlength=count).astype(np.float64)
    means = sums.sum(axis=1) / sizes.sum()
    centred = (sums - means[:, None] * sizes).T  # (G, C): the true mean is 0
    parts = [np.empty((0, len(sums)))] * 2
    for drawn in draw_groups(count, min(MOST, max(LEAST, DRAWS // count)), seed):
        times = _counts(drawn, count)
        queries = (times @ sizes)[:, None]
        shift = (times @ centred) / queries
        residuals = (  # Σ (D − n·shift)² over the groups drawn
            times @ centred**2
            - 2 * shift * (times @ (centred * sizes[:, None]))
            + shift**2 * (times @ sizes**2)[:, None]
        )
        error = np.sqrt(count / (count - 1) * np.maximum(residuals, 0)) / queries
        parts = [np.concatenate(pair) for pair in zip(parts, (shift, error), strict=True)]
    return parts[0], parts[1]


def _counts(drawn: IntArray, count: int) -> FloatArray:
    """How often each group is in each resample, shape (b, G)."""
    rows = np.arange(len(drawn))[:, None] * count
    flat = np.bincount((drawn + rows).ravel(), minlength=len(drawn) * count)
    return flat.reshape(len(drawn), count).astype(np.float64)
