"""The first documents of one or two systems, side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, IntArray

#: For each part of the queries: their indices among the Q, a view, and positions in its lists.
ListParts = Iterable[tuple[IntArray, AlignedRuns, IntArray]]


@dataclass(frozen=True, eq=False)
class TopDocuments:
    """The m documents that one or two systems return within a cutoff, in order of the query.

    Attributes:
        runs: Gives the Q queries, and the grades of all judged documents.
        query: (m,), ascending.
        document: (m,): codes into the vocabulary of the runs.
        first: (m,): position in the first system's list, 1-based; 0 = not within the cutoff.
        second: (m,): the same in the second's; all 0 where there is no second system.
        grade: (m,): 0 where unjudged.
        judged: (m,).
    """

    runs: AlignedRuns
    query: IntArray
    document: IntArray
    first: IntArray
    second: IntArray
    grade: IntArray
    judged: BoolArray

    @property
    def size(self) -> int:
        """Q."""
        return len(self.runs.queries)

    def within_cutoff(self, cutoff: int | None) -> TopDocuments:
        """Of one system's documents those at its first ``cutoff`` positions; None = all."""
        if cutoff is None or not (self.first > cutoff).any():
            return self
        rows = np.flatnonzero(self.first <= cutoff)
        names = ("query", "document", "first", "second", "grade", "judged")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})


def collect_list(runs: AlignedRuns, parts: ListParts, *, cutoff: int | None) -> TopDocuments:
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
    return TopDocuments(
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
) -> TopDocuments:
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
    return TopDocuments(
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
