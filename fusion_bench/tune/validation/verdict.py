"""Whether tuned numbers are worth shipping: one pure function of held-out differences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError
from fusion_bench.stats.comparison import NOISE
from fusion_bench.stats.intervals import IntervalMethod, MeanEstimate, estimate_mean
from fusion_bench.stats.randomization_tests import randomization_p_values

__all__ = [
    "MIN_GAIN",
    "PairedGain",
    "TuningVerdict",
    "decide_verdict",
    "needed_queries",
    "paired_gain",
]

TuningVerdict: TypeAlias = Literal["ship", "worse", "keep", "too few queries"]

#: A smaller gain than this is not worth a change, in the unit of the measure.
MIN_GAIN = 0.005
#: z_{.975} + z_{.8}: what a two-sided test at .05 needs to find a difference with power .8.
REACH = 2.8


@dataclass(frozen=True)
class PairedGain:
    """Tuned − default on some queries.

    Attributes:
        mean: Mean difference.
        low: Lower end of its interval, by group; NaN with one group.
        high: Upper end.
        p: Two-sided, paired randomisation test by group; 1 where nothing differs.
        sd: Standard deviation that the width of the interval goes by: the standard error · √Q,
            which is the sample's own where no groups are declared; NaN with one group.
        wins: Queries on which tuned is better by more than float noise.
        ties: Queries on which neither is.
        losses: Queries on which the default is better.
        queries: Q.
        groups: G.
    """

    mean: float
    low: float
    high: float
    p: float
    sd: float
    wins: int
    ties: int
    losses: int
    queries: int
    groups: int


def paired_gain(
    tuned: FloatArray,
    default: FloatArray,
    groups: IntArray | None = None,
    *,
    alpha: float = 0.05,
    interval: IntervalMethod = "t",
    seed: int = 0,
) -> PairedGain:
    """The paired difference with its interval and p.

    Args:
        tuned: Shape (Q,), the primary measure.
        default: Shape (Q,), the same queries.
        groups: Shape (Q,), integer codes; None = every query is its own group.
        alpha: 1 − coverage.
        interval: ``t`` or ``bootstrap``.
        seed: Of the randomisation test and the bootstrap.
    """
    difference = tuned - default
    difference = np.where(np.abs(difference) <= NOISE, 0.0, difference)
    found = estimate_mean(difference, groups, alpha=alpha, interval=interval, seed=seed)
    differs = bool(difference.any())
    p = float(randomization_p_values(difference[None], groups, seed=seed)[0]) if differs else 1.0
    wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
    return PairedGain(
        mean=found.mean,
        low=found.low,
        high=found.high,
        p=p,
        sd=_sd(found),
        wins=wins,
        ties=len(difference) - wins - losses,
        losses=losses,
        queries=found.queries,
        groups=found.groups,
    )


def _sd(found: MeanEstimate) -> float:
    """What N queries of the same grouping would have: standard error = sd/√N."""
    return found.standard_error * math.sqrt(found.queries)


def decide_verdict(low: float, high: float, min_gain: float = MIN_GAIN) -> TuningVerdict:
    """What the held-out interval [low, high] of tuned − default allows to be said.

    Returns:
        ``ship``: the gain is above 0. ``worse``: it is below 0. ``keep``: it is below
        ``min_gain``, so there is nothing to be had. Otherwise ``too few queries``, which is also
        what no interval (NaN) ends in.
    """
    if min_gain < 0 or not math.isfinite(min_gain):
        raise ConfigError(f"min_gain: must be 0 or more, not {min_gain}")
    if low > 0:
        return "ship"
    if high < 0:
        return "worse"
    return "keep" if high < min_gain else "too few queries"


def needed_queries(sd: float, min_gain: float = MIN_GAIN) -> int | None:
    """N = (2.8·sd/g)²: held-out queries that would show a gain of g with power .8.

    Returns:
        N, rounded up; None where nothing tells the spread, or g is 0.
    """
    if not (sd > 0 and min_gain > 0):  # written so that NaN ends here too
        return None
    return math.ceil((REACH * sd / min_gain) ** 2)
