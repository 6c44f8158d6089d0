"""Paired differences that a report does not hold ready, estimated as its own comparisons were."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusion_bench.data.grouped_rows import factorize
from fusion_bench.evaluation.report_records import Collection, Report
from fusion_bench.report.tables import level
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean

__all__ = ["paired"]


def paired(
    report: Report,
    collection: Collection,
    first: Sequence[float | None],
    second: Sequence[float | None],
) -> MeanEstimate | None:
    """Mean of first − second with its interval; None where no query has both.

    Args:
        report: Whose level, kind of interval and seed are used.
        collection: Whose groups are used.
        first: A value a query, or None.
        second: Likewise.
    """
    sides = [np.array(values, dtype=np.float64) for values in (first, second)]
    difference = sides[0] - sides[1]
    keep = np.isfinite(difference)
    if not keep.any():
        return None
    return estimate_mean(
        difference[keep],
        factorize(collection.groups)[0][keep],
        alpha=level(report),
        interval=report.settings.get("interval", "t"),
        seed=int(report.settings.get("seed", 0)),
    )
