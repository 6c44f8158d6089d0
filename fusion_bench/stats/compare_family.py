"""Compare systems with a baseline, those of several collections as one family."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.rows.grouped_rows import number_by_appearance
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.stats.answers import decide_answer, has_few_changes
from fusion_bench.stats.comparison import Comparison, paired_difference
from fusion_bench.stats.corrections import Correction, infer_family
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean, exact_mean, t_quantile
from fusion_bench.stats.max_t import FamilyRow, RowResult
from fusion_bench.stats.power.sample_size import detectable_difference, upper_tail
from fusion_bench.stats.skew_rule import check_skew
from fusion_bench.stats.trials.paired_trials import paired_sides
from fusion_bench.stats.trials.trial_variance import (
    TrialTerm,
    add_trial_variance,
    make_trial_terms,
)

#: A smaller difference is not worth a change, unless an experiment says otherwise.
MIN_GAIN = 0.005


@dataclass(frozen=True)
class ComparedValues:
    """The systems of one collection on one measure.

    Attributes:
        measure: Name of the measure.
        values: Per system, shape (Q,), finite, the same queries in the same order.
        baseline: The system to compare the others with.
        keys: The group id of each query; its own id where no groups are declared.
        is_bounded: Values lie in [0, 1], so that no interval goes beyond ±1.
        trials: Of each system with several trials the values that ``values`` are the means of,
            shape (T, Q).
        trial_lists: Of each of these systems the lists that differ between its trials.
    """

    measure: str
    values: Mapping[str, FloatArray]
    baseline: str
    keys: tuple[str, ...]
    is_bounded: bool = False
    trials: Mapping[str, FloatArray] = field(default_factory=dict)
    trial_lists: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def differences(self) -> dict[str, FloatArray]:
        """Per compared system, shape (Q,): candidate − baseline, float noise set to 0.

        Raises:
            UnknownNameError: No such baseline.
            ConfigError: Values that cannot be paired.
            DataError: Values that are not finite.
        """
        if self.baseline not in self.values:
            where = f"compare {self.measure}"
            raise UnknownNameError("baseline", self.baseline, self.values, where=where)
        _check_pairs(self.measure, self.values, self.baseline)
        base = self.values[self.baseline]
        return {
            name: paired_difference(array, base)
            for name, array in self.values.items()
            if name != self.baseline
        }

    def trial_terms(self, name: str) -> tuple[TrialTerm, ...]:
        """What the trials of a system and of the baseline add to the variance of its difference.

        Raises:
            ConfigError: Trials of other queries.
        """
        sides = self.trial_sides(name)
        if all(side is None for side in sides):
            return ()
        return make_trial_terms(sides, number_by_appearance(self.keys)[0])

    def trial_sides(self, name: str) -> tuple[FloatArray | None, ...]:
        """The values whose spread over trials enters the difference of a system, each (T, Q)."""
        first, second = (
            self.trial_lists.get(system, frozenset()) for system in (name, self.baseline)
        )
        return paired_sides(
            self.trials.get(name),
            self.trials.get(self.baseline),
            is_shared=not first.isdisjoint(second),
        )


def compare_family(
    tables: Sequence[ComparedValues],
    *,
    correction: Correction = "max_t",
    min_gain: float = MIN_GAIN,
    seed: int = 0,
    alpha: float = 0.05,
    resamples: int | None = None,
) -> tuple[tuple[Comparison, ...], ...]:
    """Compare systems with their baselines on the primary measure of one or several collections.

    The family is all compared systems of all collections. Systems with identical values count
    once.

    Args:
        tables: One a collection.
        correction: How p and intervals account for the family.
        min_gain: m: a smaller difference is not worth a change.
        seed: Seed of the flips.
        alpha: Level of p and intervals.
        resamples: Flips to start with, by default 10,000; there are more where a decision is near.

    Returns:
        For each collection one comparison per system but the baseline, in their order.
    """
    differences = [table.differences() for table in tables]
    rows = [
        FamilyRow(difference, table.keys, min_gain, table.trial_terms(name))
        for table, by_name in zip(tables, differences, strict=True)
        for name, difference in by_name.items()
    ]
    results, _ = infer_family(
        rows, correction=correction, seed=seed, alpha=alpha, resamples=resamples
    )
    rest = iter(results)
    return tuple(
        tuple(
            _describe(table, name, difference, next(rest), alpha=alpha, is_primary=True)
            for name, difference in by_name.items()
        )
        for table, by_name in zip(tables, differences, strict=True)
    )


def compare_alone(table: ComparedValues, *, alpha: float = 0.05) -> tuple[Comparison, ...]:
    """Compare systems on a measure that decides nothing: t intervals, not adjusted.

    Args:
        table: The systems.
        alpha: 1 − coverage of each interval.

    Returns:
        One comparison per system but the baseline, in their order.
    """
    comparisons = []
    for name, difference in table.differences().items():
        estimate = estimate_mean(difference, number_by_appearance(table.keys)[0], alpha=alpha)
        estimate = add_trial_variance(estimate, table.trial_terms(name), alpha=alpha)
        critical = math.nan
        if not math.isnan(estimate.freedom):
            critical = t_quantile(estimate.freedom, 1 - alpha / 2)
        row = RowResult(
            estimate, 1.0, False, estimate.low, estimate.high, critical, "clear", False, "clear"
        )
        comparisons.append(_describe(table, name, difference, row, alpha=alpha, is_primary=False))
    return tuple(comparisons)


def compare_with_baseline(
    measure: str,
    values: Mapping[str, FloatArray],
    baseline: str,
    *,
    groups: IntArray | Sequence[str] | None = None,
    primary: bool,
    is_bounded: bool = False,
    alpha: float = 0.05,
    correction: Correction = "max_t",
    min_gain: float = MIN_GAIN,
    seed: int = 0,
    resamples: int | None = None,
) -> tuple[Comparison, ...]:
    """Compare every other system with the baseline; see :func:`compare_family`.

    Args:
        measure: Name of the measure.
        values: Per system, shape (Q,), finite, the same queries in the same order.
        baseline: The system to compare with.
        groups: Shape (Q,): the group of each query; None = every query alone. The signs are drawn
            from the names of the groups, or from the position of a query.
        primary: Whether this is the primary measure; only it gets adjusted p-values and answers.
        is_bounded: Values lie in [0, 1].
        alpha: Level of p and intervals.
        correction: How they account for the number of systems.
        min_gain: A smaller difference is not worth a change.
        seed: Seed of the flips.
        resamples: Flips to start with.

    Returns:
        One comparison per system but the baseline, in the order of ``values``.
    """
    size = len(values[baseline]) if baseline in values else 0
    keys = tuple(map(str, range(size) if groups is None else groups))
    table = ComparedValues(measure, values, baseline, keys, is_bounded)
    if not primary:
        return compare_alone(table, alpha=alpha)
    (comparisons,) = compare_family(
        [table],
        correction=correction,
        min_gain=min_gain,
        seed=seed,
        alpha=alpha,
        resamples=resamples,
    )
    return comparisons


def _describe(
    table: ComparedValues,
    name: str,
    difference: FloatArray,
    row: RowResult,
    *,
    alpha: float,
    is_primary: bool,
) -> Comparison:
    """The record of one comparison."""
    estimate = row.estimate
    wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
    low, high, answer, skew = row.low, row.high, None, None
    if is_primary:
        codes = number_by_appearance(table.keys)[0]
        answer = decide_answer(row, changed=wins + losses, alpha=alpha)
        answer, skew = check_skew(answer, difference, codes, alpha=alpha)
    if table.is_bounded:
        low, high = max(low, -1.0), min(high, 1.0)
    return Comparison(
        measure=table.measure,
        baseline=table.baseline,
        candidate=name,
        baseline_mean=exact_mean(table.values[table.baseline]),
        candidate_mean=exact_mean(table.values[name]),
        difference=estimate.mean,
        low=low if math.isfinite(low) else math.nan,
        high=high if math.isfinite(high) else math.nan,
        standard_error=estimate.standard_error,
        freedom=estimate.freedom,
        critical_value=row.critical_value if math.isfinite(row.critical_value) else math.nan,
        p=_student_p(row),
        p_adjusted=row.p if is_primary else None,
        p_floor=is_primary and row.p_floor,
        answer=answer,
        skew=skew,
        few_changes=has_few_changes(wins + losses, estimate.groups),
        wins=wins,
        ties=estimate.queries - wins - losses,
        losses=losses,
        effect_size=estimate.mean / estimate.sd if estimate.sd > 0 else None,
        min_detectable_difference=_detectable(row),
        trial_share=_trial_share(table, name, estimate),
        queries=estimate.queries,
        groups=estimate.groups,
    )


def _trial_share(table: ComparedValues, name: str, estimate: MeanEstimate) -> float | None:
    """The part of the variance of a difference that trials add; None with one trial each."""
    if not table.trials.keys() & {name, table.baseline}:
        return None
    added = estimate.trial_variance
    return added / estimate.standard_error**2 if added > 0 else 0.0


def _detectable(row: RowResult) -> float | None:
    """The smallest true difference that this critical value finds with 80 % power."""
    if not math.isfinite(row.critical_value):
        return None
    return detectable_difference(
        row.estimate.standard_error, row.critical_value, freedom=row.estimate.freedom
    )


def _student_p(row: RowResult) -> float:
    """Two-sided p of Student's t; 1 where nothing differs or no spread is known."""
    mean, error = row.estimate.mean, row.estimate.standard_error
    if mean == 0 or math.isnan(error):
        return 1.0
    t = abs(mean) / error if error > 0 else math.inf
    return min(1.0, 2 * upper_tail(t, row.estimate.freedom))


def _check_pairs(measure: str, values: Mapping[str, FloatArray], baseline: str) -> None:
    """Refuse values that cannot be paired or are not finite."""
    shape = values[baseline].shape
    for name, array in values.items():
        where = f"compare {measure}: system {name!r}"
        if array.shape != shape or array.ndim != 1:
            raise ConfigError(
                f"{where}: values of shape {array.shape} cannot be paired with shape {shape} of "
                f"the baseline {baseline!r}; both need one value per query, for the same queries"
            )
        wrong = np.flatnonzero(~np.isfinite(array))
        if len(wrong):
            raise DataError(f"{where}, query index {wrong[0]}: {array[wrong[0]]} is not finite")
