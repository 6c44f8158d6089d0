"""Gains of tuned − default: each with its interval, and the verdicts of one run as a family."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.rows.grouped_rows import number_by_appearance
from fusion_bench.evaluation.report_records.needed_queries import NeededQueries
from fusion_bench.report.tuning_records.trials import Gain
from fusion_bench.stats.comparison import paired_difference
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean
from fusion_bench.stats.max_t import FamilyRow, RowResult, max_t
from fusion_bench.stats.power.spread import estimate_spread
from fusion_bench.stats.randomization_tests import randomization_p_values
from fusion_bench.stats.trials.trial_variance import (
    TrialTerm,
    add_trial_variance,
    make_trial_terms,
)


@dataclass(frozen=True, eq=False)
class PairedValues:
    """Two systems on the same queries.

    Attributes:
        tuned: Shape (Q,).
        default: Shape (Q,).
        groups: Shape (Q,): the id of each query's group, its own where none is declared.
        is_bounded: Values lie in [0, 1], so that no interval goes beyond ±1.
        trials: Shape (T, Q): the differences tuned − default on each trial of the lists; None =
            there is one.
    """

    tuned: FloatArray
    default: FloatArray
    groups: Sequence[str]
    is_bounded: bool = False
    trials: FloatArray | None = None

    @property
    def trial_terms(self) -> tuple[TrialTerm, ...]:
        """What the trials add to the variance of the gain."""
        return list_trial_terms(self.trials, number_by_appearance(self.groups)[0])


def list_trial_terms(
    differences: FloatArray | None, groups: IntArray | None
) -> tuple[TrialTerm, ...]:
    """What the trials of two systems that read the same lists add to the variance of a gain.

    Args:
        differences: Shape (T, Q): tuned − default on each trial; None = there is one.
        groups: Shape (Q,), integer codes; None = every query is its own group.
    """
    return () if differences is None else make_trial_terms([differences], groups)


def paired_gain(
    tuned: FloatArray,
    default: FloatArray,
    groups: IntArray | None = None,
    *,
    is_bounded: bool = False,
    alpha: float = 0.05,
    seed: int = 0,
    trials: FloatArray | None = None,
) -> Gain:
    """The mean paired difference tuned − default, with its interval by group.

    Args:
        tuned: Shape (Q,), the primary measure.
        default: Shape (Q,), the same queries.
        groups: Shape (Q,), integer codes; None = every query is its own group.
        is_bounded: Values lie in [0, 1].
        alpha: 1 − coverage of the t interval.
        seed: Of the randomization test.
        trials: Shape (T, Q): the differences on each trial of the lists; None = there is one.

    Returns:
        Its ``p`` is that of the paired randomization test by group, at least Student's; 1 where
        nothing differs. With one group, interval and ``sd`` are None.
    """
    difference = paired_difference(tuned, default)
    mean = estimate_mean(difference, groups, alpha=alpha)
    mean = add_trial_variance(mean, list_trial_terms(trials, groups), alpha=alpha)
    p = 1.0
    if difference.any():
        p = float(randomization_p_values(difference[None], groups, seed=seed)[0])
        p = max(p, student_p(mean))
    ends = clip_ends(mean.low, mean.high, is_bounded=is_bounded)
    return _make_gain(tuned, default, difference, mean, ends=ends, p=p)


def clip_ends(low: float, high: float, *, is_bounded: bool) -> tuple[float | None, float | None]:
    """The ends of an interval of a difference as records hold them.

    Args:
        low: Lower end; not finite = none is known.
        high: Upper end.
        is_bounded: Values lie in [0, 1], so that the ends stay within ±1.
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return None, None
    return (max(low, -1.0), min(high, 1.0)) if is_bounded else (low, high)


def student_p(mean: MeanEstimate) -> float:
    """Two-sided p of Student's t test of a mean of 0; 1 where no spread is known."""
    from scipy.special import stdtr  # late, as it is slow

    if not mean.standard_error > 0:  # written so that NaN ends here too
        return 1.0
    return float(2 * stdtr(mean.freedom, -abs(mean.mean) / mean.standard_error))


def judge_family(rows: Sequence[PairedValues], *, alpha: float = 0.05, seed: int = 0) -> list[Gain]:
    """The gains that the verdicts of one run rest on, adjusted for their number by max-T.

    Args:
        rows: One a verdict.
        alpha: Two-sided level of the whole family.
        seed: Of the sign flips.

    Returns:
        Their ``p`` and intervals are those of :func:`fusion_bench.stats.max_t.max_t`, so that p is
        at most ``alpha`` where the interval does not hold 0.
    """
    family = [
        FamilyRow(
            paired_difference(row.tuned, row.default),
            tuple(row.groups),
            trial_terms=row.trial_terms,
        )
        for row in rows
    ]
    tested = max_t(family, seed=seed, alpha=alpha)
    return [
        _describe_row(row, each, result)
        for row, each, result in zip(rows, family, tested.rows, strict=True)
    ]


def _describe_row(row: PairedValues, tested: FamilyRow, result: RowResult) -> Gain:
    # Of a few changed groups no interval is finite.
    ends = clip_ends(result.low, result.high, is_bounded=row.is_bounded)
    return _make_gain(
        row.tuned, row.default, tested.difference, result.estimate, ends=ends, p=result.p
    )


def _make_gain(
    tuned: FloatArray,
    default: FloatArray,
    difference: FloatArray,
    mean: MeanEstimate,
    *,
    ends: tuple[float | None, float | None],
    p: float,
) -> Gain:
    """The record of tuned − default; ``mean`` estimates the mean of ``difference``."""
    wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
    return Gain(
        default=float(default.mean()),
        tuned=float(tuned.mean()),
        difference=mean.mean,
        low=ends[0],
        high=ends[1],
        p=p,
        sd=mean.standard_error * math.sqrt(mean.queries),
        wins=wins,
        ties=len(difference) - wins - losses,
        losses=losses,
        queries=mean.queries,
        groups=mean.groups,
        design_effect=mean.design_effect,
    )


def estimate_needed(
    row: PairedValues, gain: Gain, min_gain: float, *, factor: float = 1.0
) -> NeededQueries | None:
    """Held-out queries that would show the least gain with power .8.

    Args:
        row: The held-out values.
        gain: From :func:`judge_family`; its critical value is planned for.
        min_gain: The gain to show.
        factor: Critical value of the next look ÷ that of this one.

    Returns:
        None where the spread is not known, or the least gain is 0.
    """
    difference = paired_difference(row.tuned, row.default)
    spread = estimate_spread(difference, number_by_appearance(row.groups)[0])
    error = spread.standard_error
    if not (min_gain > 0 and error is not None and error > 0):  # so that NaN ends here too
        return None
    critical = None
    if gain.low is not None and gain.high is not None:
        # The greater side: the other may be cut at ±1.
        width = max(gain.high - gain.difference, gain.difference - gain.low)
        critical = factor * width / error
    needed = spread.needed_queries(min_gain, critical)
    return NeededQueries.of_size(needed)
