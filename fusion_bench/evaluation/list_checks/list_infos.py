"""What was noticed about each input list of a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.evaluation.judge_checks.list_families import family_of
from fusion_bench.evaluation.list_checks.list_facts import list_facts
from fusion_bench.evaluation.list_checks.rerank_list_checks import (
    check_rerank_list,
    describe_problems,
)
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.report_records.list_info import ListInfo
from fusion_bench.io.dataset import Dataset
from fusion_bench.util.unmatched_query_ids import find_unmatched_ids


def task_list_infos(task: EvaluationSet) -> list[ListInfo]:
    """What was noticed about each input list of a prepared dataset, over its evaluated queries."""
    return list_infos([(trial.dataset, trial.runs) for trial in task.trials])


def list_infos(trials: Sequence[tuple[Dataset, AlignedRuns]]) -> list[ListInfo]:
    """What was noticed about each input list, sources first; then about those of later trials.

    Args:
        trials: Each trial of a dataset with the lists that are used, and the same lists over the
            queries that are looked at; one where every list has one file.
    """
    several = trials[0][0].trial_counts
    infos = _list_trial(*trials[0], dict.fromkeys(several, 1))
    for number, (dataset, aligned) in enumerate(trials[1:], 2):
        present = [key for key, count in several.items() if number <= count]
        every = _list_trial(dataset, aligned, dict.fromkeys(present, number))
        infos += [info for info in every if info.trial is not None]
    return infos


def _list_trial(
    dataset: Dataset, aligned: AlignedRuns, numbers: Mapping[str, int]
) -> list[ListInfo]:
    """The lists of one trial, with the number of the trial by ``runs/NAME`` and ``rerank/NAME``."""
    judged = set(dataset.qrels.queries)
    documents = set(dataset.qrels.vocabulary)
    returned_by_any = {document for run in dataset.runs.values() for document in run.vocabulary}
    infos = []
    for run in (*dataset.runs.values(), *dataset.rerankers.values()):
        space = dataset.spaces[run.name] if run.name in dataset.rerankers else None
        expected = documents if space is None else returned_by_any
        returned = {q for q, size in zip(run.queries, np.diff(run.offsets), strict=True) if size}
        asked = judged if run.switch is None else judged & run.switch.queries
        facts: dict[str, Any] = {}
        if run.switch is not None:
            facts = {"when": dict(run.switch.condition), "on_queries": len(asked)}
        if space is not None:
            facts = _rerank_facts(dataset, run, space, aligned)
        info = ListInfo(
            name=run.name,
            trial=numbers.get(f"{'runs' if space is None else 'rerank'}/{run.name}"),
            kind="run" if space is None else "rerank",
            roles=tuple(sorted(run.roles)),
            read_options=asdict(run.read_options),
            family=family_of(dataset, run),
            score_space=space,
            unanswered_queries=len(asked - returned),
            unjudged_queries=len(returned - judged),
            unmatched_queries=find_unmatched_ids(returned, judged),
            duplicate_rows=run.duplicates,
            zero_scores=run.zero_scores,
            has_known_documents=not expected.isdisjoint(run.vocabulary),
            **list_facts(dataset, run, aligned),
            **facts,
        )
        infos.append(info)
    return infos


def _rerank_facts(
    dataset: Dataset, run: Run, space: ScoreSpace, aligned: AlignedRuns
) -> dict[str, Any]:
    """What is known of a rerank list beside what every list has."""
    meta = dataset.provenance.get(run.name)
    check = check_rerank_list(run, space, aligned, dict(dataset.runs))
    facts: dict[str, Any] = {
        "problems": tuple(describe_problems(check)),
        "degraded_queries": len(dataset.degraded(run.name)),
    }
    if meta is None:
        return facts
    return facts | {"provider": meta.asked, "ledger": meta.ledger, "unread_scores": meta.unread}
