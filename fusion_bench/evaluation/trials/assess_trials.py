"""What a report says of systems, over the trials of the lists that they read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fusion_bench.evaluation.assessment import Assessment, assess_system
from fusion_bench.evaluation.details.collector import DetailsCollector, observers
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.source_ties.find_source_ties import SourceTies, find_source_ties
from fusion_bench.evaluation.trials.evaluate_trials import mean_of_trials
from fusion_bench.evaluation.trials.mean_bounds import mean_bounds
from fusion_bench.evaluation.trials.mean_unjudged import mean_unjudged
from fusion_bench.experiment.system import System
from fusion_bench.measures import TieSensitivity

if TYPE_CHECKING:
    from fusion_bench.evaluation.run_experiment import Progress


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
