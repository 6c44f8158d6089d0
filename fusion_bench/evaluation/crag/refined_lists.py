"""What a refined query is worth: the lists that it returned, for the queries that need a search."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.evaluation.crag.evidence import (
    ListEvidence,
    list_evidence,
    list_runs,
    system_evidence,
)
from fusion_bench.evaluation.crag.verdicts import CragThresholds, classify_scores, name_verdicts
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.report_records.results.crag import RefinedResult
from fusion_bench.evaluation.scores import evaluate_systems
from fusion_bench.experiment.crag_settings import CragSettings
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.measures.bounds import is_bounded
from fusion_bench.stats.intervals import estimate_mean

#: The evidence on the lists of refined queries, and the primary measure of each.
Replay = Callable[[Dataset, BoolArray], tuple[ListEvidence | None, FloatArray]]


def replay_system(
    task: EvaluationSet,
    system: System,
    crag: CragSettings,
    evidence: ListEvidence,
    values: FloatArray,
) -> RefinedResult | None:
    """A system over the lists of the refined queries, where its verdict asks for one.

    Args:
        task: With the refined lists.
        system: Fitted, where it has something to fit.
        crag: Thresholds, and the verdicts that ask for a refined query.
        evidence: On its lists of the original queries, Q queries.
        values: Shape (Q,): the primary measure of these.

    Returns:
        What changed; None where no query has refined lists and such a verdict.

    Raises:
        ConfigError: A list that the system needs has nothing for a refined query.
    """

    def rank_again(refined: Dataset, keep: BoolArray) -> tuple[ListEvidence | None, FloatArray]:
        aligned = refined.aligned(task.runs.sources, ties=task.experiment.ties)
        asked = {task.runs.queries[q] for q in np.flatnonzero(keep)}
        runs = aligned.subset(np.array([query in asked for query in aligned.queries]))
        [scores] = evaluate_systems(
            [system], runs, task.measures[:1], spaces=refined.spaces, qrels=refined.qrels
        )
        return system_evidence(system, runs, refined.spaces, crag), scores.values[0]

    lists = {*system.base_runs, *system.reranker_names}
    return _replay(task, crag, evidence, values, (lists, rank_again))


def replay_list(
    task: EvaluationSet, name: str, crag: CragSettings, evidence: ListEvidence, values: FloatArray
) -> RefinedResult | None:
    """A rerank list by itself for the refined queries; see :func:`replay_system`."""

    def read_again(refined: Dataset, keep: BoolArray) -> tuple[ListEvidence | None, FloatArray]:
        queries = tuple(task.runs.queries[q] for q in np.flatnonzero(keep))
        runs = list_runs(refined, name, queries)
        alone = System(name=name, runs=(name,))
        [scores] = evaluate_systems([alone], runs, task.measures[:1], qrels=refined.qrels)
        return list_evidence(refined, name, queries, crag), scores.values[0]

    return _replay(task, crag, evidence, values, ({name}, read_again))


def _replay(
    task: EvaluationSet,
    crag: CragSettings,
    evidence: ListEvidence,
    values: FloatArray,
    replay: tuple[set[str], Replay],
) -> RefinedResult | None:
    lists, rank_again = replay
    refined, queries = task.dataset.refined, task.runs.queries
    if refined is None:
        return None
    thresholds = CragThresholds(crag.upper, crag.lower)
    masks = classify_scores(evidence.scores, thresholds)
    known = _refined_queries(refined, lists)
    keep = np.array([query in known for query in queries])
    keep &= np.any([masks[verdict] for verdict in crag.refine], axis=0)
    if not keep.any():
        return None
    try:
        after, new = rank_again(refined, keep)
    except (AlignmentError, ConfigError) as error:
        raise ConfigError(f"crag: the lists of refined queries: {error}") from None
    if after is None:
        raise AssertionError("a system reads the same rerank lists for refined queries")
    old = values[keep]
    change = estimate_mean(new - old, task.groups[keep], alpha=task.experiment.alpha)
    if is_bounded(task.measures[0].name):
        change = change.clip(-1.0, 1.0)
    whole = values.copy()
    whole[keep] = new
    return RefinedResult(
        queries=tuple(queries[q] for q in np.flatnonzero(keep)),
        measure=task.measures[0].name,
        before=float(old.mean()),
        after=float(new.mean()),
        difference=change.mean,
        low=change.low,
        high=change.high,
        mean_before=float(values.mean()),
        mean_after=float(whole.mean()),
        verdicts=tuple(name_verdicts(after.scores, thresholds)),
        relevant_before=int(evidence.relevant[keep].sum()),
        relevant_after=int(after.relevant.sum()),
    )


def _refined_queries(refined: Dataset, lists: set[str]) -> set[str]:
    """The queries for which one of these lists has something for the refined query."""
    spec = refined.spec
    tables = [
        *(run for name, run in refined.runs.items() if spec.runs[name].refined is not None),
        *(run for name, run in refined.rerankers.items() if spec.rerank[name].refined is not None),
    ]
    return {query for run in tables if run.name in lists for query in run.queries}
