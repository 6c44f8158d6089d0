"""Answers that rare large differences could turn around.

Sign-flip and t tests answer falsely where a system gains a little on most queries and loses much
on few: a small sample holds too few of these losses. Where the differences are skewed against the
answer, the answer also needs a bound that holds whatever was not seen (``stats.betting_bound``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.stats.answers import BETTER, WORSE, Answer
from fusion_bench.stats.betting_bound import betting_bound, scale_groups

#: Differences are skewed where their skewness lies beyond ± this …
MOST_SKEWNESS = 1.0
#: … and there are fewer queries, or groups, than this.
ENOUGH_QUERIES = 100


@dataclass(frozen=True)
class SkewedDifference:
    """What stands beside an answer whose differences are skewed.

    Attributes:
        skewness: Of the differences by query, or of the groups' sums ÷ the mean size of a group.
        median: Of the same.
        sign_p: Two-sided p of the sign test of the same; ties are left out.
        bound: With skewness against the answer, the one-sided betting bound: the true difference
            is at least so far from 0 in the answer's direction; None with skewness in it, or
            where a difference beyond ±1 allows no such bound.
        is_against: The skewness is against the answer.
        is_withheld: The bound does not carry the answer, which is therefore not shown.
    """

    skewness: float
    median: float
    sign_p: float
    bound: float | None
    is_against: bool
    is_withheld: bool


def check_skew(
    answer: Answer, differences: FloatArray, groups: IntArray, *, alpha: float = 0.05
) -> tuple[Answer, SkewedDifference | None]:
    """The answer that skewed differences leave, and what to say of them.

    Args:
        answer: That of the family.
        differences: Shape (Q,): candidate − baseline.
        groups: Shape (Q,), codes.
        alpha: 1 − confidence of the one-sided bound.

    Returns:
        The answer as it is, and None, where it is no ``better`` or ``worse``, or where the
        differences are many or not skewed.
    """
    if answer not in (*BETTER, *WORSE):
        return answer, None
    values, _ = scale_groups(differences, groups)
    skewness = compute_skewness(values)
    if len(values) >= ENOUGH_QUERIES or not abs(skewness) > MOST_SKEWNESS:
        return answer, None
    direction = 1 if answer in BETTER else -1
    is_against = direction * skewness < 0
    bound = betting_bound(direction * differences, groups, alpha=alpha) if is_against else math.nan
    is_withheld = is_against and not bound > 0  # written so that NaN ends here too
    skew = SkewedDifference(
        skewness,
        float(np.median(values)),
        sign_test_p(values),
        None if math.isnan(bound) else float(bound),
        is_against,
        is_withheld,
    )
    return "not shown" if is_withheld else answer, skew


def compute_skewness(values: FloatArray) -> float:
    """Third central moment ÷ the standard deviation cubed, of the sample; 0 without spread."""
    deviations = values - values.mean()
    spread = math.sqrt(float((deviations**2).mean()))
    return float(((deviations / spread) ** 3).mean()) if spread > 0 else 0.0


def sign_test_p(values: FloatArray) -> float:
    """Two-sided p of the exact sign test of (n,) values, those of 0 left out; 1 where all are 0."""
    positive, negative = int((values > 0).sum()), int((values < 0).sum())
    n = positive + negative
    tail = sum(math.comb(n, k) for k in range(min(positive, negative) + 1))
    return min(1.0, math.ldexp(tail, 1 - n))
