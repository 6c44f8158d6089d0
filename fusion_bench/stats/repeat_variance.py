"""Repeats, that is repeated lists of a system: how far they differ, what they add to a variance.

The model is crossed: every repeat t of a system has every query q, and belongs to one system,

    y_tq = μ + α_q + τ_t + ε_tq,

with random effects of queries, of repeats, and of one repeat on one query (Brennan 2001,
"Generalizability Theory", chapter 2; Voorhees, Samarov & Soboroff 2017, "Using Replicates in
Information Retrieval Evaluation", ACM TOIS 36(2)). τ moves all queries of a repeat together. It is
what averaging over queries does not remove, so that the variance of the means of the T repeats,
divided by T, is added to the variance over queries: see :func:`repeat_width`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from fusion_bench.data.ordering import NOISE, FloatArray, make_readonly
from fusion_bench.stats.intervals import MeanEstimate, exact_mean, t_quantile

#: The means of the T > 1 repeats, over queries, of each side of a difference that has repeats.
RepeatMeans: TypeAlias = tuple[FloatArray, ...]
#: With so many repeats or fewer, their effect is hardly known.
FEW_REPEATS: Final = 3
#: Repeats that tell their effect.
ENOUGH_REPEATS: Final = 6


def mean_of_repeats(repeats: FloatArray | Sequence[FloatArray]) -> FloatArray:
    """The mean over the first axis, read-only; repeats that agree keep their value to the last bit.

    Args:
        repeats: Shape (T, …); an array becomes read-only too.
    """
    values = np.asarray(repeats)
    make_readonly(values)
    mean: FloatArray = values[0]
    if len(values) > 1:
        mean = np.where((values == mean).all(axis=0), mean, values.mean(axis=0))
    make_readonly(mean)
    return mean


def repeat_means(sides: Sequence[FloatArray | None]) -> RepeatMeans:
    """The mean over queries of each repeat, shape (T,), of each side that has several.

    Args:
        sides: Each (T, Q); None = one repeat.
    """
    return tuple(
        np.array([exact_mean(row) for row in side])
        for side in sides
        if side is not None and len(side) > 1
    )


def repeat_variance(repeats: RepeatMeans) -> float:
    """Σ B/T: what repeats add to the variance of a mean difference; 0 where they agree."""
    return math.fsum(
        float(np.var(means, ddof=1)) / len(means) for means in repeats if np.ptp(means) > NOISE
    )


def repeat_width(repeats: RepeatMeans, level: float, rows: int = 1) -> float:
    """t(1 − level/R; ν) · √(Σ B/T): what repeats alone would make of the width of an interval.

    Args:
        repeats: The means of the repeats of each side that has several.
        level: Probability of one tail.
        rows: R, the rows of the family that have repeats.
    """
    variance = repeat_variance(repeats)
    if variance == 0:
        return 0.0
    freedom = sum(len(means) - 1 for means in repeats)
    return t_quantile(freedom, 1 - level / rows) * math.sqrt(variance)


def widen_estimate(estimate: MeanEstimate, repeats: RepeatMeans, *, alpha: float) -> MeanEstimate:
    """A mean over queries whose t interval is for new repeats too.

    Args:
        estimate: Of the means over repeats.
        repeats: The means of the repeats of each side that has several.
        alpha: 1 − coverage.
    """
    added = repeat_variance(repeats)
    if not added or math.isnan(estimate.standard_error):
        return estimate
    width = math.hypot(
        t_quantile(estimate.freedom, 1 - alpha / 2) * estimate.standard_error,
        repeat_width(repeats, alpha / 2),
    )
    return replace(
        estimate,
        low=estimate.mean - width,
        high=estimate.mean + width,
        standard_error=math.sqrt(estimate.standard_error**2 + added),
        repeat_variance=added,
    )


def split_variance(values: FloatArray) -> tuple[float, float, float] | None:
    """Shares of queries, repeats and residual in the variance of one value; None with one query.

    With the mean squares of queries, repeats and residual, σ²_ε = MS_ε,
    σ²_τ = (MS_τ − MS_ε) ÷ Q and σ²_α = (MS_α − MS_ε) ÷ T, at least 0 (Brennan 2001, chapter 2). The
    shares sum to 1, or are 0 where nothing varies.

    Args:
        values: Shape (T, Q), T ≥ 2, finite.
    """
    repeats, queries = values.shape
    if queries < 2:
        return None
    residuals = values - values[0]  # exactly 0 where repeats are equal
    residuals -= residuals.mean(axis=0)
    residuals -= residuals.mean(axis=1, keepdims=True)
    residual = float((residuals**2).sum() / ((repeats - 1) * (queries - 1)))
    [means] = repeat_means([values])
    between = 0.0 if (means == means[0]).all() else float(means.var(ddof=1))
    parts = (
        max(float(values.mean(axis=0).var(ddof=1)) - residual / repeats, 0.0),
        max(between - residual / queries, 0.0),
        residual,
    )
    total = math.fsum(parts)
    queries_share, repeats_share, residual_share = (part / (total or 1.0) for part in parts)
    return queries_share, repeats_share, residual_share


def count_disagreements(values: FloatArray, *, noise: float) -> tuple[int, int]:
    """Queries on which the first two repeats differ, and on which any two do.

    Args:
        values: Shape (T, Q), T ≥ 2.
        noise: Differences up to this count as none.
    """
    first, second = values[:2]
    return (
        int((np.abs(first - second) > noise).sum()),
        int((np.ptp(values, axis=0) > noise).sum()),
    )
