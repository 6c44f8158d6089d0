"""What unjudged documents could change in means over trials."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusion_bench.evaluation.trials.evaluate_trials import mean_of_trials
from fusion_bench.evaluation.unjudged.unjudged_values import UnjudgedValues


def mean_unjudged(trials: Sequence[UnjudgedValues]) -> UnjudgedValues:
    """The means over trials; a measure without a formula for filled values has none in any."""
    filled = [[*values] for values in zip(*(each.filled for each in trials), strict=True)]
    known = [[each for each in values if each is not None] for values in filled]
    return UnjudgedValues(
        share=mean_of_trials(np.stack([each.share for each in trials])),
        judged_only=mean_of_trials(np.stack([each.judged_only for each in trials])),
        filled=tuple(
            mean_of_trials(np.stack(values)) if len(values) == len(trials) else None
            for values in known
        ),
    )
