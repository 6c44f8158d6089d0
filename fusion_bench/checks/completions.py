"""Completions of the judgments: the top of a list, the least or greatest values of a sum.

A completion gives every unjudged document among the first k of one or two systems some grade of
the scale. Ideals are computed again. Documents in neither list stay not relevant.

Where documents are relevant or not, the ends of one list need no search: the completion makes none,
all, or the highest or lowest few of its unjudged documents relevant. Grades of nDCG differ, so that
it has no such form: see :mod:`fusion_bench.checks.completed_measures`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.measures import Measure
from fusion_bench.measures.binary_relevance import (
    AveragePrecision,
    Precision,
    Recall,
    ReciprocalRank,
    Success,
)
from fusion_bench.measures.rankings import GradedDocuments, divide_or_zero, relevant_counts

#: For each part of the queries: their indices among the Q, a view, and positions in its lists.
ListParts = Iterable[tuple[IntArray, AlignedRuns, IntArray]]


@dataclass(frozen=True, eq=False, kw_only=True)
class TopCandidates(GradedDocuments):
    """The m documents that one or two systems return within a cutoff, in order of the query.

    Attributes:
        document: (m,): codes into the vocabulary of the runs.
        first: (m,): position in the first system's list, 1-based; 0 = not within the cutoff.
        second: (m,): the same in the second's; all 0 where there is no second system.
    """

    document: IntArray
    first: IntArray
    second: IntArray

    @property
    def size(self) -> int:
        """Q."""
        return len(self.runs.queries)

    def within_cutoff(self, cutoff: int | None) -> TopCandidates:
        """Of one system's documents those at its first ``cutoff`` positions; None = all."""
        if cutoff is None or not (self.first > cutoff).any():
            return self
        rows = np.flatnonzero(self.first <= cutoff)
        names = ("query", "document", "first", "second", "grade", "judged")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})


def collect_list(runs: AlignedRuns, parts: ListParts, *, cutoff: int | None) -> TopCandidates:
    """The first documents of one system alone.

    Args:
        runs: All Q queries.
        parts: The parts of its lists.
        cutoff: The greatest position that counts; None = all.
    """
    query, document, position, grade, judged = _collect_rows(parts, cutoff)
    if (np.diff(query) < 0).any():
        order = np.argsort(query, kind="stable")
        columns = (query, document, position, grade, judged)
        query, document, position, grade, judged = (column[order] for column in columns)
    return TopCandidates(
        runs=runs,
        query=query,
        document=document,
        first=position,
        second=np.zeros(len(query), dtype=np.int64),
        grade=grade,
        judged=judged.astype(bool),
    )


def collect_top(
    runs: AlignedRuns, first: ListParts, second: ListParts = (), *, cutoff: int | None
) -> TopCandidates:
    """Put the lists of one or two systems side by side.

    Args:
        runs: All Q queries.
        first: The parts of one system's lists.
        second: Those of another; empty = there is none.
        cutoff: The greatest position that counts; None = all.
    """
    sides = [_collect_rows(parts, cutoff) for parts in (first, second)]
    codes = len(runs.vocabulary) + 1
    keys, position, grade, judged = (
        np.concatenate(column)
        for column in zip(
            *(
                (query * codes + document, position, grade, judged)
                for query, document, position, grade, judged in sides
            ),
            strict=True,
        )
    )
    is_second = np.repeat([False, True], [len(side[0]) for side in sides])
    known, index, row = np.unique(keys, return_index=True, return_inverse=True)
    places = np.zeros((2, len(known)), dtype=np.int64)
    places[is_second.astype(np.int64), row] = position
    return TopCandidates(
        runs=runs,
        query=known // codes,
        document=known % codes,
        first=places[0],
        second=places[1],
        grade=grade[index],
        judged=judged[index].astype(bool),
    )


def _collect_rows(parts: ListParts, cutoff: int | None) -> tuple[IntArray, ...]:
    """Query, document, position, grade and whether it is judged, of one system's documents."""
    nothing = np.zeros(0, dtype=np.int64)
    columns: list[tuple[IntArray, ...]] = [(nothing,) * 5]
    for index, view, positions in parts:
        limit = len(positions) if cutoff is None else cutoff
        rows = np.flatnonzero((positions > 0) & (positions <= limit))
        query = index[view.query_index[rows]]
        columns.append(
            (
                query,
                view.documents[rows],
                positions[rows],
                view.grades[rows],
                view.judged[rows].astype(np.int64),
            )
        )
    if len(columns) == 2:  # the usual case: one part, which needs no copy
        return columns[1]
    return tuple(np.concatenate(column) for column in zip(*columns, strict=True))


@dataclass(frozen=True, eq=False)
class Extremes:
    """The least and greatest difference, first − second, that some completion gives each query.

    Attributes:
        low: (Q,).
        high: (Q,).
        low_grades: (m,): the grades of a completion that gives every query its least difference;
            judged documents keep theirs. Where the ends are bounds, a completion near them.
        high_grades: (m,): the same for the greatest.
        is_exact: Completions reach both ends; else no completion lies beyond them.
    """

    low: FloatArray
    high: FloatArray
    low_grades: IntArray
    high_grades: IntArray
    is_exact: bool = True


