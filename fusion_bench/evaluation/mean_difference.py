"""The mean difference of two systems on one measure, with an interval of its own."""

from __future__ import annotations

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.measures.bounds import is_bounded
from fusion_bench.stats.comparison import paired_difference
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean


def estimate_difference(
    measure: str, values: FloatArray, others: FloatArray, groups: IntArray, *, alpha: float
) -> MeanEstimate:
    """The mean of ``values - others`` with its t interval, not adjusted for further comparisons.

    The interval of a measure in [0, 1] stays within ±1.

    Args:
        measure: Its name.
        values: Shape (Q,): one system.
        others: Shape (Q,): the other one.
        groups: Shape (Q,): codes of the groups.
        alpha: 1 − coverage.
    """
    estimate = estimate_mean(paired_difference(values, others), groups, alpha=alpha)
    return estimate.clip(-1.0, 1.0) if is_bounded(measure) else estimate
