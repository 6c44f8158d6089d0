"""The queries that lost most, and why their relevant documents moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isclose

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.experiment.system import System
from fusion_bench.explain.explanation import explain_ranking
from fusion_bench.explain.score_trace import Explanation, ScoreTrace
from fusion_bench.gate.result import DocumentChange, QueryRegression
from fusion_bench.stats.comparison import NOISE

#: Relevant documents of one query in the verdict, by their best rank before or after.
MAX_DOCUMENTS = 20
#: A smaller relative change of a term is float noise.
MIN_CHANGE = 1e-9
#: Terms that explain why a document moved.
MAX_TERMS = 3


def find_worst_queries(
    task: EvaluationSet,
    before: Mapping[str, FloatArray],
    after: Mapping[str, FloatArray],
    systems: tuple[System, System],
    *,
    count: int,
) -> Iterator[QueryRegression]:
    """The queries of a collection that lost most in the policy's first measure.

    Args:
        task: The collection.
        before: Values of the baseline by measure, each (Q,).
        after: Values of the candidate.
        systems: The baseline's system and the candidate.
        count: Maximum number of queries.
    """
    measure = task.measures[0].name
    difference = after[measure] - before[measure]
    grades = task.dataset.qrels.to_dict()
    for q in np.argsort(difference, kind="stable")[:count].tolist():
        if not difference[q] < -NOISE:
            return
        query = task.runs.queries[q]
        old, new = (explain_ranking(s, task.runs, query, task.dataset.spaces) for s in systems)
        documents = [
            _compare_ranks(document, grade, old, new)
            for document, grade in grades[query].items()
            if grade >= task.dataset.spec.binary_relevance
        ]
        documents.sort(key=_sort_key)
        yield QueryRegression(
            collection=task.dataset.name,
            query=query,
            measure=measure,
            value_before=float(before[measure][q]),
            value_after=float(after[measure][q]),
            top_k=(old.top_k, new.top_k),
            documents=tuple(documents[:MAX_DOCUMENTS]),
        )


def _sort_key(change: DocumentChange) -> tuple[bool, float, str]:
    """First the documents that moved, by their best rank before or after."""
    ranks = [rank for rank in (change.rank_before, change.rank_after) if rank]
    return not change.is_moved, min(ranks, default=np.inf), change.document


def _compare_ranks(document: str, grade: int, old: Explanation, new: Explanation) -> DocumentChange:
    before, after = old.find_trace(document), new.find_trace(document)
    return DocumentChange(
        document=document,
        grade=grade,
        rank_before=before and before.rank,
        rank_after=after and after.rank,
        cut_rank_before=before.rank_before_cut if before and before.is_cut else None,
        cut_rank_after=after.rank_before_cut if after and after.is_cut else None,
        cause=explain_move(document, old, new),
    )


def explain_move(document: str, old: Explanation, new: Explanation) -> str:
    """Why a document moved between two rankings of one query: the terms of its score that changed.

    If none of them changed, the document that passed it is named with its terms. Ranks are those
    before ``top_k`` cuts the list.

    Args:
        document: Its id.
        old: The query under the baseline.
        new: The query under the candidate.
    """
    before, after = old.find_trace(document), new.find_trace(document)
    if before is None:
        return "no source returns it" if after is None else "no source in use returned it before"
    if after is None:
        return "no source in use returns it now"
    if before.rank == after.rank and before.rank_before_cut == after.rank_before_cut:
        return "same rank"
    if after.is_cut and _rank_or_inf(after) <= _rank_or_inf(before):
        limits = (str(side.top_k or "none") for side in (old, new))
        return f"top_k {' → '.join(limits)}; its terms did not lower it"
    if before.tier != after.tier:
        return f"now {after.tier} (was {before.tier})"
    return _describe_changes(before, after) or _find_overtaker(after, old, new)


def _find_overtaker(after: ScoreTrace, old: Explanation, new: Explanation) -> str:
    """The document that passed this one, and its terms that changed."""
    for trace in reversed(new.traces):
        rank, before = _rank_or_inf(trace), old.find_trace(trace.document)
        if rank < min(_rank_or_inf(after), _rank_or_inf(before)):
            if before is None:
                return f"its terms did not change; {trace.document} is new above it"
            changes = _describe_changes(before, trace)
            if changes:
                return f"its terms did not change; {trace.document} passed it: {changes}"
    return "its terms did not change; other documents moved"


def _rank_or_inf(trace: ScoreTrace | None) -> float:
    return np.inf if trace is None or trace.rank_before_cut is None else trace.rank_before_cut


def _describe_changes(before: ScoreTrace, after: ScoreTrace) -> str:
    """The terms that changed most, the largest change first; empty where none changed."""
    old, new = before.contributions, after.contributions
    if before.blend is not None and after.blend is not None:
        old = {"fused rank": before.fused_rank or np.inf, **old, **before.fused_contributions}
        new = {"fused rank": after.fused_rank or np.inf, **new, **after.fused_contributions}
    gaps = {
        label: abs(new.get(label, 0.0) - old.get(label, 0.0))
        for label in dict.fromkeys([*old, *new])
        if not isclose(old.get(label, 0.0), new.get(label, 0.0), rel_tol=MIN_CHANGE)
    }
    return ", ".join(
        f"{label} {_format_value(old.get(label))} → {_format_value(new.get(label))}"
        for label in sorted(gaps, key=lambda name: -gaps[name])[:MAX_TERMS]
    )


def _format_value(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
