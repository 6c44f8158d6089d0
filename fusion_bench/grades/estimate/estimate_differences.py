"""Estimated differences of systems, from their values under two judges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.rows.grouped_rows import number_by_appearance
from fusion_bench.errors import ConfigError
from fusion_bench.grades.estimate.records import EstimatedDifference, JudgingRecord, MeanRecord
from fusion_bench.grades.system_values import JudgeValues
from fusion_bench.measures.bounds import is_bounded
from fusion_bench.stats.answers import MIN_CHANGED, Answer
from fusion_bench.stats.comparison import paired_difference
from fusion_bench.stats.intervals import MeanEstimate
from fusion_bench.stats.prediction_powered.plan_judging import JudgingPlan, plan_judging
from fusion_bench.stats.prediction_powered.powered_mean import PoweredMean, estimate_powered_mean
from fusion_bench.util.formatting import list_names, pluralize

#: Differences of people and machine from which a query shows how far the machine is off.
LEAST_DIFFERENCE: Final = 0.01


def estimate_differences(
    people: JudgeValues,
    machine: JudgeValues,
    baseline: str,
    *,
    alpha: float,
    min_gain: float,
) -> Iterator[EstimatedDifference]:
    """Every other system against the baseline.

    With K of them, the intervals of the primary measure have level α/K each (Bonferroni), so that
    they hold together whatever their correlations. Those of other measures hold each alone.

    Args:
        people: Values on the queries that people graded.
        machine: Values on all queries.
        baseline: The system to compare with.
        alpha: Level of the family.
        min_gain: A smaller difference is not worth a change.

    Raises:
        ConfigError: People graded queries that the machine did not, or too few.
    """
    sampled = find_positions(people, machine)
    groups = number_by_appearance(machine.groups)[0]
    candidates = [name for name in machine.values if name != baseline]
    for m, measure in enumerate(machine.measures):
        level = alpha if m else alpha / len(candidates)
        for name in candidates:
            of_people, of_machine = (
                paired_difference(judge.values[name][m], judge.values[baseline][m])
                for judge in (people, machine)
            )
            try:
                estimate = estimate_powered_mean(
                    of_people, of_machine, sampled, groups, alpha=level
                )
            except ConfigError as error:
                raise ConfigError(f"--people {people.judge}: {error}") from None
            if is_bounded(measure):
                estimate = estimate.clip(-1, 1)
            differing = count_differing(of_people, of_machine[sampled])
            family = None if m else len(candidates)
            yield _describe(
                estimate, name, measure, differing, family=family, alpha=level, min_gain=min_gain
            )


def count_differing(people: FloatArray, machine: FloatArray) -> int:
    """Queries that show how far the machine is off.

    A measure that looks deep, such as AP, differs a little on nearly every query. Such differences
    say nothing of rare and large ones, so that only those of ``LEAST_DIFFERENCE`` count.

    Args:
        people: Shape (n,): differences of two systems under people's grades.
        machine: Shape (n,): under the machine's, on the same queries.
    """
    return int((np.abs(people - machine) >= LEAST_DIFFERENCE).sum())


def find_positions(people: JudgeValues, machine: JudgeValues) -> IntArray:
    """The position of each query of people among the machine's.

    Raises:
        ConfigError: The machine did not grade one.
    """
    positions = {query: n for n, query in enumerate(machine.queries)}
    missing = [query for query in people.queries if query not in positions]
    if missing:
        raise ConfigError(
            f"{pluralize(len(missing), 'query')} of {people.judge!r} without grades of "
            f"{machine.judge!r} ({list_names(missing[:3])}): let the machine grade every query, "
            "also those that people judge"
        )
    return np.array([positions[query] for query in people.queries], dtype=np.int64)


def _describe(
    estimate: PoweredMean,
    candidate: str,
    measure: str,
    differing: int,
    *,
    family: int | None,
    alpha: float,
    min_gain: float,
) -> EstimatedDifference:
    few = differing < MIN_CHANGED
    answer = None if family is None else _decide(estimate, alpha, min_gain, few_changes=few)
    at_hand, total = estimate.people.queries, estimate.machine.queries
    sizes = (2 * at_hand, 4 * at_hand, total)
    return EstimatedDifference(
        measure=measure,
        candidate=candidate,
        difference=estimate.mean,
        low=estimate.low,
        high=estimate.high,
        standard_error=estimate.standard_error,
        freedom=estimate.freedom,
        p=estimate.p,
        p_adjusted=None if family is None else min(1.0, family * estimate.p),
        answer=answer,
        weight=estimate.weight,
        differing=differing,
        few_changes=few,
        people=_record_mean(estimate.people),
        machine=_record_mean(estimate.machine),
        judging=_record_plan(plan_judging(estimate, sizes, alpha=alpha), at_hand),
    )


def _record_plan(plan: JudgingPlan, at_hand: int) -> JudgingRecord:
    def count_added(size: int | None) -> int | None:
        return None if size is None else size - at_hand

    least, most = plan.halving_range
    return JudgingRecord(
        half_width=plan.half_width,
        halving=plan.halving,
        added=count_added(plan.halving),
        added_range=(count_added(least), count_added(most)),
        least_half_width=plan.least_half_width,
        expected=plan.expected,
        people_alone=plan.people_alone,
    )


def _decide(estimate: PoweredMean, alpha: float, min_gain: float, *, few_changes: bool) -> Answer:
    """The answer; see ``stats.answers``.

    Where people and machine differ on few queries, nothing is shown: the queries that people did
    not judge may hold rare, large errors of the machine.
    """
    has_all = estimate.people.queries == estimate.machine.queries
    if has_all and estimate.half_width == 0 and estimate.mean == 0:
        return "identical"
    if few_changes:
        return "not shown"
    is_within = -min_gain < estimate.low and estimate.high < min_gain
    if estimate.p <= alpha:
        if estimate.mean > 0:
            return "better, by less than min_gain" if is_within else "better"
        return "worse, by less than min_gain" if is_within else "worse"
    return "equivalent" if is_within else "not shown"


def _record_mean(estimate: MeanEstimate) -> MeanRecord:
    return MeanRecord(
        difference=estimate.mean, low=estimate.low, high=estimate.high, queries=estimate.queries
    )
