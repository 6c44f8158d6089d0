"""Variance of a mean over grouped queries: CR2, and the degrees of freedom that go with it.

Working independence: the queries are taken as uncorrelated with equal variance σ² to correct the
small-sample bias of the cluster-robust variance, which is then exact under that model. The
variance itself allows any correlation inside a group (Bell & McCaffrey 2002, "Bias reduction in
standard errors for linear regression with multi-stage samples"; Pustejovsky & Tipton 2018,
equations 5, 6 and 11, for a regression on a constant).
"""

from __future__ import annotations

import math

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray


def cr2_standard_error(residual_sums: FloatArray, sizes: IntArray) -> FloatArray:
    """Standard error of the mean of each row: √(Σ_g R_g² / (1 − n_g/N)) / N.

    With one query per group that is sd/√N.

    Args:
        residual_sums: Shape (…, G): R_g, the sum of value − mean over the queries of group g.
        sizes: Shape (G,): n_g, at least 1 each; N is their sum.

    Returns:
        Shape (…): NaN with one group.
    """
    if len(sizes) < 2:
        return np.full(residual_sums.shape[:-1], math.nan)
    queries = sizes.sum()
    return np.asarray(np.sqrt((residual_sums**2 * _inverse_leverage(sizes)).sum(axis=-1)) / queries)


def bell_mccaffrey_freedom(sizes: IntArray) -> float:
    """Degrees of freedom of the CR2 variance, by Satterthwaite's approximation.

    2·E[V]²/Var[V] under working independence. With w_g = n_g² / (1 − n_g/N):
    N² / (Σ n_g² + ((Σ w_g)² − Σ w_g²) / N²). Groups of equal size give G − 1; the more unequal
    they are, the fewer, down to 1.

    Args:
        sizes: Shape (G,): n_g, at least 1 each.

    Returns:
        At least 1; NaN with one group.
    """
    if len(sizes) < 2:
        return math.nan
    if sizes.min() == sizes.max():
        return float(len(sizes) - 1)  # what the formula gives, but for rounding
    queries = float(sizes.sum())
    squares = sizes.astype(np.float64) ** 2
    weights = squares * _inverse_leverage(sizes)
    cross = weights.sum() ** 2 - (weights**2).sum()
    return float(queries**2 / (squares.sum() + cross / queries**2))


def _inverse_leverage(sizes: IntArray) -> FloatArray:
    """1 / (1 − n_g/N), shape (G,)."""
    queries = sizes.sum()
    return np.asarray(queries / (queries - sizes))
