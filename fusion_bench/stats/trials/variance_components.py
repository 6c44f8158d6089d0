"""The variance of one system's values, split into queries, trials, and trials on queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.intervals import exact_mean
from fusion_bench.stats.trials.trial_spread import TrialSpread, measure_trial_spread


@dataclass(frozen=True)
class VarianceComponents:
    """Variances of the parts of one value, y_tq; they sum to the variance of one value.

    Attributes:
        queries: σ²_α: how far queries differ.
        trials: σ²_τ: how far trials differ on all queries together.
        residual: σ²_ε: how far trials differ on one query.
    """

    queries: float
    trials: float
    residual: float

    @property
    def shares(self) -> tuple[float, float, float]:
        """Of queries, trials and residual; they sum to 1, or are 0 where nothing varies."""
        total = self.queries + self.trials + self.residual
        if total == 0:
            return 0.0, 0.0, 0.0
        return self.queries / total, self.trials / total, self.residual / total


def split_variance(
    values: FloatArray, spread: TrialSpread | None = None
) -> VarianceComponents | None:
    """Variance components by the analysis of variance; negative estimates are 0.

    With the mean squares of queries, trials and residual, σ²_ε = MS_ε,
    σ²_τ = (MS_τ − MS_ε) ÷ Q and σ²_α = (MS_α − MS_ε) ÷ T (Brennan 2001, chapter 2).

    Args:
        values: Shape (T, Q), T ≥ 2, finite.
        spread: Of the same values, where queries come in groups; by default without groups.

    Returns:
        None with one query.
    """
    trials, queries = values.shape
    if queries < 2:
        return None
    spread = spread or measure_trial_spread(values)
    by_query = values.mean(axis=0)
    residuals = values - values[0]  # exactly 0 where trials are equal
    residuals -= residuals.mean(axis=0)
    residuals -= residuals.mean(axis=1, keepdims=True)
    residual = float((residuals**2).sum() / ((trials - 1) * (queries - 1)))
    between_queries = float(((by_query - exact_mean(by_query)) ** 2).sum() / (queries - 1))
    return VarianceComponents(
        queries=max(between_queries - residual / trials, 0.0),
        trials=spread.variance,
        residual=residual,
    )


def count_disagreements(values: FloatArray, *, noise: float) -> tuple[int, int]:
    """Queries on which the first two trials differ, and on which any two do.

    Args:
        values: Shape (T, Q), T ≥ 2.
        noise: Differences up to this count as none.
    """
    first, second = values[:2]
    return (
        int((np.abs(first - second) > noise).sum()),
        int((np.ptp(values, axis=0) > noise).sum()),
    )
