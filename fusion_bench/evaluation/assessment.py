"""Everything measured of one system, trial by trial: values, ties, unjudged documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fusion_bench import measures as measure
from fusion_bench.checks.source_ties import SourceTies, find_source_ties
from fusion_bench.checks.unjudged import UnjudgedCollector, UnjudgedValues
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray, positions
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.evaluation.details.collector import DetailsCollector, observers
from fusion_bench.evaluation.details.relevant_ranks import Observer
from fusion_bench.evaluation.prepared_dataset import EvaluationSet, mean_of_trials
from fusion_bench.evaluation.report_records import NarrowingResult, TrialsResult
from fusion_bench.evaluation.unjudged_bounds import QueryBounds, find_bounds, mean_bounds
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure, TieSensitivity
from fusion_bench.ranking.final_lists import cut_positions
from fusion_bench.ranking.fitting import fit_system
from fusion_bench.ranking.plain_systems import plain_systems
from fusion_bench.ranking.system_ranking import ranked_lists
from fusion_bench.stats.comparison import NOISE, paired_difference
from fusion_bench.stats.comparison_family import ComparedValues
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.stats.trial_variance import (
    count_disagreements,
    measure_trial_spread,
    plan_narrowing,
    split_variance,
)

if TYPE_CHECKING:
    from fusion_bench.evaluation.run_experiment import Progress


@dataclass(frozen=True, eq=False)
class Assessment:
    """One system on Q queries and M measures.

    Attributes:
        values: Shape (M, Q).
        ties: What the order of ties could make of the values.
        unjudged: What unjudged documents could change in the primary measure, its only one.
        candidates: Documents returned over all queries.
        bounds: (M,): what completions of the judgments make of each measure; None = complete
            judgments.
        trials: Shape (T, M, Q): the values of each trial, where everything else is the mean over
            T trials; None = there is one.
    """

    values: FloatArray
    ties: TieSensitivity
    unjudged: UnjudgedValues
    candidates: int
    bounds: tuple[QueryBounds | None, ...]
    trials: FloatArray | None = None

    @property
    def first_values(self) -> FloatArray:
        """(Q,): the primary measure on the first trial."""
        values: FloatArray = self.values[0] if self.trials is None else self.trials[0, 0]
        return values


def assess_system(
    system: System,
    runs: AlignedRuns,
    measures: Sequence[Measure],
    *,
    spaces: Mapping[str, ScoreSpace],
    qrels: Qrels,
    observe: Observer | None = None,
) -> Assessment:
    """Measure everything that a report says of one system.

    Args:
        system: The system.
        runs: Aligned runs.
        measures: M measures, the primary one first.
        spaces: Score space of each rerank list.
        qrels: The judgements.
        observe: Called with the lists of each part of the queries.
    """
    size = (len(measures), len(runs.queries))
    values, extremes = np.zeros(size), np.zeros((3, *size))
    unjudged = UnjudgedCollector(runs, measures[:1], qrels)
    affected = np.zeros(size[0], dtype=np.int64)
    candidates, parts = 0, []
    for index, plain, part in plain_systems(fit_system(system, runs, spaces), runs, spaces):
        view, (placed, tie_starts) = ranked_lists(plain, part, spaces)
        positions = cut_positions(placed, plain.top_k)
        values[:, index] = measure.compute_measures(measures, view, positions, qrels=qrels)
        unjudged.add_part(index, view, placed, positions)
        ties = measure.tie_sensitivity(
            measures, view, placed, tie_starts, limit=plain.top_k, qrels=qrels
        )
        extremes[:, :, index] = ties.minimum, ties.maximum, ties.expected
        affected += ties.affected
        candidates += int((positions > 0).sum())
        parts.append((index, view, positions))
        if observe is not None:
            observe(index, view, positions)
    ties = TieSensitivity(affected, *extremes)
    bounds = find_bounds(measures, runs, parts, qrels)
    return Assessment(values, ties, unjudged.make_values(), candidates, bounds)


def perfect_order_values(
    runs: AlignedRuns, measures: Sequence[Measure], *, qrels: Qrels
) -> FloatArray:
    """(M, Q): values of the candidate pool in the order of its grades: no fusion can do better."""
    # Judged documents stand above unjudged ones of the same gain, for measures that ask.
    placed = positions(
        np.maximum(runs.grades, 0).astype(np.float64),
        runs.offsets,
        tie_order=np.where(runs.judged, 0, 1),
    )
    return measure.compute_measures(measures, runs, placed, qrels=qrels)


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


class AssessedSystem(NamedTuple):
    """One system: what was measured of it, and what ties inside its lists do to it."""

    assessment: Assessment
    source_ties: SourceTies


def assess_trials(
    task: EvaluationSet, progress: Progress, details: DetailsCollector | None
) -> dict[str, AssessedSystem]:
    """Assess the systems of an experiment; those of several trials on each, as means.

    Trained fusions are fitted on each trial by itself.

    Args:
        task: The experiment on one dataset.
        progress: Called as the work goes on.
        details: Collects what stands behind the values of the first trial; None = nobody asks.
    """
    systems = task.experiment.systems
    first = _assess_trial(task, systems, progress, details)
    trials = {name: [each] for name, each in first.items()}
    for number, trial in enumerate(task.later_trials, 2):
        present = {n: each for n, each in systems.items() if number <= task.count_trials(each)}
        if present:
            for name, each in _assess_trial(trial, present, progress, None).items():
                trials[name].append(each)
    return {
        name: parts[0] if len(parts) == 1 else _mean_over_trials(parts)
        for name, parts in trials.items()
    }


def _assess_trial(
    task: EvaluationSet,
    systems: Mapping[str, System],
    progress: Progress,
    details: DetailsCollector | None,
) -> dict[str, AssessedSystem]:
    dataset = task.dataset
    fitted, assessments = {}, {}
    observe = observers(details, task)
    for done, (name, system) in enumerate(systems.items()):
        progress(f"{dataset.name}: {name}", done, len(systems))
        fitted[name] = task.fit_system(system)
        assessments[name] = assess_system(
            fitted[name],
            task.runs,
            task.measures,
            spaces=dataset.spaces,
            qrels=dataset.qrels,
            observe=observe(fitted[name]),
        )
    progress(f"{dataset.name}: ties", len(systems), len(systems))
    source_ties = find_source_ties(
        fitted,
        {name: assessment.values for name, assessment in assessments.items()},
        task.runs,
        task.measures,
        spaces=dataset.spaces,
        qrels=dataset.qrels,
        ranked_by_column=dataset.ranked_by_column,
        seed=task.experiment.seed,
        samples=task.samples_ties,
    )
    return {name: AssessedSystem(assessments[name], source_ties[name]) for name in systems}


def _mean_over_trials(trials: Sequence[AssessedSystem]) -> AssessedSystem:
    """The means of everything; the trials' own values are kept beside them."""
    assessment = mean_assessment([trial.assessment for trial in trials])
    inside = [trial.source_ties for trial in trials]
    sampled = [each.settlements for each in inside if each.settlements is not None]
    source_ties = SourceTies(
        ties=_mean_ties([each.ties for each in inside]),
        settlements=max(sampled) if sampled else None,
        unknown=frozenset().union(*(each.unknown for each in inside)),
    )
    return AssessedSystem(assessment, source_ties)


def mean_assessment(trials: Sequence[Assessment]) -> Assessment:
    """The means over trials, with the values of each; of one trial itself."""
    if len(trials) == 1:
        return trials[0]
    values = np.stack([part.values for part in trials])
    return Assessment(
        values=mean_of_trials(values),
        ties=_mean_ties([part.ties for part in trials]),
        unjudged=mean_unjudged([part.unjudged for part in trials]),
        bounds=mean_bounds([part.bounds for part in trials]),
        candidates=round(sum(part.candidates for part in trials) / len(trials)),
        trials=values,
    )


def _mean_ties(trials: Sequence[TieSensitivity]) -> TieSensitivity:
    """Bounds of the mean over trials; a query is affected where it is in any trial."""
    stacks = [
        np.stack([getattr(ties, name) for ties in trials])
        for name in ("minimum", "maximum", "expected")
    ]
    minimum, maximum, _ = stacks
    differs = (minimum != maximum) & ~(np.isnan(minimum) & np.isnan(maximum))
    affected = differs.any(axis=0).sum(axis=1)
    return TieSensitivity(affected, *(mean_of_trials(stack) for stack in stacks))
