"""What unjudged documents could make of a system, over the trials of its lists."""

from __future__ import annotations

from collections.abc import Sequence

from fusion_bench.evaluation.completions.query_bounds import QueryBounds, find_bounds
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.ranking.list_positions import list_parts
from fusion_bench.evaluation.trials.mean_bounds import mean_bounds
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure


def find_trial_bounds(
    task: EvaluationSet, system: System, measures: Sequence[Measure]
) -> tuple[QueryBounds | None, ...]:
    """(M,): the means over trials; None with complete judgments.

    Args:
        task: The evaluated queries.
        system: Any system; trained parts are fitted on each trial by itself.
        measures: M measures.
    """
    if bool(task.runs.judged.all()):  # nothing needs to be ranked
        return (None,) * len(measures)
    trials = task.trials if task.count_trials(system) > 1 else (task,)
    return mean_bounds([_find_trial_bounds(trial, system, measures) for trial in trials])


def _find_trial_bounds(
    trial: EvaluationSet, system: System, measures: Sequence[Measure]
) -> tuple[QueryBounds | None, ...]:
    dataset = trial.dataset
    parts = list_parts(trial.fit_system(system), trial.runs, dataset.spaces)
    return find_bounds(measures, trial.runs, parts, dataset.qrels)
