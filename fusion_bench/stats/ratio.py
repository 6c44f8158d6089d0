"""The interval of a ratio of two paired means: Fieller 1954, J. R. Stat. Soc. B 16, 175–185."""

from __future__ import annotations

import math

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.stats.intervals import estimate_mean, t_quantile


def ratio_interval(
    numerators: FloatArray, denominators: FloatArray, groups: IntArray, *, alpha: float = 0.05
) -> tuple[float, float, float] | None:
    """The ratio of two means over the same queries, and the ends of its interval.

    Args:
        numerators: Shape (Q,).
        denominators: Shape (Q,).
        groups: Shape (Q,), integer codes.
        alpha: 1 − coverage.

    Returns:
        None where the interval of the denominators' mean holds 0: then no ratio can be excluded.
    """
    top, bottom = (estimate_mean(each, groups) for each in (numerators, denominators))
    if math.isnan(bottom.freedom):
        return None
    both = estimate_mean(numerators + denominators, groups)
    first, second = top.standard_error**2, bottom.standard_error**2
    shared = (both.standard_error**2 - first - second) / 2
    square = t_quantile(bottom.freedom, 1 - alpha / 2) ** 2
    scale = bottom.mean**2 - square * second
    if scale <= 0:
        return None
    middle = (top.mean * bottom.mean - square * shared) / scale
    rest = middle**2 - (top.mean**2 - square * first) / scale
    width = math.sqrt(max(rest, 0.0))
    return top.mean / bottom.mean, middle - width, middle + width
