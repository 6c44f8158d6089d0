"""The rows of a ranking that a measure looks at, in rank order.

Measures are sums over the relevant (or judged) documents of a query. Only those rows are
gathered and put in rank order; the other candidates are never touched.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.grouped_rows import query_of_rows
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.view_cache import cached_by_view

BoolArray: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Rows:
    """Some documents of every query, sorted by query and by position inside it.

    Attributes:
        query: (m,).
        position: (m,), 1-based.
        grade: (m,).
    """

    query: IntArray
    position: IntArray
    grade: IntArray
    _tops: dict[int, Rows] = field(default_factory=dict)

    def select_rows(self, keep: BoolArray) -> Rows:
        """Only the rows where ``keep``, shape (m,), is true."""
        index = np.flatnonzero(keep)
        return Rows(self.query[index], self.position[index], self.grade[index])

    def within_cutoff(self, cutoff: int | None) -> Rows:
        """Only the rows at the first ``cutoff`` positions; None = all."""
        if cutoff is None:
            return self
        if cutoff not in self._tops:  # most measures of a system share a cutoff
            self._tops[cutoff] = self.select_rows(self.position <= cutoff)
        return self._tops[cutoff]


class Ranking:
    """One order of the candidates, seen with or without the unjudged documents.

    Args:
        runs: The candidates.
        positions: Shape (N,), 1-based; 0 = not returned.
        judged_only: Take the unjudged documents out and close the gaps.
    """

    def __init__(self, runs: AlignedRuns, positions: IntArray, *, judged_only: bool) -> None:
        self.runs = runs
        self.positions = positions
        self.judged_only = judged_only
        self._relevant: dict[int, Rows] = {}

    @property
    def size(self) -> int:
        """Number of queries."""
        return len(self.runs.queries)

    def relevant(self, rel: int) -> Rows:
        """The returned documents of grade ``rel`` (at least 1) or better."""
        if rel not in self._relevant:
            self._relevant[rel] = (
                self.judged.select_rows(self.judged.grade >= rel)
                if self.judged_only
                else self._rows(relevant_index(self.runs, rel))
            )
        return self._relevant[rel]

    @cached_property
    def judged(self) -> Rows:
        """The returned documents that are judged."""
        rows = self._rows(_judged_index(self.runs, self.judged_only))
        if not self.judged_only:
            return rows
        return Rows(rows.query, count_in_groups(rows.query), rows.grade)

    @cached_property
    def returned(self) -> IntArray:
        """(Q,): length of each query's list."""
        if self.judged_only:
            return np.bincount(self.judged.query, minlength=self.size)
        total = np.concatenate([[0], np.cumsum(self.positions > 0)])
        return np.diff(total[self.runs.offsets])

    def _rows(self, index: IntArray) -> Rows:
        """The returned ones of these candidates, in rank order."""
        index = index[self.positions[index] > 0]
        query, position = self.runs.query_index[index], self.positions[index]
        # A position never exceeds the number of candidates, so these keys are distinct.
        order = np.argsort(self.runs.offsets[query] + position)
        return Rows(query[order], position[order], self.runs.grades[index][order])


def count_in_groups(labels: IntArray) -> IntArray:
    """1, 2, 3 … inside each stretch of equal labels; ``labels``, shape (m,), never falls."""
    return np.arange(1, len(labels) + 1) - np.searchsorted(labels, labels)


def has_grade(runs: AlignedRuns) -> BoolArray:
    """(N,): what stays in a list of judged documents only: grades from 0.

    trec_eval -J, hence ir_measures, takes a negative grade for "pooled, but not judged" there;
    ``Judged`` itself counts it as judged.
    """
    return runs.judged & (runs.grades >= 0)


@cached_by_view()
def relevant_counts(runs: AlignedRuns, rel: int) -> IntArray:
    """(Q,): how many documents of grade ``rel`` (at least 1) or better the qrels have."""
    query = query_of_rows(runs.ideal_offsets)[runs.ideal_grades >= rel]
    return np.bincount(query, minlength=len(runs.queries))


def divide_or_zero(part: NDArray[np.generic], whole: NDArray[np.generic]) -> FloatArray:
    """Part over whole, any shape; 0 where the whole is 0."""
    above, below = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    return np.divide(above, below, out=np.zeros_like(above), where=below != 0)


def no_relevant(runs: AlignedRuns, rel: int = 1) -> BoolArray:
    """(Q,): the queries that score 0 whatever is returned, as nothing is relevant to them."""
    return np.asarray(relevant_counts(runs, rel) == 0)


@cached_by_view()
def relevant_index(runs: AlignedRuns, rel: int) -> IntArray:
    """Candidates of grade ``rel`` or better: the same for every order of them."""
    return np.flatnonzero(runs.grades >= rel).astype(np.int64)


@cached_by_view()
def _judged_index(runs: AlignedRuns, judged_only: bool) -> IntArray:
    judged = has_grade(runs) if judged_only else runs.judged
    return np.flatnonzero(judged).astype(np.int64)
