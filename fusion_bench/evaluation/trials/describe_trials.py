"""The records of a report about trials: how steady a system is, and what would help."""

from __future__ import annotations

from fusion_bench.data.rows.grouped_rows import number_by_appearance
from fusion_bench.evaluation.assessment import Assessment
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.report_records.results.trials import NarrowingResult, TrialsResult
from fusion_bench.experiment.system import System
from fusion_bench.stats.compare_family import ComparedValues
from fusion_bench.stats.comparison import NOISE, paired_difference
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.stats.trials.planning import plan_narrowing
from fusion_bench.stats.trials.trial_spread import measure_trial_spread
from fusion_bench.stats.trials.variance_components import count_disagreements, split_variance


def describe_trials(
    task: EvaluationSet, system: System, assessment: Assessment
) -> TrialsResult | None:
    """How far the trials of a system lie apart on the primary measure; None = there is one.

    Args:
        task: What was evaluated.
        system: The system.
        assessment: What was measured of it.
    """
    if assessment.trials is None:
        return None
    values = assessment.trials[:, 0]
    spread = measure_trial_spread(values, task.groups)
    components = split_variance(values, spread)
    shares = (None, None, None) if components is None else components.shares
    pair, disagreeing = count_disagreements(values, noise=NOISE)
    return TrialsResult(
        lists=tuple(sorted(task.trial_lists(system))),
        means=spread.means,
        sd=spread.sd,
        query_share=shares[0],
        trial_share=shares[1],
        residual_share=shares[2],
        disagreeing_pair=pair,
        disagreeing=disagreeing,
    )


def describe_narrowing(
    table: ComparedValues, candidate: str, *, alpha: float
) -> NarrowingResult | None:
    """What one more trial, or more queries, would make of the interval of a difference.

    Args:
        table: The compared values.
        candidate: The system that is compared with the baseline.
        alpha: 1 − coverage.

    Returns:
        None where neither system has trials, or no spread over queries is known.
    """
    both = table.trial_sides(candidate)
    sides = [side for side in both if side is not None]
    if not sides:
        return None
    groups = number_by_appearance(table.keys)[0]
    difference = paired_difference(table.values[candidate], table.values[table.baseline])
    estimate = estimate_mean(difference, groups, alpha=alpha)
    spreads = [measure_trial_spread(side, groups) for side in sides]
    plan = plan_narrowing(estimate, spreads, alpha=alpha, is_fixed=len(sides) < len(both))
    if plan is None:
        return None
    return NarrowingResult(
        now=plan.now.half_width,
        one_trial=plan.one_trial.half_width,
        added_queries=int(plan.same_cost.added_queries),
        more_queries=plan.same_cost.half_width,
        all_trials=plan.all_trials.half_width,
        all_queries=plan.all_queries.half_width,
    )
