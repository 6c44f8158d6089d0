"""CRAG's verdicts on every list with absolute scores, against the truth."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.evaluation.crag.evidence import (
    ListEvidence,
    list_evidence,
    list_runs,
    require_absolute,
    system_evidence,
)
from fusion_bench.evaluation.crag.refined_lists import replay_list, replay_system
from fusion_bench.evaluation.crag.verdicts import (
    CragThresholds,
    classify_scores,
    name_verdicts,
    needs_web_search,
)
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.report_records.results.crag import CragResult, VerdictCount
from fusion_bench.evaluation.scores import evaluate_systems
from fusion_bench.experiment.crag_settings import CragSettings, Verdict
from fusion_bench.experiment.system import System
from fusion_bench.stats.intervals import clopper_pearson


def judge_lists(task: EvaluationSet, values: Mapping[str, FloatArray]) -> tuple[CragResult, ...]:
    """The verdicts on the systems' lists, then on each rerank list by itself.

    Args:
        task: With every rerank list that has absolute scores, and the refined lists.
        values: System → the primary measure by query, shape (Q,), on the first trial.

    Returns:
        One result a list; empty where the experiment has no ``crag``.

    Raises:
        ConfigError: No rerank list has absolute scores, or one has none for refined queries.
    """
    crag, dataset = task.experiment.crag, task.dataset
    if crag is None:
        return ()
    spaces = {name: dataset.spaces[name] for name in dataset.rerankers}
    results = []
    for name, system in task.experiment.systems.items():
        fitted = task.fit_system(system)
        evidence = system_evidence(fitted, task.runs, dataset.spaces, crag)
        if evidence is not None:
            refined = replay_system(task, fitted, crag, evidence, values[name])
            results.append(_build_result(evidence, crag).model_copy(update={"refined": refined}))
    for name in require_absolute(dataset.name, spaces):
        evidence = list_evidence(dataset, name, task.runs.queries, crag)
        refined = replay_list(task, name, crag, evidence, _list_values(task, name))
        results.append(_build_result(evidence, crag).model_copy(update={"refined": refined}))
    return tuple(results)


def _list_values(task: EvaluationSet, name: str) -> FloatArray:
    """(Q,): the primary measure of a rerank list in its own order."""
    runs = list_runs(task.dataset, name, task.runs.queries)
    alone = System(name=name, runs=(name,))
    [scores] = evaluate_systems([alone], runs, task.measures[:1], qrels=task.dataset.qrels)
    values: FloatArray = scores.values[0]
    return values


def _build_result(evidence: ListEvidence, crag: CragSettings) -> CragResult:
    thresholds = CragThresholds(crag.upper, crag.lower)
    masks = classify_scores(evidence.scores, thresholds)
    verdicts = name_verdicts(evidence.scores, thresholds)
    return CragResult(
        name=evidence.name,
        kind=evidence.kind,
        reranker=evidence.reranker,
        top=crag.top,
        grade=crag.grade,
        upper=crag.upper,
        lower=crag.lower,
        scores=tuple(evidence.scores.tolist()),
        verdicts=tuple(verdicts),
        correct=_count_verdict("correct", masks["correct"], evidence.relevant),
        ambiguous=_count_verdict("ambiguous", masks["ambiguous"], evidence.relevant),
        incorrect=_count_verdict("incorrect", masks["incorrect"], evidence.relevant),
        needs_web_search=sum(map(needs_web_search, verdicts)),
    )


def _count_verdict(verdict: Verdict, mask: BoolArray, relevant: BoolArray) -> VerdictCount:
    queries, with_relevant = int(mask.sum()), int((mask & relevant).sum())
    share = float(np.mean(mask))
    if verdict == "ambiguous" or not queries:
        return VerdictCount(queries=queries, share=share, relevant=with_relevant)
    right = with_relevant if verdict == "correct" else queries - with_relevant
    low, high = clopper_pearson(right, queries)
    return VerdictCount(
        queries=queries,
        share=share,
        relevant=with_relevant,
        precision=right / queries,
        low=low,
        high=high,
    )
