"""The values that a baseline stores: of every trial, of unjudged documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from pydantic import PrivateAttr

from fusion_bench.checks.completion_bounds import (
    QueryBounds,
    find_fitted_bounds,
)
from fusion_bench.checks.records import (
    CompletionBounds,
)
from fusion_bench.checks.unjudged import (
    UnjudgedDifference,
    UnjudgedEvidence,
    compare_unjudged,
    mean_evidence,
    measure_unjudged,
)
from fusion_bench.config.json_records import StoredRecord
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.evaluation.prepared_dataset import (
    EvaluationSet,
)
from fusion_bench.experiment.system import System
from fusion_bench.gate.verdict import ALARMS, ALPHA, CheckStatus
from fusion_bench.measures import Measure
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.stats.comparison import name_kind
from fusion_bench.stats.trial_variance import (
    mean_of_trials,
)


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


class StoredUnjudged(StoredRecord):
    """One system on one collection whose judgments are not complete.

    Attributes:
        share: The Q shares of unjudged documents in the top 10.
        judged_only: By measure, the Q values over judged documents only; empty = no document is
            judged not relevant, so that they tell nothing.
        filled: By measure that has a formula for it, the Q values with unjudged documents filled;
            null = no list has a judged document. Empty likewise.
    """

    share: tuple[float, ...]
    judged_only: dict[str, tuple[float, ...]]
    filled: dict[str, tuple[float | None, ...]]
    _bounds: dict[str, QueryBounds] = PrivateAttr(default_factory=dict)

    def select_bounds(self, measure: str, keep: BoolArray) -> CompletionBounds | None:
        """What unjudged documents could make of the mean over these queries.

        Args:
            measure: Its name.
            keep: Shape (Q,).

        Returns:
            None of a record that was read from a file, and where it is not known.
        """
        bounds = self._bounds.get(measure)
        return None if bounds is None else bounds.select_queries(keep).record

    @property
    def is_sparse(self) -> bool:
        """Whether no document is judged not relevant."""
        return not self.judged_only

    def read_evidence(self, measure: str) -> UnjudgedEvidence:
        """Of one measure, in the stored order of the queries."""
        share, filled = np.array(self.share), self.filled.get(measure)
        return UnjudgedEvidence(
            share,
            np.zeros(len(share)) if self.is_sparse else np.array(self.judged_only[measure]),
            None if filled is None else np.array(filled, dtype=np.float64),
        )


@dataclass(frozen=True, eq=False)
class PairedUnjudged:
    """A baseline and a candidate on the same queries of one collection.

    Attributes:
        baseline: As stored.
        candidate: As it would be stored.
        order: Shape (Q,): where each query of the candidate stands in the baseline.
        groups: Shape (Q,): codes of the groups.
        declared: How the judgments came about.
    """

    baseline: StoredUnjudged
    candidate: StoredUnjudged
    order: IntArray
    groups: IntArray
    declared: str | None

    def compare(self, measure: str, keep: BoolArray) -> UnjudgedDifference:
        """The difference in a measure over the queries where ``keep``, shape (Q,), is true."""
        rows = np.flatnonzero(keep)
        return compare_unjudged(
            self.candidate.read_evidence(measure).select_queries(rows),
            self.baseline.read_evidence(measure).select_queries(self.order[rows]),
            groups=self.groups[rows],
            alpha=ALPHA,
            kind=name_kind(self.declared, has_irrelevant=not self.candidate.is_sparse),
        )


def store_unjudged(task: EvaluationSet, fitted: Sequence[FittedTrial]) -> StoredUnjudged | None:
    """What a baseline stores of a system, as means over trials; None with complete judgments.

    Args:
        task: The collection.
        fitted: The system on each of its trials.
    """
    if task.judgment_kind == "complete":
        return None
    dataset, names = task.dataset, [measure.name for measure in task.measures]
    trials = [
        measure_unjudged(
            system, trial.runs, task.measures, spaces=trial.dataset.spaces, qrels=dataset.qrels
        )
        for trial, system in fitted
    ]
    values = dict(zip(names, map(mean_evidence, zip(*trials, strict=True)), strict=True))
    share = tuple(values[names[0]].share.tolist())
    bounds = _find_bounds(task, fitted)
    if not task.has_irrelevant_judgments:
        stored = StoredUnjudged(share=share, judged_only={}, filled={})
        stored._bounds = bounds
        return stored
    filled = {n: _nan_to_none(e.filled) for n, e in values.items() if e.filled is not None}
    judged_only = {name: tuple(each.judged_only.tolist()) for name, each in values.items()}
    stored = StoredUnjudged(share=share, judged_only=judged_only, filled=filled)
    stored._bounds = bounds
    return stored


def _find_bounds(task: EvaluationSet, fitted: Sequence[FittedTrial]) -> dict[str, QueryBounds]:
    """By measure; empty with complete judgments."""
    lists = ((system, trial.runs) for trial, system in fitted)
    dataset = task.dataset
    means = find_fitted_bounds(lists, task.measures, spaces=dataset.spaces, qrels=dataset.qrels)
    names = [measure.name for measure in task.measures]
    return {name: each for name, each in zip(names, means, strict=True) if each is not None}


def _nan_to_none(values: FloatArray) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(value) else value for value in values.tolist())


def decides_status(
    status: CheckStatus, unjudged: UnjudgedDifference | None, max_drop: float
) -> bool:
    """Whether unjudged documents decide a check that would end with this status."""
    if unjudged is None:
        return False
    if status in {"pass", "pass on these queries"}:
        return unjudged.decides(1, max_drop, is_pass=True)
    return status in ALARMS and unjudged.decides(-1, max_drop)
