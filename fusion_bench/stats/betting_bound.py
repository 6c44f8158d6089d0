"""A lower bound of a mean that holds whatever losses have not been seen yet.

The t bound trusts the spread of the sample. Where a change loses 1 on one query in 300, a sample of
200 queries often holds no such query, and the t bound then promises what is not so. This bound
assumes only that no difference is below −1.

A gambler bets a share λ on every query that its difference exceeds μ. The capital is the product
of 1 + λ(d − μ). If the true mean is at most μ, its expectation is at most 1 for every λ that never
makes it negative, so a capital of 1/α has a probability of at most α (Markov). The bound is the
smallest μ that leaves the mean capital over a fixed grid of λ below 1/α: Waudby-Smith & Ramdas
2024, "Estimating means of bounded random variables by betting", sections 4 and 5, with constant
bets, so that the order of the queries is irrelevant.
"""

from __future__ import annotations

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.stats.resampling import group_codes

#: Bets as shares of the greatest one, 1 / (μ − least possible value).
BETS = np.array([1.0, 0.9, 0.8, 0.5, 0.25, 0.1, 0.05, 0.025])
#: Stands for the logarithm of 0 in sums.
LOG_ZERO = -1e6
#: Least distance of μ from the least possible value, where the greatest bet would be infinite.
LEAST_GAP = 1e-9
#: Halvings of the interval that holds the bound.
HALVINGS = 60


def scale_groups(
    differences: FloatArray, groups: IntArray | None = None
) -> tuple[FloatArray, float]:
    """The values of independent units with the mean of the differences, and their least value.

    Without groups these are the differences, which are at least −1. With groups they are the sums
    of the groups ÷ the mean size n̄ of a group, which are at least −(largest size ÷ n̄).

    Args:
        differences: Shape (Q,).
        groups: Shape (Q,), codes; None = every query alone.

    Returns:
        Shape (G,), and r ≥ 1 such that no value is below −r.
    """
    codes, count = group_codes(groups, len(differences))
    sizes = np.bincount(codes, minlength=count)
    mean_size = len(differences) / count
    sums = np.bincount(codes, weights=differences, minlength=count)
    return sums / mean_size, float(sizes.max() / mean_size)


def log_returns(values: FloatArray, reach: float, mean: float) -> FloatArray:
    """Logarithm of 1 + λ(v − μ), shape (..., number of bets).

    Args:
        values: Any shape; at least −``reach``.
        reach: r.
        mean: μ.
    """
    ratios = np.maximum(np.asarray(values, dtype=np.float64) + reach, 0.0)
    ratios = ratios / max(mean + reach, LEAST_GAP) - 1
    returns = 1 + ratios[..., None] * BETS
    with np.errstate(divide="ignore"):
        return np.where(returns > 0, np.log(np.maximum(returns, 1e-300)), LOG_ZERO)


def log_capital(log_sums: FloatArray) -> FloatArray:
    """Logarithm of the mean capital; ``log_sums`` has one column a bet, in the last dimension."""
    return np.asarray(np.logaddexp.reduce(log_sums, axis=-1) - np.log(log_sums.shape[-1]))


def betting_bound(
    differences: FloatArray, groups: IntArray | None = None, *, alpha: float
) -> float:
    """The one-sided 1 − ``alpha`` lower bound of the mean; NaN where a difference is below −1.

    Args:
        differences: Shape (Q,), finite.
        groups: Shape (Q,), codes; None = every query alone.
        alpha: Probability that the true mean is below the bound, at most.
    """
    if differences.min() < -1:
        return np.nan
    values, reach = scale_groups(differences, groups)
    distinct, counts = np.unique(values, return_counts=True)  # most queries share a few values
    limit = -np.log(alpha)
    low, high = -reach, float(values.mean())  # the capital at the mean is at most 1 (Jensen)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        returns = counts[:, None] * log_returns(distinct, reach, middle)
        if log_capital(returns.sum(axis=0)) < limit:
            high = middle
        else:
            low = middle
    return max(high, -1.0)  # the mean itself cannot be lower
