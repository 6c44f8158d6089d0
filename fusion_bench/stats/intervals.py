"""Means over queries and their intervals, and exact intervals of a share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.stats.resampling import check_values, draw_groups, group_codes

IntervalMethod: TypeAlias = Literal["t", "bootstrap"]
BOOTSTRAP_RESAMPLES = 10_000
#: The power of a minimum detectable difference or drop.
POWER = 0.8


@dataclass(frozen=True)
class MeanEstimate:
    """A mean over queries, its interval and its standard error.

    Attributes:
        mean: Mean over queries.
        low: Lower end of the interval; NaN with one group.
        high: Upper end; NaN likewise.
        sd: Sample standard deviation over queries; NaN with one query.
        standard_error: Standard error of the mean, by group; NaN with one group.
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


def estimate_mean(
    values: FloatArray,
    groups: IntArray | None = None,
    *,
    alpha: float = 0.05,
    interval: IntervalMethod = "t",
    seed: int = 0,
) -> MeanEstimate:
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
        seed: Seed of the bootstrap.
    """
    if not 0 < alpha < 1:
        raise ConfigError(f"alpha: must be above 0 and below 1, not {alpha}")
    if interval not in get_args(IntervalMethod):
        raise UnknownNameError("interval", interval, get_args(IntervalMethod))
    check_values(values, dimensions=1)
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
            half_width = t_quantile(count - 1, 1 - alpha / 2) * error
            low, high = mean - half_width, mean + half_width
        else:
            sizes = np.bincount(codes).astype(np.int64)
            shifts = _bootstrap_shifts(residuals, sizes, seed)
            low, high = (mean + np.quantile(shifts, [alpha / 2, 1 - alpha / 2])).tolist()
    return MeanEstimate(mean, low, high, sd, error, queries, count)


def exact_mean(values: FloatArray) -> float:
    """Mean of (Q,) values, independent of their order, and exactly c if all are c."""
    first = float(values[0])
    return first if (values == first).all() else math.fsum(values.tolist()) / len(values)


def t_quantile(freedom: int, probability: float) -> float:
    """Quantile of Student's t at G − 1 degrees of freedom."""
    from scipy.special import stdtrit  # late, as it is slow; scipy.stats costs 0.7 s

    return float(stdtrit(freedom, probability))


def minimum_detectable_difference(estimate: MeanEstimate, *, alpha: float = 0.05) -> float | None:
    """True mean that a two-sided test at ``alpha`` detects with 80 % power.

    (t_{1−α/2} + t_0.8) × standard error, quantiles at G−1 degrees of freedom (Bloom 1995,
    "Minimum Detectable Effects"). None where no spread is known: a standard
    error of 0, or one group.
    """
    if not estimate.standard_error > 0:  # written so that NaN ends here too
        return None
    freedom = estimate.groups - 1
    factor = t_quantile(freedom, 1 - alpha / 2) + t_quantile(freedom, POWER)
    return factor * estimate.standard_error


def _bootstrap_shifts(residuals: FloatArray, sizes: IntArray, seed: int) -> FloatArray:
    """Resampled mean − mean, shape (10,000,): G groups drawn with replacement each time."""
    count, shifts = len(sizes), []
    equal = sizes.min() == sizes.max()
    for drawn in draw_groups(count, BOOTSTRAP_RESAMPLES, seed):
        queries = count * sizes[0] if equal else sizes.take(drawn).sum(axis=1)
        shifts.append(residuals.take(drawn).sum(axis=1) / queries)
    return np.concatenate(shifts)


def clopper_pearson(count: int, runs: int, confidence: float = 0.95) -> tuple[float, float]:
    """Interval of the probability of an event seen ``count`` times in ``runs`` independent trials.

    Clopper & Pearson 1934: the values that neither one-sided binomial test at
    (1 − confidence) / 2 rejects; its coverage is at least ``confidence``.

    Args:
        count: 0 … ``runs``.
        runs: At least 1.
        confidence: Coverage.
    """
    from scipy.special import betaincinv  # late, as it is slow

    tail = (1 - confidence) / 2
    low = 0.0 if count == 0 else float(betaincinv(count, runs - count + 1, tail))
    high = 1.0 if count == runs else float(betaincinv(count + 1, runs - count, 1 - tail))
    return low, high
