"""Completions of the judgments: the top of a list, the least or greatest values of a sum.

A completion gives every unjudged document among the first k of one or two systems some grade of
the scale. Ideals are computed again. Documents in neither list stay not relevant.

Where documents are relevant or not, the ends of one list need no search: the completion makes none,
all, or the highest or lowest few of its unjudged documents relevant. Grades of nDCG differ, so that
it has no such form: see :mod:`fusion_bench.checks.completed_measures`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.grouped_rows import count_by_query
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray, rows_within
from fusion_bench.measures import Measure
from fusion_bench.measures.binary_relevance import (
    AveragePrecision,
    Precision,
    Recall,
    ReciprocalRank,
    Success,
)
from fusion_bench.measures.rankings import (
    GradedDocuments,
    divide_or_zero,
    judged_candidates,
    relevant_counts,
)

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


@dataclass(frozen=True, eq=False)
class ListCounts:
    """How many documents one system returns within a cutoff.

    Attributes:
        shown: (Q,): all of them.
        judged: (Q,): the judged ones.
        graded: The judged ones themselves, m in any order: query and grade, (m,) each.
        runs: All Q queries.
    """

    runs: AlignedRuns
    shown: IntArray
    judged: IntArray
    graded: tuple[IntArray, IntArray]

    def relevant(self, rel: int) -> tuple[IntArray, IntArray]:
        """(Q,) each: relevant ones where no unjudged one is relevant, and where all are."""
        query, grade = self.graded
        least = np.bincount(query[grade >= rel], minlength=len(self.shown))
        return least, least + self.shown - self.judged


def count_list(runs: AlignedRuns, parts: ListParts, *, cutoff: int | None) -> ListCounts:
    """Count the first documents of one system, of which only judged ones are looked at.

    Args:
        runs: All Q queries.
        parts: The parts of its lists.
        cutoff: The greatest position that counts; None = all.
    """
    shown = np.zeros(len(runs.queries), dtype=np.int64)
    graded = [(np.zeros(0, dtype=np.int64),) * 2]
    for index, view, positions in parts:
        lengths = count_by_query(positions > 0, view.offsets)
        shown[index] = lengths if cutoff is None else np.minimum(lengths, cutoff)
        judged = judged_candidates(view, judged_only=False)
        within = rows_within(positions[judged.rows], cutoff)
        graded.append((index[judged.query[within]], judged.grade[within]))
    query, grade = (np.concatenate(column) for column in zip(*graded, strict=True))
    return ListCounts(runs, shown, np.bincount(query, minlength=len(shown)), (query, grade))


def collect_list(runs: AlignedRuns, parts: ListParts, *, cutoff: int | None) -> TopCandidates:
    """The first documents of one system alone.

    Args:
        runs: All Q queries.
        parts: The parts of its lists.
        cutoff: The greatest position that counts; None = all.
    """
    query, document, position, grade, judged = _collect_rows(parts, cutoff)
    if (query[1:] < query[:-1]).any():
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
        judged=judged,
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
        judged=judged[index],
    )


def _collect_rows(parts: ListParts, cutoff: int | None) -> tuple[NDArray[Any], ...]:
    """Query, document, position, grade and whether it is judged, of one system's documents."""
    nothing = np.zeros(0, dtype=np.int64)
    columns: list[tuple[NDArray[Any], ...]] = [(*(nothing,) * 4, nothing.astype(bool))]
    for index, view, positions in parts:
        rows = rows_within(positions, cutoff)
        query, document = index[view.query_index[rows]], view.documents[rows]
        columns.append((query, document, positions[rows], view.grades[rows], view.judged[rows]))
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

    def grade_effects(self, grades: IntArray) -> FloatArray:
        """(m,): how far the grade of each unjudged document alone moves its query's difference.

        That is the greatest less the least difference over the grades of the scale, the other
        documents being graded as given; 0 for a judged document.
        """


#: The least and the greatest value of each query, (Q,) each.
Ends: TypeAlias = tuple[FloatArray, FloatArray]


def find_counted_ends(measure: Measure, counts: ListCounts) -> Ends | None:
    """The ends of one list, where the number of its relevant documents decides.

    Args:
        measure: The measure.
        counts: Of the list's documents within the measure's cutoff.

    Returns:
        None = more decides.
    """
    if not isinstance(measure, Recall | Precision | Success):
        return None
    least, most = counts.relevant(measure.rel)
    if type(measure) is Recall:  # a new relevant one in the list never lowers the share
        known = relevant_counts(counts.runs, measure.rel)
        return divide_or_zero(least, known), divide_or_zero(most, known + most - least)
    if type(measure) is Precision:
        return least / (measure.cutoff or 1), most / (measure.cutoff or 1)
    return (least > 0).astype(np.float64), (most > 0).astype(np.float64)


def find_list_ends(measure: Measure, top: TopCandidates) -> Ends | None:
    """The ends of one list, where the places of its relevant documents decide.

    Args:
        measure: The measure.
        top: The list's documents within the measure's cutoff.

    Returns:
        None = there is no closed form.
    """
    if type(measure) is ReciprocalRank:
        relevant = top.grade >= measure.rel
        return _reciprocal_ranks(top, relevant), _reciprocal_ranks(top, relevant | ~top.judged)
    if type(measure) is AveragePrecision:
        return _precision_ends(measure, top)
    return None


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
