"""Exact intervals of a share that was counted."""

from __future__ import annotations

__all__ = ["clopper_pearson"]


def clopper_pearson(count: int, runs: int, confidence: float = 0.95) -> tuple[float, float]:
    """Interval of a probability that was met ``count`` times in ``runs`` independent trials.

    Clopper & Pearson 1934: the values that neither one-sided binomial test at
    (1 − confidence) / 2 rejects; it covers at least as often as it says.

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
