"""How far the means of a system's trials lie apart, and how far they would by the queries alone.

The model is crossed: every trial t of a system has every query q, and trials belong to one system,

    y_tq = μ + α_q + τ_t + ε_tq,

with random effects of queries, of trials, and of one trial on one query (Brennan 2001,
"Generalizability Theory", chapter 2; Voorhees, Samarov & Soboroff 2017, "Using Replicates in
Information Retrieval Evaluation", ACM TOIS 36(2)). τ moves all queries of a trial together. It is
what averaging over queries does not remove.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError
from fusion_bench.stats.cluster_variance import bell_mccaffrey_freedom, cr2_standard_error
from fusion_bench.stats.intervals import exact_mean
from fusion_bench.stats.resampling import check_values, group_codes


@dataclass(frozen=True)
class TrialSpread:
    """The trials of one system, at least 2.

    Attributes:
        trials: T.
        means: The mean over queries of each trial, T numbers.
        between: Sample variance of these means. It estimates σ²_τ + ``within``.
        within: Variance of a trial's mean that ε alone causes: σ²_ε ÷ Q without groups.
        within_freedom: Degrees of freedom of ``within``; NaN with one group.
    """

    trials: int
    means: tuple[float, ...]
    between: float
    within: float
    within_freedom: float

    @property
    def variance(self) -> float:
        """σ²_τ, by the analysis of variance; a negative estimate is 0.

        Searle, Casella & McCulloch 1992, "Variance Components", chapter 4.
        """
        return self.between - self.within if self.between > self.within else 0.0

    @property
    def sd(self) -> float:
        """Sample standard deviation of the means of the trials."""
        return float(np.sqrt(self.between))


def measure_trial_spread(values: FloatArray, groups: IntArray | None = None) -> TrialSpread:
    """Compare the trials of one system.

    Residuals of a query that was asked in T trials sum to 0 over the trials, so the sum of their
    variances is divided by T − 1. With groups the variance of a trial's mean is CR2's.

    Args:
        values: Shape (T, Q), T ≥ 2, finite.
        groups: Shape (Q,), integer codes; None = every query is its own group.

    Raises:
        ConfigError: One trial, or groups of another shape.
        DataError: No query, or a value that is not finite.
    """
    check_values(values, dimensions=2)
    trials, queries = values.shape
    if trials < 2:
        raise ConfigError(f"trials: a spread needs at least 2, not {trials}")
    codes, count = group_codes(groups, queries)
    means = np.array([exact_mean(row) for row in values])
    residuals = values - values[0]  # exactly 0 where trials are equal
    residuals -= residuals.mean(axis=0)
    residuals -= residuals.mean(axis=1, keepdims=True)
    sizes = np.bincount(codes).astype(np.int64)
    sums = np.stack(
        [np.bincount(codes, weights=row, minlength=count).astype(np.float64) for row in residuals]
    )
    within = float((cr2_standard_error(sums, sizes) ** 2).sum() / (trials - 1))
    return TrialSpread(
        trials=trials,
        means=tuple(means.tolist()),
        between=0.0 if (means == means[0]).all() else float(means.var(ddof=1)),
        within=within,
        within_freedom=(trials - 1) * bell_mccaffrey_freedom(sizes),
    )
