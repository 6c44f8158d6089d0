"""The values of systems over the trials of their lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, make_readonly
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.scores import Scores, evaluate_systems
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure

#: Which of a trial's aligned runs are evaluated.
SelectRuns = Callable[[EvaluationSet], AlignedRuns]


def evaluated_runs(task: EvaluationSet) -> AlignedRuns:
    """The runs over the evaluated queries."""
    return task.runs


def tuning_runs(task: EvaluationSet) -> AlignedRuns:
    """The runs over the queries that choices are made on."""
    return task.runs if task.tuning is None else task.tuning


def evaluate_trials(
    task: EvaluationSet,
    systems: Sequence[System],
    measures: Sequence[Measure] | None = None,
    *,
    select: SelectRuns = evaluated_runs,
) -> tuple[Scores, ...]:
    """Evaluate systems on every trial of the lists that they read.

    Args:
        task: A prepared dataset.
        systems: Any systems. Trained ones that are not fitted are fitted on each trial by itself.
        measures: M measures; by default those of ``task``.
        select: Which queries.

    Returns:
        One ``Scores`` a system, in the same order. Values are means over the trials that this
        system has; of a system that reads no list with several files they are those of its one
        trial.
    """
    chosen = task.measures if measures is None else measures
    results = [*_evaluate_trial(task, systems, chosen, select)]
    values = [[scores.values] for scores in results]
    for number, trial in enumerate(task.later_trials, 2):
        present = [n for n, system in enumerate(systems) if number <= task.count_trials(system)]
        if present:
            later = _evaluate_trial(trial, [systems[n] for n in present], chosen, select)
            for n, scores in zip(present, later, strict=True):
                values[n].append(scores.values)
    for n, parts in enumerate(values):
        if len(parts) > 1:
            trials = np.stack(parts)
            results[n] = replace(results[n], values=mean_of_trials(trials), trials=trials)
    return tuple(results)


def mean_of_trials(values: FloatArray) -> FloatArray:
    """The mean over the first axis, read-only; trials that agree keep their value to the last bit.

    Args:
        values: Shape (T, …); becomes read-only too.
    """
    mean: FloatArray = np.where((values == values[0]).all(axis=0), values[0], values.mean(axis=0))
    make_readonly(values)
    make_readonly(mean)
    return mean


def trials_of(trials: FloatArray | None, measure: int) -> FloatArray | None:
    """(T, Q): the values of one measure, of (T, M, Q); None = there is one trial."""
    return None if trials is None else trials[:, measure]


def _evaluate_trial(
    trial: EvaluationSet, systems: Sequence[System], measures: Sequence[Measure], select: SelectRuns
) -> tuple[Scores, ...]:
    dataset, fitted = trial.dataset, [trial.fit_system(system) for system in systems]
    return evaluate_systems(
        fitted, select(trial), measures, spaces=dataset.spaces, qrels=dataset.qrels
    )
