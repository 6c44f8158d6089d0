"""Queries with which a check passes where there is no true difference."""

from __future__ import annotations

import math

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.evaluation.report_records.needed_queries import NeededQueries
from fusion_bench.stats.power.sample_size import critical_value
from fusion_bench.stats.power.spread import estimate_spread


def needed_to_pass(
    differences: FloatArray, groups: IntArray, max_drop: float, *, alpha: float
) -> NeededQueries | None:
    """Queries with which the t bound lies above −m with probability .8, without true difference.

    Args:
        differences: Shape (Q,), finite.
        groups: Shape (Q,), codes.
        max_drop: m.
        alpha: One-sided level of the bound.

    Returns:
        None where m is 0, or no spread is known.
    """
    spread = estimate_spread(differences, groups)
    if not (max_drop > 0 and spread.freedom and math.isfinite(spread.freedom)):
        return None
    critical = critical_value(alpha, spread.freedom)
    return NeededQueries.of_size(spread.needed_queries(max_drop, critical))
