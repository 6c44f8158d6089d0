"""Paired differences that a report does not store, estimated as its own comparisons were."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.measures.bounds import is_bounded
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean


def paired_difference(
    report: Report,
    collection: Collection,
    first: Sequence[float | None],
    second: Sequence[float | None],
    *,
    mask: NDArray[np.bool_] | None = None,
) -> MeanEstimate | None:
    """Mean of first - second on the primary measure; None where no query has both values.

    The interval of a measure in [0, 1] stays within ±1.

    Args:
        report: Whose level is used.
        collection: Whose groups are used.
        first: Shape (Q,), values by query.
        second: Likewise.
        mask: Shape (Q,), queries to use; None = all.
    """
    values = [np.array(side, dtype=np.float64) for side in (first, second)]
    difference = values[0] - values[1]
    is_used = np.isfinite(difference) if mask is None else np.isfinite(difference) & mask
    if not is_used.any():
        return None
    estimate = estimate_mean(
        difference[is_used],
        number_by_appearance(collection.groups)[0][is_used],
        alpha=report.alpha,
    )
    return estimate.clip(-1.0, 1.0) if is_bounded(collection.primary_measure) else estimate
