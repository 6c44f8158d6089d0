"""The queries that lost most, and why their relevant documents moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isclose

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.experiment.system import System
from fusion_bench.explain.explanation import Explanation, ScoreTrace, explain_ranking
from fusion_bench.gate.baseline import DocumentChange, QueryRegression
from fusion_bench.gate.estimates import PairedTrials
from fusion_bench.io.excerpts import query_excerpt, read_titles
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
    systems: tuple[System | None, System],
    *,
    count: int,
    trials: PairedTrials | None = None,
) -> Iterator[QueryRegression]:
    """The queries of a collection that lost most in the policy's first measure.

    Of several trials the ranks are those of the trial in which a query lost most.

    Args:
        task: The collection.
        before: Values of the baseline by measure, each (Q,).
        after: Values of the candidate.
        systems: The baseline's system, None where its lists are gone, and the candidate.
        count: Maximum number of queries.
        trials: The values of each trial; None = one a side.
    """
    measure = task.measures[0].name
    difference = after[measure] - before[measure]
    order = np.argsort(difference, kind="stable")[:count].tolist()
    worst = [q for q in order if difference[q] < -NOISE]
    chosen = {q: 0 if trials is None else trials.find_worst_trial(measure, q) for q in worst}
    rankings = {
        q: _explain_both(task.trials[trial], task.runs.queries[q], systems)
        for q, trial in chosen.items()
    }
    grades = task.dataset.qrels.to_dict() if worst else {}
    relevance = task.dataset.spec.binary_relevance
    changes = {}
    for q in worst:
        judged = grades[task.runs.queries[q]]
        relevant = {name: grade for name, grade in judged.items() if grade >= relevance}
        changes[q] = _compare_documents(relevant, *rankings[q])
    titles = read_titles(
        task.dataset.documents, {change.document for q in worst for change in changes[q]}
    )
    for q in worst:
        query = task.runs.queries[q]
        old, new = rankings[q]
        yield QueryRegression(
            collection=task.dataset.name,
            query=query,
            text=query_excerpt(task.dataset.queries.get(query)),
            measure=measure,
            value_before=float(before[measure][q]),
            value_after=float(after[measure][q]),
            top_k=(old and old.top_k, new.top_k),
            has_old_ranks=old is not None,
            trial=chosen[q] + 1 if trials is not None and measure in trials.candidate else None,
            documents=tuple(
                change.model_copy(update={"title": titles.get(change.document, "")})
                for change in changes[q]
            ),
        )


def _explain_both(
    task: EvaluationSet, query: str, systems: tuple[System | None, System]
) -> tuple[Explanation | None, Explanation]:
    """A query under the baseline's system, if that can run, and under the candidate."""
    reference, candidate = systems[0] and task.fit_system(systems[0]), task.fit_system(systems[1])
    spaces = task.dataset.spaces
    old = None if reference is None else explain_ranking(reference, task.runs, query, spaces)
    return old, explain_ranking(candidate, task.runs, query, spaces)


def _compare_documents(
    relevant: Mapping[str, int], old: Explanation | None, new: Explanation
) -> list[DocumentChange]:
    """The relevant documents of a query, with their grades: first those that moved."""
    changes = [_compare_ranks(name, grade, old, new) for name, grade in relevant.items()]
    return sorted(changes, key=_sort_key)[:MAX_DOCUMENTS]


def _sort_key(change: DocumentChange) -> tuple[bool, float, str]:
    """First the documents that moved, by their best rank before or after."""
    ranks = [rank for rank in (change.rank_before, change.rank_after) if rank]
    return not change.is_moved, min(ranks, default=np.inf), change.document


def _compare_ranks(
    document: str, grade: int, old: Explanation | None, new: Explanation
) -> DocumentChange:
    """The ranks of a document; without old ones only where it is now."""
    before, after = old and old.find_trace(document), new.find_trace(document)
    return DocumentChange(
        document=document,
        grade=grade,
        rank_before=before and before.rank,
        rank_after=after and after.rank,
        cut_rank_before=before.rank_before_cut if before and before.is_cut else None,
        cut_rank_after=after.rank_before_cut if after and after.is_cut else None,
        cause="" if old is None else explain_move(document, old, new),
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
