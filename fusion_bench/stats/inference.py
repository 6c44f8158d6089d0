"""How sure a mean is: intervals, randomisation tests, Holm, the smallest detectable difference.

Pure functions of arrays: Q queries in G groups, C comparisons. Queries of one group (the same
topic asked twice) say nearly the same thing, so intervals and sign flips go by group; without
groups each query is its own. How groups are labelled changes nothing.

Random numbers are the raw words of PCG64, whose stream numpy promises never to change; the methods
of its Generator carry no such promise. A seed therefore means the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError, DataError, UnknownNameError

__all__ = [
    "Alternative",
    "Estimate",
    "Interval",
    "default_resamples",
    "draw_groups",
    "estimate",
    "exact_mean",
    "group_codes",
    "holm",
    "randomisation_p",
    "smallest_detectable",
    "t_quantile",
]

Interval: TypeAlias = Literal["t", "bootstrap"]
#: What a small p speaks for: any difference, or a mean below 0.
Alternative: TypeAlias = Literal["two-sided", "less"]

BOOTSTRAP_RESAMPLES = 10_000
#: Resamples are drawn in blocks of about this size: bounded memory, and it stays in the cache.
BLOCK_BYTES = 1 << 22
#: |T*| reaches |T| from this share of Σ|d| below it: equal sums must tie in spite of rounding.
TIE_TOLERANCE = 1e-12
#: Σ|d| is worth up to 2^50 fixed-point units, so 2·Σ and all that is added stays below 2^53.
FIXED_POINT_BITS = 50


@dataclass(frozen=True)
class Estimate:
    """A mean over queries and how sure it is.

    Attributes:
        mean: Mean over queries, in the unit of the values, as everything below.
        low: Lower end of the interval; NaN with one group, as nothing tells the spread.
        high: Upper end; NaN likewise.
        sd: Sample standard deviation of the single queries; NaN with one query.
        standard_error: Of the mean, by group; NaN with one group.
        queries: Q.
        groups: G; equals Q where no groups are declared.
    """

    mean: float
    low: float
    high: float
    sd: float
    standard_error: float
    queries: int
    groups: int


def estimate(
    values: FloatArray,
    groups: IntArray | None = None,
    *,
    alpha: float = 0.05,
    interval: Interval = "t",
    seed: int = 0,
) -> Estimate:
    """Mean over queries with its 1 − ``alpha`` interval.

    With D_g the sum of the n_g values of group g, the standard error is the cluster-robust
    √(G/(G−1) · Σ_g (D_g − n_g·mean)²) / Q with G−1 degrees of freedom (Cameron & Miller 2015, "A
    Practitioner's Guide to Cluster-Robust Inference", section II, a regression on a constant).
    With one query per group that is sd/√Q, the ordinary one-sample (or paired) t interval.

    Args:
        values: Shape (Q,), finite: one system's values, or paired differences.
        groups: Shape (Q,), integer codes; None = every query is its own group.
        alpha: 1 − coverage.
        interval: ``t``, or ``bootstrap``: percentiles over 10,000 resamples of whole groups
            (Efron & Tibshirani 1993, chapter 13).
        seed: Of the bootstrap.
    """
    _check_alpha(alpha)
    if interval not in get_args(Interval):
        raise UnknownNameError("interval", interval, get_args(Interval))
    _check_values(values, dimensions=1)
    codes, count = group_codes(groups, len(values))
    queries, mean = len(values), exact_mean(values)
    deviations = values - mean  # all exactly 0 when the values are constant
    residuals = np.bincount(codes, weights=deviations).astype(np.float64)  # D_g − n_g·mean
    sd = error = low = high = math.nan
    if queries > 1:
        sd = math.sqrt(math.fsum((deviations**2).tolist()) / (queries - 1))
    if count > 1:
        error = math.sqrt(count / (count - 1) * math.fsum((residuals**2).tolist())) / queries
        if interval == "t":
            reach = t_quantile(count - 1, 1 - alpha / 2) * error
            low, high = mean - reach, mean + reach
        else:
            sizes = np.bincount(codes).astype(np.int64)
            shifts = _bootstrap_shifts(residuals, sizes, seed)
            low, high = (mean + np.quantile(shifts, [alpha / 2, 1 - alpha / 2])).tolist()
    return Estimate(mean, low, high, sd, error, queries, count)


def exact_mean(values: FloatArray) -> float:
    """Mean of (Q,) values, the same for any order of them, and exactly c when all of them are c."""
    first = float(values[0])
    return first if (values == first).all() else math.fsum(values.tolist()) / len(values)


def default_resamples(comparisons: int) -> int:
    """Resamples for a family: enough that Holm's smallest threshold, α/C, is 10 counts wide."""
    return max(10_000, 200 * comparisons)


def randomisation_p(
    differences: FloatArray,
    groups: IntArray | None = None,
    *,
    resamples: int | None = None,
    seed: int = 0,
    alternative: Alternative = "two-sided",
) -> FloatArray:
    """P-values of the paired randomisation test of "both systems are the same".

    Under that hypothesis each group's differences are as likely with the opposite sign. T is the
    sum of the differences, T* the same after flipping every group with probability ½, and
    p = (1 + #{|T*| ≥ |T|}) / (B + 1) (Smucker, Allan & Carterette 2007; the + 1 keeps the level,
    and p above 0: Phipson & Smyth 2010).

    Nothing depends on how or in which order sums are rounded: differences become integers, so
    every sum is exact on any BLAS, and a T* within 1e-12·Σ|d| (plus one unit per group for the
    rounding to integers) of T counts as reaching it, so that equal sums of unequal terms tie.

    Args:
        differences: Shape (C, Q), finite; candidate − baseline per query.
        groups: Shape (Q,), integer codes; a group flips as a whole. None = every query alone.
        resamples: B; :func:`default_resamples` of C when not given.
        seed: Of the signs, which all comparisons share: a row's p does not depend on the others.
        alternative: ``two-sided``, or ``less``: T* ≤ T is counted instead, so that only a loss of
            the candidate makes p small.

    Returns:
        Shape (C,).
    """
    if alternative not in get_args(Alternative):
        raise UnknownNameError("alternative", alternative, get_args(Alternative))
    _check_values(differences, dimensions=2)
    resamples = default_resamples(len(differences)) if resamples is None else resamples
    if resamples < 1:
        raise ConfigError(f"resamples: must be at least 1, not {resamples}")
    codes, count = group_codes(groups, differences.shape[1])
    units, slack = _fixed_point(differences, codes, count)
    total = units.sum(axis=0)
    one_sided = alternative == "less"
    threshold = (-total if one_sided else np.abs(total)) - slack
    reached = np.zeros(len(differences), dtype=np.int64)
    width = -(-count // 64)
    for words in _word_blocks(seed, resamples, width, row_bytes=8 * (count + len(differences))):
        octets = words.astype("<u8", copy=False).view(np.uint8)
        plus = np.unpackbits(octets, axis=1, count=count, bitorder="little").astype(np.float64)
        flipped = 2 * (plus @ units) - total
        reached += ((-flipped if one_sided else np.abs(flipped)) >= threshold).sum(axis=0)
    return np.asarray((1 + reached) / (resamples + 1), dtype=np.float64)


def holm(p_values: FloatArray) -> FloatArray:
    """Holm's step-down adjusted p-values (Holm 1979), shape (C,), in the order given.

    The i-th smallest of C is multiplied by C − i + 1, never falls below a smaller one's, and stops
    at 1. Rejecting what is below α keeps the chance of any false rejection at or below α.
    """
    wrong = np.flatnonzero(~((p_values >= 0) & (p_values <= 1)))  # NaN is in no range
    if len(wrong):
        raise DataError(f"p-value {wrong[0]}: must be in [0, 1], not {p_values[wrong[0]]}")
    order = np.argsort(p_values, kind="stable")
    steps = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def smallest_detectable(
    estimate: Estimate, *, alpha: float = 0.05, power: float = 0.8
) -> float | None:
    """True mean that a two-sided test at ``alpha`` would have called different with ``power``.

    (t_{1−α/2} + t_power) × standard error, quantiles at G−1 degrees of freedom (Bloom 1995,
    "Minimum Detectable Effects"). None where there is no spread to judge by: a standard error of
    0, or one group.
    """
    _check_alpha(alpha)
    if not 0.5 <= power < 1:
        raise ConfigError(f"power: must be in [0.5, 1), not {power}")
    if not estimate.standard_error > 0:  # written so that NaN ends here too
        return None
    freedom = estimate.groups - 1
    reach = t_quantile(freedom, 1 - alpha / 2) + t_quantile(freedom, power)
    return reach * estimate.standard_error


def t_quantile(freedom: int, probability: float) -> float:
    """Quantile of Student's t at G − 1 degrees of freedom."""
    from scipy.special import stdtrit  # late, as it is slow; scipy.stats costs 0.7 s

    return float(stdtrit(freedom, probability))


def _check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise ConfigError(f"alpha: must be above 0 and below 1, not {alpha}")


def _check_values(values: FloatArray, *, dimensions: int) -> None:
    if values.ndim != dimensions:
        raise ConfigError(f"values: need {dimensions} dimension(s), not shape {values.shape}")
    if not values.shape[-1]:
        raise DataError("values: a mean needs at least one query, and there is none")
    if not np.isfinite(values).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise DataError(f"values{list(place)}: must be finite, not {values[place]}")


def group_codes(groups: IntArray | None, queries: int) -> tuple[IntArray, int]:
    """Codes 0 … G−1 in order of first appearance (so labels mean nothing), and G."""
    if groups is None:
        return np.arange(queries, dtype=np.int64), queries
    if groups.shape != (queries,):
        raise ConfigError(
            f"groups: need one code per query, shape ({queries},), not {groups.shape}"
        )
    labels, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    places = np.empty(len(labels), dtype=np.int64)
    places[np.argsort(first)] = np.arange(len(labels))
    return places[inverse], len(labels)


def _fixed_point(
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


def _bootstrap_shifts(residuals: FloatArray, sizes: IntArray, seed: int) -> FloatArray:
    """Resampled mean − mean, shape (10,000,): G groups drawn with replacement each time."""
    count, shifts = len(sizes), []
    equal = sizes.min() == sizes.max()
    for drawn in draw_groups(count, BOOTSTRAP_RESAMPLES, seed):
        queries = count * sizes[0] if equal else sizes.take(drawn).sum(axis=1)
        shifts.append(residuals.take(drawn).sum(axis=1) / queries)
    return np.concatenate(shifts)


def draw_groups(count: int, resamples: int, seed: int) -> Iterator[IntArray]:
    """Groups drawn with replacement, in blocks of shape (b, G): whole resamples, one a row.

    Args:
        count: G; each of 0 … G−1 is as likely, to within G/2^32.
        resamples: Rows over all blocks.
        seed: Of the draws; the blocks' size changes nothing.
    """
    for words in _word_blocks(seed, resamples, -(-count // 2), row_bytes=24 * count):
        halves = words.astype("<u8", copy=False).view("<u4")[:, :count].astype(np.int64)
        yield (halves * count) >> 32


def _word_blocks(
    seed: int, rows: int, width: int, *, row_bytes: int
) -> Iterator[NDArray[np.uint64]]:
    """Random words of shape (block, width), ``rows`` in all; the blocks' size changes no word."""
    if seed < 0:
        raise ConfigError(f"seed: must be 0 or more, not {seed}")
    source = np.random.PCG64(seed)
    step = max(1, BLOCK_BYTES // row_bytes)
    for start in range(0, rows, step):
        block = min(step, rows - start)
        yield source.random_raw(block * width).reshape(block, width)
