"""The values of a system on every trial of the lists that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.scores import evaluate_systems
from fusion_bench.evaluation.trials.evaluate_trials import mean_of_trials
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure


class StoredValues(NamedTuple):
    """The values that a baseline stores.

    Attributes:
        means: By measure, the Q values; of several trials the means.
        trials: By measure, the Q values of each trial; empty with one trial.
    """

    means: dict[str, tuple[float, ...]]
    trials: dict[str, tuple[tuple[float, ...], ...]]


class FittedTrial(NamedTuple):
    """One trial of a collection, and the system fitted on it.

    Attributes:
        task: The collection with the lists of this trial.
        system: Its trained fusions are fitted on this trial by itself.
    """

    task: EvaluationSet
    system: System


def fit_trials(task: EvaluationSet, system: System) -> tuple[FittedTrial, ...]:
    """A system on each of its trials; on one where each list that it reads has one file."""
    trials = task.trials[: task.count_trials(system)]
    return tuple(FittedTrial(trial, trial.fit_system(system)) for trial in trials)


def evaluate_trials(fitted: Sequence[FittedTrial], measures: Sequence[Measure]) -> StoredValues:
    """Evaluate a system on each of its trials, each by itself."""
    values = np.stack([_evaluate(trial, measures) for trial in fitted])
    names = [measure.name for measure in measures]
    means = zip(names, mean_of_trials(values).tolist(), strict=True)
    trials = {}
    if len(values) > 1:
        columns = np.swapaxes(values, 0, 1).tolist()
        trials = {name: tuple(map(tuple, c)) for name, c in zip(names, columns, strict=True)}
    return StoredValues({name: tuple(row) for name, row in means}, trials)


def _evaluate(trial: FittedTrial, measures: Sequence[Measure]) -> FloatArray:
    """(M, Q): the values of one trial."""
    task, dataset = trial.task, trial.task.dataset
    [scores] = evaluate_systems(
        [trial.system], task.runs, measures, spaces=dataset.spaces, qrels=dataset.qrels
    )
    return scores.values