class CompletionModel(Protocol):
    """One measure over the first documents of two systems, as a function of unknown grades."""

    def find_extremes(self) -> Extremes:
        """The least and greatest difference of each query."""

    def differences(self, grades: IntArray) -> FloatArray:
        """(Q,): first − second where the m documents have these grades."""

    def grade_effects(self, grades: IntArray) -> FloatArray:
        """(m,): how far the grade of each unjudged document alone moves its query's difference.

        That is the greatest less the least difference over the grades of the scale, the other
        documents being graded as given; 0 for a judged document.
        """


#: The least and the greatest value of each query, (Q,) each.
Ends: TypeAlias = tuple[FloatArray, FloatArray]


def find_list_ends(measure: Measure, top: TopCandidates) -> Ends | None:
    """The ends of one list.

    Args:
        measure: The measure.
        top: The list's documents within the measure's cutoff.

    Returns:
        None = there is no closed form.
    """
    if type(measure) is Recall:
        return _recall_ends(measure, top)
    if type(measure) is Precision:
        counts = _count_relevant(top, measure.rel)
        return counts[0] / (measure.cutoff or 1), counts[1] / (measure.cutoff or 1)
    if type(measure) is Success:
        counts = _count_relevant(top, measure.rel)
        return (counts[0] > 0).astype(np.float64), (counts[1] > 0).astype(np.float64)
    if type(measure) is ReciprocalRank:
        relevant = top.grade >= measure.rel
        return _reciprocal_ranks(top, relevant), _reciprocal_ranks(top, relevant | ~top.judged)
    if type(measure) is AveragePrecision:
        return _precision_ends(measure, top)
    return None


def _count_relevant(top: TopCandidates, rel: int) -> tuple[IntArray, IntArray]:
    """(Q,) each: relevant documents where no unjudged one is relevant, and where all are."""
    relevant = top.grade >= rel
    least, most = (
        np.bincount(top.query[rows], minlength=top.size)
        for rows in (relevant, relevant | ~top.judged)
    )
    return least, most


def _recall_ends(measure: Recall, top: TopCandidates) -> Ends:
    """A new relevant document in the list never lowers the share: its hits are at most all."""
    least, most = _count_relevant(top, measure.rel)
    known = relevant_counts(top.runs, measure.rel)
    return divide_or_zero(least, known), divide_or_zero(most, known + most - least)


def _reciprocal_ranks(top: TopCandidates, relevant: BoolArray) -> FloatArray:
    best = np.zeros(top.size)
    np.maximum.at(best, top.query[relevant], 1 / top.first[relevant])
    return best


def _precision_ends(measure: AveragePrecision, top: TopCandidates) -> Ends:
    """The best and worst j new relevant documents are the highest and lowest, for every j.

    The sum of precisions S_j grows, document by document, by the precision at the new one and by
    1 / position for every relevant one below it. The value is S_j over the relevant documents.
    """
    order = np.argsort(top.query * (int(top.first.max(initial=0)) + 1) + top.first)
    query, place = top.query[order], top.first[order].astype(np.float64)
    relevant, unjudged = top.grade[order] >= measure.rel, ~top.judged[order]
    above = _sums_before(query, relevant)  # known relevant documents above each
    shares = relevant / place
    below = np.bincount(query, shares, minlength=top.size)[query] - _sums_before(query, shares)
    below -= shares
    known = relevant_counts(top.runs, measure.rel)
    start = np.bincount(query, relevant * (above + 1) / place, minlength=top.size)
    rows = np.flatnonzero(unjudged)
    owner, place = query[rows], place[rows]
    number = _sums_before(owner, np.ones(len(rows)))  # unjudged documents above each
    gains = (above[rows] + number + 1) / place + below[rows]
    high = divide_or_zero(start, known)
    values = (start[owner] + _sums_before(owner, gains) + gains) / (known[owner] + number + 1)
    np.maximum.at(high, owner, values)
    owner, last = owner[::-1], rows[::-1]
    # From the lowest: those added before stand below, and each gains 1 / position.
    added = _sums_before(-owner, 1 / place[::-1])
    gains = (above[last] + 1) / place[::-1] + below[last] + added
    number = _sums_before(-owner, np.ones(len(rows)))
    low = divide_or_zero(start, known)
    values = (start[owner] + _sums_before(-owner, gains) + gains) / (known[owner] + number + 1)
    np.minimum.at(low, owner, values)
    # Sums over many queries round, and no value lies beyond these.
    return np.clip(low, 0, 1), np.clip(high, 0, 1)


def _sums_before(owner: IntArray, terms: FloatArray | BoolArray) -> FloatArray:
    """(m,): the sum of the terms before each in its own query; ``owner`` never falls."""
    total = np.cumsum(terms, dtype=np.float64) - terms
    return np.asarray(total - total[np.searchsorted(owner, owner)]) if len(owner) else total
