"""The gain of tuned parameters over the default, and the verdict that its interval allows."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.report.tuning_records.trials import Gain
from fusion_bench.stats.comparison import NOISE
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.stats.randomization_tests import randomization_p_values

TuningVerdict: TypeAlias = Literal["ship", "worse", "keep", "too few queries"]

#: A smaller gain than this is not worth a change, in the unit of the measure.
MIN_GAIN = 0.005
#: z_{.975} + z_{.8}: what a two-sided test at .05 needs to find a difference with power .8.
REACH = 2.8


def paired_gain(
    tuned: FloatArray,
    default: FloatArray,
    groups: IntArray | None = None,
    *,
    alpha: float = 0.05,
    seed: int = 0,
) -> Gain:
    """The mean paired difference tuned − default, with its interval by group.

    Args:
        tuned: Shape (Q,), the primary measure.
        default: Shape (Q,), the same queries.
        groups: Shape (Q,), integer codes; None = every query is its own group.
        alpha: 1 − coverage.
        seed: Of the randomization test.

    Returns:
        Its ``p`` is two-sided, by the paired randomization test by group; 1 where nothing differs.
        ``sd`` is the standard error · √Q, so that N queries of the same grouping have a standard
        error of sd/√N. With one group, interval and ``sd`` are None.
    """
    difference = tuned - default
    difference = np.where(np.abs(difference) <= NOISE, 0.0, difference)
    mean = estimate_mean(difference, groups, alpha=alpha)
    differs = bool(difference.any())
    p = float(randomization_p_values(difference[None], groups, seed=seed)[0]) if differs else 1.0
    wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
    return Gain(
        default=float(default.mean()),
        tuned=float(tuned.mean()),
        difference=mean.mean,
        low=mean.low,
        high=mean.high,
        p=p,
        sd=mean.standard_error * math.sqrt(mean.queries),
        wins=wins,
        ties=len(difference) - wins - losses,
        losses=losses,
        queries=mean.queries,
        groups=mean.groups,
    )


def decide_verdict(
    low: float | None, high: float | None, min_gain: float = MIN_GAIN
) -> TuningVerdict:
    """The verdict on the held-out interval [low, high] of tuned − default.

    Returns:
        ``ship``: the gain is above 0. ``worse``: it is below 0. ``keep``: it is below
        ``min_gain``. Otherwise, and without an interval (None or NaN), ``too few queries``.
    """
    if low is None or high is None:
        return "too few queries"
    if low > 0:
        return "ship"
    if high < 0:
        return "worse"
    return "keep" if high < min_gain else "too few queries"


def needed_queries(sd: float | None, min_gain: float = MIN_GAIN) -> int | None:
    """N = (2.8·sd/g)²: held-out queries that would show a gain of g with power .8.

    Returns:
        N, rounded up; None where the spread is not known, or g is 0.
    """
    if sd is None or not (sd > 0 and min_gain > 0):  # written so that NaN ends here too
        return None
    return math.ceil((REACH * sd / min_gain) ** 2)
