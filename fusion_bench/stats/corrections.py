"""The paired randomization test; the corrections of p-values, of intervals in a family."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.stats.intervals import check_values, group_codes, random_words

#: The alternative hypothesis: any difference, or a mean below 0.
Alternative: TypeAlias = Literal["two-sided", "less"]
#: |T*| counts as |T| within this share of Σ|d|, so that equal sums tie in spite of rounding.
TIE_TOLERANCE = 1e-12
#: Up to so many groups with a difference, p is exact: all 2^16 flips are counted.
EXACT_GROUPS = 16
#: Σ|d| is at most 2^50 fixed-point units, so that every sum stays below 2^53.
FIXED_POINT_BITS = 50


def default_resamples(comparisons: int) -> int:
    """Resamples for a family: enough that Holm's smallest threshold, α/C, is 10 counts wide."""
    return max(10_000, 200 * comparisons)


def randomization_p_values(
    differences: FloatArray,
    groups: IntArray | None = None,
    *,
    resamples: int | None = None,
    seed: int = 0,
    alternative: Alternative = "two-sided",
) -> FloatArray:
    """P-values of the paired randomization test of "both systems are the same".

    Under that hypothesis each group's differences are as likely with the opposite sign. T is the
    sum of the differences, T* the same after flipping every group with probability ½, and
    p = (1 + #{|T*| ≥ |T|}) / (B + 1) (Smucker, Allan & Carterette 2007; the + 1 keeps the level,
    and p above 0: Phipson & Smyth 2010). Where at most 16 groups differ, p is the exact share of
    all flips, the identity included.

    Results do not depend on the order of summation: differences become integers, so that every sum
    is exact on any BLAS. A T* within 1e-12·Σ|d| of T (plus one unit per group for the rounding to
    integers) counts as equal to it, so that equal sums of unequal terms tie.

    Args:
        differences: Shape (C, Q), finite; candidate − baseline per query.
        groups: Shape (Q,), integer codes; a group flips as a whole. None = every query alone.
        resamples: B; :func:`default_resamples` of C when not given.
        seed: Seed of the signs, which all rows share: a row's p does not depend on the others.
        alternative: ``two-sided``, or ``less``: counts T* ≤ T, so that only a loss makes p small.

    Returns:
        Shape (C,).
    """
    if alternative not in get_args(Alternative):
        raise UnknownNameError("alternative", alternative, get_args(Alternative))
    check_values(differences, dimensions=2)
    resamples = default_resamples(len(differences)) if resamples is None else resamples
    if resamples < 1:
        raise ConfigError(f"resamples: must be at least 1, not {resamples}")
    codes, count = group_codes(groups, differences.shape[1])
    units, slack = fixed_point(differences, codes, count)
    total = units.sum(axis=0)
    one_sided = alternative == "less"
    threshold = (-total if one_sided else np.abs(total)) - slack
    p = np.ones(len(differences))
    few = (units != 0).sum(axis=0) <= EXACT_GROUPS
    for row in np.flatnonzero(few):
        p[row] = _exact_share(units[:, row], float(threshold[row]), one_sided=one_sided)
    rest = np.flatnonzero(~few)
    if len(rest):
        sampled = _count_flips(units[:, rest], threshold[rest], resamples, seed, one_sided)
        p[rest] = (1 + sampled) / (resamples + 1)
    return p


def _exact_share(units: FloatArray, threshold: float, *, one_sided: bool) -> float:
    """Share of all sign flips of (G,) group sums that reach the threshold."""
    sums = np.zeros(1)
    for unit in units[units != 0]:
        sums = np.concatenate([sums + unit, sums - unit])
    return float(np.mean((-sums if one_sided else np.abs(sums)) >= threshold))


def _count_flips(
    units: FloatArray, threshold: FloatArray, resamples: int, seed: int, one_sided: bool
) -> IntArray:
    """How many random flips of the (G, C) group sums reach the (C,) thresholds, shape (C,)."""
    count, comparisons = units.shape
    total = units.sum(axis=0)
    reached = np.zeros(comparisons, dtype=np.int64)
    width = -(-count // 64)
    for words in random_words(seed, resamples, width, row_bytes=8 * (count + comparisons)):
        octets = words.astype("<u8", copy=False).view(np.uint8)
        plus = np.unpackbits(octets, axis=1, count=count, bitorder="little").astype(np.float64)
        flipped = 2 * (plus @ units) - total
        reached += ((-flipped if one_sided else np.abs(flipped)) >= threshold).sum(axis=0)
    return reached


def fixed_point(
    differences: FloatArray, codes: IntArray, count: int
) -> tuple[FloatArray, FloatArray]:
    """Group sums as whole units, (G, C), and how many units below |T| still count as |T|, (C,)."""
    units = np.empty((count, len(differences)))
    slack = np.empty(len(differences))
    for column, row in enumerate(differences):
        size = math.fsum(np.abs(row).tolist())  # exact: the unit must not hinge on rounding either
        shift = FIXED_POINT_BITS - math.frexp(size)[1]  # size·2^shift is in [2^49, 2^50)
        units[:, column] = np.rint(np.ldexp(np.bincount(codes, weights=row), shift))
        slack[column] = math.ceil(TIE_TOLERANCE * math.ldexp(size, shift)) + count
    return units, slack


def adjust_holm(p_values: FloatArray) -> FloatArray:
    """Holm's step-down adjusted p-values (Holm 1979), shape (C,), in the order given.

    The i-th smallest of C is multiplied by C − i + 1, never falls below a smaller one's, and stops
    at 1. Rejecting what is below α keeps the chance of any false rejection at or below α.

    Raises:
        DataError: A p-value is outside [0, 1].
    """
    wrong = np.flatnonzero(~((p_values >= 0) & (p_values <= 1)))  # NaN is in no range
    if len(wrong):
        raise DataError(f"p-value {wrong[0]}: must be in [0, 1], not {p_values[wrong[0]]}")
    order = np.argsort(p_values, kind="stable")
    steps = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


#: ``max_t``: p and interval hold for all comparisons together. ``holm``: p does, the intervals are
#: not adjusted. ``none``: neither.
Correction: TypeAlias = Literal["max_t", "holm", "none"]
