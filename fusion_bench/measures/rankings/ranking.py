"""The rows of a ranking that a measure looks at, in rank order.

Measures are sums over the relevant (or judged) documents of a query. Only those rows are
gathered and put in rank order; the other candidates are never touched.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.data.rows.grouped_rows import query_of_rows
from fusion_bench.data.view_cache import cached_by_view


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
            if rel > 1 or self.judged_only:
                rows = self.judged if self.judged_only else self.relevant(1)
                self._relevant[rel] = rows.select_rows(rows.grade >= rel)
            else:
                candidates = relevant_candidates(self.runs)
                places = self.positions[candidates.rows]
                self._relevant[rel] = ranked_rows(self.runs, candidates, places)
        return self._relevant[rel]

    @cached_property
    def judged(self) -> Rows:
        """The returned documents that are judged."""
        candidates = _judged_candidates(self.runs, self.judged_only)
        rows = ranked_rows(self.runs, candidates, self.positions[candidates.rows])
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


class Candidates(NamedTuple):
    """Some candidates of a view, as stored.

    Attributes:
        rows: (m,).
        query: (m,).
        grade: (m,).
    """

    rows: IntArray
    query: IntArray
    grade: IntArray


def ranked_rows(runs: AlignedRuns, candidates: Candidates, positions: IntArray) -> Rows:
    """The returned ones of some candidates, in rank order.

    Args:
        runs: The view.
        candidates: m of them.
        positions: Shape (m,): theirs, 1-based; 0 = not returned.
    """
    kept = np.flatnonzero(positions)
    query, position = candidates.query[kept], positions[kept]
    # A position never exceeds the number of candidates, so these keys are distinct.
    order = np.argsort(runs.offsets[query] + position)
    return Rows(query[order], position[order], candidates.grade[kept[order]])


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
def relevant_candidates(runs: AlignedRuns) -> Candidates:
    """(R,): candidates of grade 1 or better: the same for every order of them."""
    return _select_candidates(runs, runs.grades > 0)


@cached_by_view()
def _judged_candidates(runs: AlignedRuns, judged_only: bool) -> Candidates:
    return _select_candidates(runs, has_grade(runs) if judged_only else runs.judged)


def _select_candidates(runs: AlignedRuns, keep: BoolArray) -> Candidates:
    index = np.flatnonzero(keep)
    return Candidates(index, runs.query_index[index], runs.grades[index])
