"""One effect over several collections, each with its standard error.

The heterogeneity is that of Paule and Mandel (1982), the interval that of Hartung and Knapp (2001)
whose factor is never below 1 (Röver, Knapp & Friede 2015), and the prediction interval for the
effect on a new collection that of IntHout et al. (2016).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import brentq

from fusion_bench.config.json_records import OptionalFloat, ReportRecord
from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.intervals import t_quantile

#: Of both intervals.
COVERAGE = 0.95


class PooledEffect(ReportRecord):
    """The mean effect over collections.

    Attributes:
        mean: Weighted by the inverse of each variance and of the heterogeneity.
        low: Lower end of the interval of the mean; None with one effect.
        high: Upper end.
        new_low: Lower end of the interval for the effect on a new collection.
        new_high: Upper end.
        heterogeneity: τ², the variance of the true effects over collections.
        effects: How many were pooled.
    """

    mean: float
    low: OptionalFloat = None
    high: OptionalFloat = None
    new_low: OptionalFloat = None
    new_high: OptionalFloat = None
    heterogeneity: float = 0.0
    effects: int


def join_clusters(
    effects: Mapping[str, tuple[float, float]], clusters: Mapping[str, str]
) -> dict[str, tuple[float, float]]:
    """One effect for collections that resemble each other: their mean.

    Args:
        effects: Of each collection its effect and the variance of that.
        clusters: Collection → name of its cluster; one that is absent is a cluster of its own.
    """
    members: dict[str, list[tuple[float, float]]] = {}
    for name, effect in effects.items():
        members.setdefault(clusters.get(name, name), []).append(effect)
    return {
        name: (
            float(np.mean([effect for effect, _ in rows])),
            float(np.sum([variance for _, variance in rows])) / len(rows) ** 2,
        )
        for name, rows in members.items()
    }


def pool_effects(
    effects: Sequence[float], variances: Sequence[float], *, family: int = 1
) -> PooledEffect:
    """The mean of a distribution of effects, from one draw a collection.

    Args:
        effects: At least one.
        variances: Of each effect, > 0.
        family: How many means have intervals that are to hold together (Bonferroni).

    Raises:
        ValueError: There are no effects, or a variance is not above 0.
    """
    values, known = np.array(effects, dtype=float), np.array(variances, dtype=float)
    if not len(values) or not (known > 0).all():
        raise ValueError("at least one effect is needed, each with a variance above 0")
    if len(values) == 1:
        return PooledEffect(mean=float(values[0]), effects=1)
    spread = _find_heterogeneity(values, known)
    weights = 1 / (known + spread)
    mean = float(weights @ values / weights.sum())
    freedom = len(values) - 1
    factor = max(float(weights @ (values - mean) ** 2) / freedom, 1.0)
    error = math.sqrt(factor / float(weights.sum()))
    quantile = t_quantile(freedom, 1 - (1 - COVERAGE) / 2 / family)
    width, beyond = quantile * error, quantile * math.hypot(error, math.sqrt(spread))
    return PooledEffect(
        mean=mean,
        low=mean - width,
        high=mean + width,
        new_low=mean - beyond,
        new_high=mean + beyond,
        heterogeneity=spread,
        effects=len(values),
    )


def _find_heterogeneity(values: FloatArray, variances: FloatArray) -> float:
    """τ² at which the weighted squares around the mean have their expected sum; at least 0."""

    def excess(spread: float) -> float:
        weights = 1 / (variances + spread)
        mean = weights @ values / weights.sum()
        return float(weights @ (values - mean) ** 2) - (len(values) - 1)

    if excess(0.0) <= 0:
        return 0.0
    greatest = float(np.var(values)) + float(variances.max())
    while excess(greatest) > 0:
        greatest *= 2
    return float(brentq(excess, 0.0, greatest, xtol=1e-14))
