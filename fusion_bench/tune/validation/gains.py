"""Gains of tuned − default: each with its interval, and the verdicts of one run as a family."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.report.tuning_records.trials import Gain
from fusion_bench.stats.comparison import paired_difference
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean
from fusion_bench.stats.randomization_tests import adjust_holm, randomization_p_values


@dataclass(frozen=True, eq=False)
class PairedValues:
    """Two systems on the same queries.

    Attributes:
        tuned: Shape (Q,).
        default: Shape (Q,).
        groups: Shape (Q,): the id of each query's group, its own where none is declared.
    """

    tuned: FloatArray
    default: FloatArray
    groups: Sequence[str]


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
        alpha: 1 − coverage of the t interval.
        seed: Of the randomization test.

    Returns:
        Its ``p`` is that of the paired randomization test by group, at least Student's; 1 where
        nothing differs. With one group, interval and ``sd`` are None.
    """
    difference = paired_difference(tuned, default)
    mean = estimate_mean(difference, groups, alpha=alpha)
    p = 1.0
    if difference.any():
        p = float(randomization_p_values(difference[None], groups, seed=seed)[0])
        p = max(p, student_p(mean))
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


def student_p(mean: MeanEstimate) -> float:
    """Two-sided p of Student's t test of a mean of 0; 1 where no spread is known."""
    from scipy.special import stdtr  # late, as it is slow

    if not mean.standard_error > 0:  # written so that NaN ends here too
        return 1.0
    return float(2 * stdtr(mean.freedom, -abs(mean.mean) / mean.standard_error))


def judge_family(rows: Sequence[PairedValues], *, alpha: float = 0.05, seed: int = 0) -> list[Gain]:
    """The gains that the verdicts of one run rest on, adjusted for their number.

    Args:
        rows: One a verdict.
        alpha: Two-sided level of the whole family.
        seed: Of the randomization test.
    """
    gains = [
        paired_gain(
            row.tuned,
            row.default,
            np.asarray(number_by_appearance(row.groups)[0]),
            alpha=alpha / len(rows),
            seed=seed,
        )
        for row in rows
    ]
    adjusted = adjust_holm(np.array([gain.p for gain in gains])).tolist()
    return [gain.model_copy(update={"p": p}) for gain, p in zip(gains, adjusted, strict=True)]


def needed_queries(sd: float | None, min_gain: float) -> int | None:
    """N = (2.8·sd/g)²: held-out queries that would show a gain of g with power .8.

    Returns:
        N, rounded up; None where the spread is not known, or g is 0.
    """
    if sd is None or not (sd > 0 and min_gain > 0):  # written so that NaN ends here too
        return None
    return math.ceil((2.8 * sd / min_gain) ** 2)
