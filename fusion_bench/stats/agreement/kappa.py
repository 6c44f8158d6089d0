"""Cohen's kappa and its interval, with queries as clusters.

κ = 1 − Σ w_ij o_ij / Σ w_ij e_ij with observed shares o_ij, shares e_ij = o_i. o_.j expected of
independent judges, and disagreements w_ij: 0 on the diagonal, else 1 (Cohen 1960, "A coefficient of
agreement for nominal scales"), |g_i − g_j| or its square (Cohen 1968, "Weighted kappa").

The interval is the delete-one-query jackknife's (Efron & Tibshirani 1993, "An Introduction to the
Bootstrap", chapter 11) with Student's t on Q − 1 degrees of freedom. The pairs of one query depend
on each other: one reading of the query decides many of its grades. The large-sample formula of
Fleiss, Cohen & Everitt 1969 counts pairs as independent, so its intervals are too narrow;
``benchmarks/agreement_table.py`` measures by how much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.stats.intervals import t_quantile

#: How far apart two grades count: all the same, by their distance, or by its square.
Weighting: TypeAlias = Literal["none", "linear", "quadratic"]
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)


@dataclass(frozen=True, eq=False)
class Kappa:
    """Cohen's kappa of two judges.

    Attributes:
        value: κ over all pairs; NaN without pairs, or where both judges give one grade alone.
        low: Lower end of the interval; NaN where ``value`` is, and with one query.
        high: Upper end; NaN likewise.
        without_query: Shape (Q,): κ without each query.
    """

    value: float
    low: float
    high: float
    without_query: FloatArray


def make_weights(grades: tuple[int, ...], weighting: Weighting) -> FloatArray:
    """(K, K): the disagreement of each two grades, at most 1."""
    values = np.array(grades, np.float64)
    distance: FloatArray = np.abs(values[:, None] - values)
    if weighting == "none" or not distance.any():
        return np.asarray(distance > 0, np.float64)
    scaled = distance / distance.max()
    return np.asarray(scaled if weighting == "linear" else scaled**2)


def measure_kappa(counts: IntArray, weights: FloatArray, *, alpha: float = 0.05) -> Kappa:
    """Cohen's kappa with its 1 − ``alpha`` interval.

    Args:
        counts: Shape (Q, K, K): pairs by query, grade of the first judge, grade of the second.
        weights: Shape (K, K): the disagreement of two grades, 0 on the diagonal.
        alpha: 1 − coverage.
    """
    total = counts.sum(axis=0)
    value = float(kappa_of_counts(total, weights))
    without = kappa_of_counts(total - counts, weights)
    low = high = math.nan
    queries = len(counts)
    if queries > 1 and np.isfinite(value) and np.isfinite(without).all():
        error = math.sqrt((queries - 1) / queries * float(((without - without.mean()) ** 2).sum()))
        half_width = t_quantile(queries - 1, 1 - alpha / 2) * error
        low, high = max(-1.0, value - half_width), min(1.0, value + half_width)
    return Kappa(value, low, high, without)


def kappa_of_counts(counts: IntArray, weights: FloatArray) -> FloatArray:
    """Shape (…): κ of counts of shape (…, K, K); NaN where no disagreement is to be expected."""
    total = counts.sum(axis=(-2, -1), dtype=np.float64)
    rows, columns = counts.sum(axis=-1, dtype=np.float64), counts.sum(axis=-2, dtype=np.float64)
    observed = (weights * counts).sum(axis=(-2, -1)) * total
    expected = np.einsum("...i,ij,...j->...", rows, weights, columns)
    safe = np.where(expected > 0, expected, 1.0)
    return np.asarray(np.where(expected > 0, 1 - observed / safe, math.nan))
