"""The queries that lost most, and why their relevant documents moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.experiment.system import System
from fusion_bench.explain.explanation import explain_ranking
from fusion_bench.explain.score_trace import Explanation, ScoreTrace
from fusion_bench.gate.loaded_collections import LoadedCollection
from fusion_bench.gate.result import DocumentChange, QueryRegression
from fusion_bench.stats.comparison import NOISE

#: Relevant documents of one query in the verdict, by their best rank before or after.
MAX_DOCUMENTS = 20
#: A smaller change of a term, as a part of the query's best score, is float noise.
MIN_CHANGE = 1e-9


def find_worst_queries(
    loaded: LoadedCollection,
    before: Mapping[str, FloatArray],
    after: Mapping[str, FloatArray],
    systems: tuple[System, System],
    *,
    count: int,
) -> Iterator[QueryRegression]:
    """The queries of a collection that lost most in the policy's first measure.

    Args:
        loaded: The collection.
        before: Values of the baseline by measure, each (Q,).
        after: Values of the candidate.
        systems: The baseline's system and the candidate.
        count: Maximum number of queries.
    """
    task, measure = loaded.task, loaded.task.measures[0].name
    difference = after[measure] - before[measure]
    grades = task.dataset.qrels.to_dict()
    for q in np.argsort(difference, kind="stable")[:count].tolist():
        if not difference[q] < -NOISE:
            return
        query = task.runs.queries[q]
        old, new = (explain_ranking(s, task.runs, query, task.dataset.spaces) for s in systems)
        relevant = {
            document: grade
            for document, grade in grades[query].items()
            if grade >= task.dataset.spec.binary_relevance
        }
        documents = [_compare_ranks(name, grade, old, new) for name, grade in relevant.items()]
        documents.sort(key=_sort_key)
        yield QueryRegression(
            collection=loaded.name,
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
    """The term that moved a document between two rankings of one query.

    Changes are compared as shares of the best score of the list, since two methods have different
    scales. If no term of the document changed, the document that passed it is named with its term.
    Ranks are those before ``top_k`` cuts the list.

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
    change = _largest_change(before, after, old, new, up=_rank_or_inf(after) < _rank_or_inf(before))
    return change or f"its terms did not change; {_find_overtaker(after, old, new)}"


def _find_overtaker(after: ScoreTrace, old: Explanation, new: Explanation) -> str:
    """The document that passed this one, and the term that moved it."""
    for trace in reversed(new.traces):
        rank, before = _rank_or_inf(trace), old.find_trace(trace.document)
        if rank < min(_rank_or_inf(after), _rank_or_inf(before)):
            if before is None:
                return f"{trace.document} is new above it"
            term = _largest_change(before, trace, old, new, up=True)
            if term is not None:
                return f"{trace.document} passed it: {term}"
    return "other documents moved"


def _rank_or_inf(trace: ScoreTrace | None) -> float:
    return np.inf if trace is None or trace.rank_before_cut is None else trace.rank_before_cut


def _largest_change(
    before: ScoreTrace, after: ScoreTrace, old: Explanation, new: Explanation, *, up: bool
) -> str | None:
    """The term of the final score that moved a document; None = none changed."""
    scales = [
        max((abs(t.score) for t in side.traces if t.rank), default=0.0) or 1.0
        for side in (old, new)
    ]
    label = _largest_term(before.contributions, after.contributions, scales, up=up)
    if label is None:
        return None
    words = f"{label} {_format_term(before, label)} → {_format_term(after, label)}"
    if label != "retrieval" or before.fused_rank == after.fused_rank:
        return words
    return f"{words} ({_describe_fused_move(before, after)})"


def _describe_fused_move(before: ScoreTrace, after: ScoreTrace) -> str:
    """The move of a document in the fused list, and the term that caused it."""
    first, second = before.fused_contributions, after.fused_contributions
    scales = (before.fused_score or 1.0, after.fused_score or 1.0)
    up = (after.fused_rank or np.inf) < (before.fused_rank or np.inf)
    label = _largest_term(first, second, scales, up=up, absolute=True)
    words = f"fused rank {before.fused_rank} → {after.fused_rank}"
    if label is None:
        return f"{words}, its terms did not change"
    values = (_format_value(side.get(label)) for side in (first, second))
    return f"{words}, {label} {' → '.join(values)}"


def _largest_term(
    first: Mapping[str, float],
    second: Mapping[str, float],
    scales: Sequence[float],
    *,
    up: bool,
    absolute: bool = False,
) -> str | None:
    """The term that changed most in the direction of the move, or in any; None = none changed.

    Args:
        first: Contributions before.
        second: Contributions after.
        scales: What a contribution is a share of.
        up: Whether the document moved up.
        absolute: Compare the contributions, not their shares.
    """
    scale_before, scale_after = (1.0, 1.0) if absolute else scales
    moved = {
        label: second.get(label, 0.0) / scale_after - first.get(label, 0.0) / scale_before
        for label in dict.fromkeys([*first, *second])
        if abs(second.get(label, 0.0) - first.get(label, 0.0)) > MIN_CHANGE * max(map(abs, scales))
    }
    along = {label: gap for label, gap in moved.items() if (gap > 0) == up} or moved
    return max(along, key=lambda name: abs(along[name])) if along else None


def _format_term(trace: ScoreTrace, label: str) -> str:
    """A term of the final score, as weight × value where it is a product."""
    value = trace.contributions.get(label)
    blend = trace.blend
    if value is None or blend is None or blend.retrieval is None:
        return _format_value(value)
    if label == "retrieval":
        return f"{_format_value(blend.retrieval_weight)} × {_format_value(blend.retrieval)}"
    return f"{_format_value(blend.rerank_weight)} × {_format_value(blend.rerank)}"


def _format_value(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
