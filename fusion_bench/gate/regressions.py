"""The queries that lost most, and why their relevant documents moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.records import Qrels
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


def worst_queries(
    loaded: LoadedCollection,
    before: System,
    after: System,
    old: Mapping[str, FloatArray],
    new: Mapping[str, FloatArray],
    *,
    count: int,
) -> Iterator[QueryRegression]:
    """The queries of a collection that lost most in the policy's first measure.

    Args:
        loaded: The collection.
        before: The baseline's system.
        after: The candidate.
        old: Values of the baseline by measure, each (Q,).
        new: Values of the candidate.
        count: Maximum number of queries.
    """
    task, measure = loaded.task, loaded.task.measures[0].name
    difference = new[measure] - old[measure]
    spaces = task.dataset.spaces
    for q in np.argsort(difference, kind="stable")[:count].tolist():
        if not difference[q] < -NOISE:
            return
        query = task.runs.queries[q]
        sides = [explain_ranking(system, task.runs, query, spaces) for system in (before, after)]
        yield QueryRegression(
            collection=loaded.name,
            query=query,
            measure=measure,
            value_before=float(old[measure][q]),
            value_after=float(new[measure][q]),
            top_k=(sides[0].top_k, sides[1].top_k),
            documents=tuple(_document_changes(loaded, query, sides[0], sides[1])),
        )


def _document_changes(
    loaded: LoadedCollection, query: str, old: Explanation, new: Explanation
) -> Iterator[DocumentChange]:
    """The relevant documents: first those that moved, by their best rank before or after."""
    dataset = loaded.task.dataset
    grades = _judged_grades(dataset.qrels, query)
    relevant = [d for d, grade in grades.items() if grade >= dataset.spec.binary_relevance]
    pairs = {
        document: (old.find_trace(document), new.find_trace(document)) for document in relevant
    }

    def sort_key(document: str) -> tuple[bool, float, str]:
        ranks = [trace.rank if trace else None for trace in pairs[document]]
        return ranks[0] == ranks[1], min((rank for rank in ranks if rank), default=np.inf), document

    for document in sorted(relevant, key=sort_key)[:MAX_DOCUMENTS]:
        before, after = pairs[document]
        yield DocumentChange(
            document=document,
            grade=grades[document],
            rank_before=None if before is None else before.rank,
            rank_after=None if after is None else after.rank,
            cut_rank_before=before.rank_before_cut
            if before is not None and before.is_cut
            else None,
            cut_rank_after=after.rank_before_cut if after is not None and after.is_cut else None,
            cause=explain_move(document, old, new),
        )


def _judged_grades(qrels: Qrels, query: str) -> dict[str, int]:
    """Grades of the documents that are judged for a query."""
    q = qrels.queries.index(query)
    rows = range(int(qrels.offsets[q]), int(qrels.offsets[q + 1]))
    return {qrels.vocabulary[qrels.documents[row]]: int(qrels.grades[row]) for row in rows}


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
        return f"top_k {_format_limit(old)} → {_format_limit(new)}; its terms did not lower it"
    if before.tier != after.tier:
        return f"now {after.tier} (was {before.tier})"
    change = _largest_change(before, after, old, new, up=_rank_or_inf(after) < _rank_or_inf(before))
    if change is not None:
        return change
    return _find_overtaker(after, old, new)


def _find_overtaker(after: ScoreTrace, old: Explanation, new: Explanation) -> str:
    """The document that passed this one, and the term that moved it."""
    rank = _rank_or_inf(after)
    passed = [
        trace
        for trace in new.traces
        if _rank_or_inf(trace) < rank
        and _rank_or_inf(old.find_trace(trace.document)) > _rank_or_inf(trace)
    ]
    for trace in reversed(passed):
        before = old.find_trace(trace.document)
        if before is None:
            return f"its terms did not change; {trace.document} is new above it"
        term = _largest_change(before, trace, old, new, up=True)
        if term is not None:
            return f"its terms did not change; {trace.document} passed it: {term}"
    return "its terms did not change; other documents moved"


def _format_limit(explanation: Explanation) -> str:
    return "none" if explanation.top_k is None else str(explanation.top_k)


def _rank_or_inf(trace: ScoreTrace | None) -> float:
    return np.inf if trace is None or trace.rank_before_cut is None else trace.rank_before_cut


def _largest_change(
    before: ScoreTrace, after: ScoreTrace, old: Explanation, new: Explanation, *, up: bool
) -> str | None:
    """The term of the final score that moved a document; None = none changed."""
    sides = (before.contributions, after.contributions)
    label = _largest_term(*sides, (_score_scale(old), _score_scale(new)), up=up)
    if label is None:
        return None
    words = f"{label} {_format_term(before, label)} → {_format_term(after, label)}"
    if label != "retrieval" or before.fused_rank == after.fused_rank:
        return words
    return f"{words} ({_fused_move(before, after)})"


def _fused_move(before: ScoreTrace, after: ScoreTrace) -> str:
    """The move of a document in the fused list, and the term that caused it."""
    sides = (before.fused_contributions, after.fused_contributions)
    up = (after.fused_rank or np.inf) < (before.fused_rank or np.inf)
    label = _largest_term(
        *sides, (before.fused_score or 1.0, after.fused_score or 1.0), up=up, absolute=True
    )
    words = f"fused rank {before.fused_rank} → {after.fused_rank}"
    if label is None:
        return f"{words}, its terms did not change"
    before_value, after_value = (_format_value(side.get(label)) for side in sides)
    return f"{words}, {label} {before_value} → {after_value}"


def _largest_term(
    first: Mapping[str, float],
    second: Mapping[str, float],
    scales: tuple[float, float],
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
    parts = (blend.rerank_weight, blend.rerank)
    if label == "retrieval":
        parts = (blend.retrieval_weight, blend.retrieval)
    return " × ".join(_format_value(part) for part in parts)


def _format_value(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _score_scale(explanation: Explanation) -> float:
    """The greatest score of the list: the unit of its contributions."""
    return max((abs(t.score) for t in explanation.traces if t.rank), default=0.0) or 1.0
