"""What a configuration costs: read back, replayed, its lists compared with the system's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fusion_bench.checks.unjudged import UnjudgedDifference, compare_unjudged
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.evaluation.assessment import Assessment, assess_system, mean_assessment
from fusion_bench.evaluation.contrasts import INFERENCE_KEYS, Contrast, compare_contrasts
from fusion_bench.evaluation.export_records import ReplayRecord
from fusion_bench.evaluation.prepared_dataset import EvaluationSet, prepare_dataset
from fusion_bench.evaluation.results import record_comparison
from fusion_bench.experiment.dialect import Dialect
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.ranking.final_lists import rank_queries

Precision = Literal["float32", "float64"]
#: Relative difference up to which two scores are equal: sums of a few terms lose the last digits.
TOLERANCES: Mapping[Precision, float] = {"float32": 1e-6, "float64": 1e-11}
#: Absolute difference up to which scores about 0 are equal.
NEAR_ZERO = 1e-12


@dataclass(frozen=True, eq=False)
class ListChanges:
    """How the lists of two systems differ, query by query.

    Attributes:
        is_changed: Shape (Q,): another order, ties apart.
        is_other_set: Shape (Q,): those of them with other documents.
        is_tied: Shape (Q,): another order among documents of equal scores only.
    """

    is_changed: BoolArray
    is_other_set: BoolArray
    is_tied: BoolArray


@dataclass(frozen=True, eq=False)
class ScoredLists:
    """The lists of one system.

    Attributes:
        top: Shape (Q, K): document at each rank; -1 = none.
        keys: Shape (N,): query and document of each candidate, rising.
        scores: Shape (N,): the scores that decide the order.
        tiers: Shape (N,): a candidate of a higher tier stands above, whatever its score.
        width: A key is query · width + document + 1.
    """

    top: IntArray
    keys: IntArray
    scores: FloatArray
    tiers: IntArray
    width: int

    def are_equal(self, first: IntArray, second: IntArray, tolerance: float) -> BoolArray:
        """Whether the scores of pairs of candidates are equal; not where one is no candidate."""
        last = len(self.keys) - 1
        i, j = (np.minimum(np.searchsorted(self.keys, keys), last) for keys in (first, second))
        are_known = (self.keys[i] == first) & (self.keys[j] == second)
        a, b = self.scores[i], self.scores[j]
        is_near = np.isclose(a, b, rtol=tolerance, atol=NEAR_ZERO)
        return np.asarray(are_known & is_near & (self.tiers[i] == self.tiers[j]))


def compare_lists(
    first: System,
    second: System,
    runs: AlignedRuns,
    spaces: Mapping[str, ScoreSpace],
    *,
    precision: Precision = "float32",
    top: int,
) -> ListChanges:
    """Compare the final lists of two systems on every query.

    Args:
        first: A system.
        second: Another one.
        runs: All sources of the dataset.
        spaces: Score space of each rerank list.
        precision: In which scores count as equal, by either system.
        top: So many documents of each list are compared.
    """
    before, after = (rank_lists(system, runs, spaces, top) for system in (first, second))
    return find_changes(before, after, precision)


def find_changes(before: ScoredLists, after: ScoredLists, precision: Precision) -> ListChanges:
    """The differences of two systems' lists over the same runs, cut at the same rank.

    Args:
        before: Of the first system.
        after: Of the second one.
        precision: In which scores count as equal, by either system.
    """
    queries, ranks = np.nonzero(before.top != after.top)
    here, there = (
        queries * before.width + lists.top[queries, ranks] + 1 for lists in (before, after)
    )
    tolerance = TOLERANCES[precision]
    is_tie = before.are_equal(here, there, tolerance) | after.are_equal(here, there, tolerance)
    is_different = np.zeros(len(before.top), dtype=bool)
    is_different[queries] = True
    is_changed = np.zeros(len(before.top), dtype=bool)
    is_changed[queries[~is_tie]] = True
    is_other_set = (np.sort(before.top, axis=1) != np.sort(after.top, axis=1)).any(axis=1)
    return ListChanges(is_changed, is_changed & is_other_set, is_different & ~is_changed)


def rank_lists(
    system: System, runs: AlignedRuns, spaces: Mapping[str, ScoreSpace], top: int
) -> ScoredLists:
    """The final lists of a system.

    Args:
        system: Any system.
        runs: All sources of the dataset.
        spaces: Score space of each rerank list.
        top: So many documents of each list are kept.
    """
    tops = np.full((len(runs.queries), top), -1, dtype=np.int64)
    parts: list[tuple[IntArray, FloatArray, IntArray]] = []
    width = len(runs.vocabulary) + 1
    for index, ranking in rank_queries(system, runs, spaces):
        queries = index[ranking.runs.query_index]
        is_top = (ranking.positions > 0) & (ranking.positions <= top)
        documents = np.asarray(ranking.runs.documents, dtype=np.int64)
        tops[queries[is_top], ranking.positions[is_top] - 1] = documents[is_top]
        tiers = np.asarray(ranking.tiers, dtype=np.int64)
        parts.append((queries * width + documents + 1, ranking.sort_scores, tiers))
    keys, scores, tiers = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(keys, kind="stable")
    return ScoredLists(tops, keys[order], scores[order], tiers[order], width)


#: So many documents at the top of each list are compared.
TOP = 10


def replay_system(
    experiment: Experiment,
    source: Source,
    dataset: Dataset,
    system: System,
    exported: System,
    dialect: type[Dialect],
) -> ReplayRecord:
    """Evaluate the system and what was written of it on the same queries.

    Args:
        experiment: Gives measures, split, level and seed.
        source: Where it was read from.
        dataset: With every list that the two systems use.
        system: The system.
        exported: What its configuration does; under another name.
        dialect: Of that configuration.

    Raises:
        FusionBenchError: The dataset does not fit them.
    """
    task = prepare_dataset(_select_pair(experiment, system, exported), source, dataset)
    fitted = [task.fit_system(item) for item in (system, exported)]
    assessments = {item.name: _assess_trials(task, item) for item in (system, exported)}
    names = tuple(measure.name for measure in task.measures)
    contrast = Contrast(
        names,
        task.experiment.baseline,
        {name: assessment.values for name, assessment in assessments.items()},
        task.runs.groups,
        *_describe_trials(task, assessments),
    )
    settings = task.experiment.model_dump(include=set(INFERENCE_KEYS))
    ((comparison,),) = compare_contrasts([contrast], settings)
    unjudged = _compare_unjudged(task, assessments[exported.name], assessments[system.name])
    changes = compare_lists(
        fitted[0], fitted[1], task.runs, dataset.spaces, precision=dialect.precision, top=TOP
    )
    return ReplayRecord(
        dataset=dataset.name,
        fingerprint=dataset.fingerprint,
        split=task.split,
        query_type=task.experiment.query_type,
        where=dict(task.experiment.where),
        queries=len(task.runs.queries),
        groups=len(set(task.runs.groups)),
        alpha=experiment.alpha,
        min_gain=experiment.min_gain,
        system_mean=float(assessments[system.name].values[0].mean()),
        export_mean=float(assessments[exported.name].values[0].mean()),
        comparison=record_comparison(comparison, unjudged, min_gain=experiment.min_gain),
        top=TOP,
        changed_queries=int(changes.is_changed.sum()),
        changed_sets=int(changes.is_other_set.sum()),
        tied_queries=int(changes.is_tied.sum()),
    )


def _assess_trials(task: EvaluationSet, system: System) -> Assessment:
    """What was measured of a system, over the trials of its lists."""
    return mean_assessment(
        [
            assess_system(
                trial.fit_system(system),
                trial.runs,
                trial.measures,
                spaces=trial.dataset.spaces,
                qrels=trial.dataset.qrels,
            )
            for trial in task.trials[: task.count_trials(system)]
        ]
    )


def _describe_trials(
    task: EvaluationSet, assessments: Mapping[str, Assessment]
) -> tuple[dict[str, FloatArray], dict[str, frozenset[str]]]:
    """The values of the trials of each system that has several, and the lists that differ."""
    values = {name: each.trials for name, each in assessments.items() if each.trials is not None}
    systems = task.experiment.systems
    return values, {name: task.trial_lists(systems[name]) for name in values}


def _compare_unjudged(
    task: EvaluationSet, exported: Assessment, system: Assessment
) -> UnjudgedDifference | None:
    """What unjudged documents could change; None with complete judgments."""
    if task.judgment_kind == "complete":
        return None
    return compare_unjudged(
        exported.unjudged,
        system.unjudged,
        groups=task.groups,
        alpha=task.experiment.alpha,
        kind=task.judgment_kind,
    )


def _select_pair(experiment: Experiment, system: System, exported: System) -> Experiment:
    """The experiment with these two systems and its primary measure only."""
    changed = {
        "systems": {system.name: system, exported.name: exported},
        "baseline": system.name,
        "measures": experiment.measures[:1],
    }
    return experiment.model_copy(update=changed)
