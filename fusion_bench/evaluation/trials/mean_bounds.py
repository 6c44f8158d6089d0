"""What unjudged documents could make of a system of several trials."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusion_bench.evaluation.completions.query_bounds import QueryBounds
from fusion_bench.evaluation.trials.evaluate_trials import mean_of_trials


def mean_bounds(trials: Sequence[QueryBounds | None]) -> QueryBounds | None:
    """The means over trials; None where one of them is not known.

    No completion gives the mean over trials a value beyond them.
    """
    known = [each for each in trials if each is not None]
    if not known or len(known) < len(trials):
        return None
    judged, low, high = (
        mean_of_trials(np.stack([getattr(each, name) for each in known]))
        for name in ("judged", "low", "high")
    )
    return QueryBounds(judged, low, high, known[0].depth)
