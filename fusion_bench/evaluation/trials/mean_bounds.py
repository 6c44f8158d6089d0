"""What unjudged documents could make of a system of several trials."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.completions.query_bounds import QueryBounds
from fusion_bench.evaluation.trials.evaluate_trials import mean_of_trials

#: Of each measure; None = the judgments are complete.
MeasureBounds = Sequence[QueryBounds | None]


def mean_bounds(trials: Sequence[MeasureBounds]) -> tuple[QueryBounds | None, ...]:
    """The means over trials, measure by measure.

    No completion gives the mean over trials a value beyond them.

    Args:
        trials: (T,) of (M,).
    """
    return tuple(_mean_of_measure(bounds) for bounds in zip(*trials, strict=True))


def _mean_of_measure(trials: MeasureBounds) -> QueryBounds | None:
    """None where it is not known of one of them."""
    known = [each for each in trials if each is not None]
    if not known or len(known) < len(trials):
        return None
    judged = mean_of_trials(np.stack([each.judged for each in known]))
    low = _mean_ends([each.low for each in known])
    high = _mean_ends([each.high for each in known])
    return QueryBounds(judged, low, high, known[0].depth)


def _mean_ends(trials: Sequence[FloatArray | None]) -> FloatArray | None:
    known = [each for each in trials if each is not None]
    return mean_of_trials(np.stack(known)) if len(known) == len(trials) else None
