"""Which trial to take, and how much it matters: a sceptic's, one standard error, the plateau.

The best of many trials is partly the luckiest, and the more so the fewer the queries. A sceptic
sets a few imagined losses against each trial's gain over the default. The one-standard-error rule
starts from the other end: trials whose *paired* difference to the best is within one standard
error are as good for all that these queries can tell; among them the one nearest to the default
changes least.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.tune.validation.splits import BoolArray

__all__ = [
    "level_with_best",
    "one_standard_error",
    "plateau_share",
    "shrinkage_factor",
    "shrunken_gains",
]


#: Queries (or groups) that a sceptic imagines beside the real ones.
PRIOR_WEIGHT: Final = 10


def shrunken_gains(
    values: FloatArray, default: FloatArray, groups: IntArray | None = None
) -> FloatArray:
    """What a sceptic believes of each trial: its mean gain after ten imagined losses.

    The ten stand beside the G real queries (or groups), and each loses one standard deviation of
    the trial's own differences, so that a trial has to earn how far it goes from the default:
    (G·mean − 10·sd) / (G + 10), that is, the mean less 10/√G standard errors, scaled. That takes
    off 2.2 errors of 20 queries, 1 of 100 and a third of 1,000: with few queries the default,
    which is sure of its 0, stays; with many the greatest mean wins.

    Source: the posterior mean under a conjugate normal prior that is worth ten observations
    (Gelman et al., "Bayesian Data Analysis", section 2.5), its own mean below 0 because most
    changes do harm. The ten were decided on subsamples, see docs/tuning.md.

    Args:
        values: Shape (T, Q), the primary measure of each trial on the tuning queries.
        default: Shape (Q,), of the default.
        groups: Shape (Q,), integer codes; None = every query is its own group.

    Returns:
        Shape (T,), in the unit of the measure; 0 where nothing differs. Where nothing tells the
        spread (one group), what differs is believed of nothing: −∞.
    """
    found = np.zeros(len(values))
    for t, row in enumerate(values):
        if (gaps := row - default).any():
            one = estimate_mean(gaps, groups)
            loss = PRIOR_WEIGHT / math.sqrt(one.groups) * one.standard_error
            gain = shrinkage_factor(one.groups) * (one.mean - loss)
            found[t] = gain if math.isfinite(gain) else -math.inf
    return found


def shrinkage_factor(groups: int) -> float:
    """What a sceptic believes of a mean gain over so many queries (or groups) at most: a share."""
    return groups / (groups + PRIOR_WEIGHT)


def level_with_best(
    values: FloatArray, best: FloatArray, groups: IntArray | None = None
) -> BoolArray:
    """Which trials are within one standard error of the best, by paired differences.

    Source: Breiman, Friedman, Olshen and Stone 1984, section 3.4.3, with the standard error of
    the difference where they take that of the best: both saw the same queries.

    Args:
        values: Shape (T, Q), the primary measure of each trial on the tuning queries.
        best: Shape (Q,), of the best trial.
        groups: Shape (Q,), integer codes; None = every query is its own group.

    Returns:
        Shape (T,). One group tells no error: then only trials at least as good are level.
    """
    level = np.zeros(len(values), dtype=bool)
    for t, row in enumerate(values):
        found = estimate_mean(best - row, groups)
        error = found.standard_error
        level[t] = found.mean <= (error if np.isfinite(error) else 0.0)
    return level


def one_standard_error(
    values: FloatArray,
    points: FloatArray,
    default: FloatArray,
    groups: IntArray | None = None,
) -> int:
    """The trial nearest to the default among those level with the best.

    Args:
        values: Shape (T, Q), the primary measure on the tuning queries.
        points: Shape (T, D), each trial's place in the unit cube of the search space; NaN in a
            dimension that the trial has not (a conditional parameter).
        default: Shape (D,), the default's place.
        groups: Shape (Q,), integer codes.

    Returns:
        Its index; of equally near ones the better, then the first.
    """
    if len(values) == 0 or points.shape != (len(values), len(default)):
        raise ConfigError(
            f"choice: need (T, D) places for T trials, not {points.shape} for {len(values)}"
        )
    means = values.mean(axis=1)
    best = int(np.argmax(means))
    level = np.flatnonzero(level_with_best(values, values[best], groups))
    far = unit_distances(points[level], default)
    return int(level[np.lexsort((-means[level], far))[0]])


def unit_distances(points: FloatArray, default: FloatArray) -> FloatArray:
    """(T,): Euclidean distance in the unit cube; where only one has a dimension it counts 1."""
    gap = points - default
    one_sided = np.isnan(points) != np.isnan(default)
    gap = np.where(one_sided, 1.0, np.where(np.isnan(gap), 0.0, gap))
    return np.asarray(np.sqrt((gap**2).sum(axis=1)))


def plateau_share(values: FloatArray, best: FloatArray, groups: IntArray | None = None) -> float:
    """Share of a uniform sample of the space that is level with the best.

    Near 1: the numbers hardly matter, so the default is as good a choice as any. Near 0: a narrow
    peak, found by luck or by care; the held-out queries tell which.

    Args:
        values: Shape (T, Q): trials drawn uniformly from the space, on the tuning queries. Trials
            of a sampler would not do: it draws where it already found something.
        best: Shape (Q,), of the best trial.
        groups: Shape (Q,), integer codes.
    """
    if len(values) == 0:
        raise ConfigError("plateau: a share of no trials is not defined: sample at least one")
    return float(level_with_best(values, best, groups).mean())
