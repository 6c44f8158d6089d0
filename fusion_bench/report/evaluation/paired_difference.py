"""Paired differences that a report does not store, estimated as its own comparisons were."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.rows.grouped_rows import number_by_appearance
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.measures.bounds import is_bounded
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean
from fusion_bench.stats.trials.trial_variance import add_trial_variance, make_trial_terms


def paired_difference(
    report: Report,
    collection: Collection,
    first: Sequence[float | None],
    second: Sequence[float | None],
    *,
    mask: NDArray[np.bool_] | None = None,
    trials: Sequence[FloatArray | None] = (),
) -> MeanEstimate | None:
    """Mean of first - second on the primary measure; None where no query has both values.

    The interval of a measure in [0, 1] stays within ±1.

    Args:
        report: Whose level is used.
        collection: Whose groups are used.
        first: Shape (Q,), values by query.
        second: Likewise.
        mask: Shape (Q,), queries to use; None = all.
        trials: From ``paired_sides``, (T, Q) each: what varies over trials.
    """
    values = [np.array(side, dtype=np.float64) for side in (first, second)]
    difference = values[0] - values[1]
    is_used = np.isfinite(difference) if mask is None else np.isfinite(difference) & mask
    if not is_used.any():
        return None
    groups = number_by_appearance(collection.groups)[0][is_used]
    estimate = estimate_mean(difference[is_used], groups, alpha=report.alpha)
    sides = [None if side is None else side[:, is_used] for side in trials]
    terms = make_trial_terms(sides, groups)
    estimate = add_trial_variance(estimate, terms, alpha=report.alpha)
    return estimate.clip(-1.0, 1.0) if is_bounded(collection.primary_measure) else estimate
