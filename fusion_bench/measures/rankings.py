"""The rows of a ranking that a measure looks at: in rank order, with gains, in groups of ties.

Measures are sums over the relevant (or judged) documents of a query. Only those rows are
gathered and put in rank order; the other candidates are never touched.

Closed forms after F. McSherry and M. Najork, "Computing Information Retrieval Performance
Measures Efficiently in the Presence of Tied Scores", ECIR 2008. Throughout, a
group stands behind ``a`` documents and has ``n`` members, ``r`` of them relevant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.aligned_runs import AlignedRuns, cached_by_view
from fusion_bench.data.grouped_rows import count_by_query, query_of_rows
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray, rows_within


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
        candidates = judged_candidates(self.runs, judged_only=self.judged_only)
        rows = ranked_rows(self.runs, candidates, self.positions[candidates.rows])
        if not self.judged_only:
            return rows
        return Rows(rows.query, count_in_groups(rows.query), rows.grade)

    @cached_property
    def returned(self) -> IntArray:
        """(Q,): length of each query's list."""
        if self.judged_only:
            return np.bincount(self.judged.query, minlength=self.size)
        return count_by_query(self.positions > 0, self.runs.offsets)


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
    rows = np.arange(len(labels))
    return rows + 1 - np.maximum.accumulate(np.where(np.diff(labels, prepend=-1) != 0, rows, 0))


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


def none_before(probability: FloatArray) -> FloatArray:
    """(Q, L): that nothing happened at any rank before each, by its probability at each rank."""
    not_yet = np.cumprod(1 - probability, axis=1)
    return np.hstack([np.ones((len(not_yet), 1)), not_yet])[:, :-1]


def no_relevant(runs: AlignedRuns, rel: int = 1) -> BoolArray:
    """(Q,): the queries that score 0 whatever is returned, as nothing is relevant to them."""
    return np.asarray(relevant_counts(runs, rel) == 0)


@cached_by_view()
def relevant_candidates(runs: AlignedRuns) -> Candidates:
    """(R,): candidates of grade 1 or better: the same for every order of them."""
    return _select_candidates(runs, runs.grades > 0)


@cached_by_view()
def judged_candidates(runs: AlignedRuns, *, judged_only: bool) -> Candidates:
    """The judged candidates, or those that stay in a list of judged documents only."""
    return _select_candidates(runs, has_grade(runs) if judged_only else runs.judged)


def _select_candidates(runs: AlignedRuns, keep: BoolArray) -> Candidates:
    index = np.flatnonzero(keep)
    return Candidates(index, runs.query_index[index], runs.grades[index])


@dataclass(frozen=True, eq=False, kw_only=True)
class GradedDocuments:
    """m documents that systems return for Q queries, with what is known of each.

    Attributes:
        runs: Gives the Q queries, the grades of all judged documents and their ideals.
        query: (m,).
        grade: (m,); 0 where unjudged.
        judged: (m,): whether the grade is known; a negative grade is not, as to trec_eval.
    """

    runs: AlignedRuns
    query: IntArray
    grade: IntArray
    judged: BoolArray


@dataclass(frozen=True, eq=False, kw_only=True)
class ReturnedDocuments(GradedDocuments):
    """The documents that one system returns for all queries, in any order.

    Attributes:
        position: (m,), 1-based.
    """

    position: IntArray

    def fill_gains(self, gains: NDArray[np.generic], cutoff: int | None) -> FloatArray:
        """The gain at every rank of every list, unjudged documents filled.

        An unjudged document at rank r has the mean gain of the judged documents at rank r over
        all queries. Where no query has a judged document at r, it is that of the nearest rank that
        has one, the higher rank of two. Without any judged document it is NaN.

        Args:
            gains: Shape (m,): of the judged documents; others are not read.
            cutoff: Only the first ``cutoff`` ranks count; None = the whole lists.

        Returns:
            Shape (Q, L), L being the longest list within the cutoff; 0 where a list has ended.
        """
        rows = slice(None) if cutoff is None else np.flatnonzero(self.position <= cutoff)
        query, position, judged = self.query[rows], self.position[rows], self.judged[rows]
        values = np.asarray(gains, dtype=np.float64)[rows]
        means = _mean_by_rank(position[judged], values[judged], int(position.max(initial=0)))
        filled = np.zeros((len(self.runs.queries), len(means)))
        filled[query, position - 1] = np.where(judged, values, means[position - 1])
        return filled


def collect_returned(
    runs: AlignedRuns,
    parts: Iterable[tuple[IntArray, AlignedRuns, IntArray]],
    *,
    cutoff: int | None,
) -> ReturnedDocuments:
    """The documents that a system returns, put together from the parts that rank its queries.

    Args:
        runs: All Q queries.
        parts: For each part the indices of its queries among the Q, its view, and the positions
            of the view's candidates; 0 = not returned.
        cutoff: The greatest position that counts; None = all.
    """
    columns: list[tuple[NDArray[np.generic], ...]] = [
        (
            index[view.query_index[rows]],
            positions[rows],
            view.grades[rows],
            has_grade(view)[rows],
        )
        for index, view, positions in parts
        for rows in (rows_within(positions, cutoff),)
    ]
    query, position, grade, judged = map(np.concatenate, zip(*columns, strict=True))
    return ReturnedDocuments(runs=runs, query=query, position=position, grade=grade, judged=judged)


def join_returned(blocks: Sequence[ReturnedDocuments]) -> ReturnedDocuments:
    """The documents that a system returns for all queries, from those for some queries each."""
    return replace(
        blocks[0],
        query=np.concatenate([block.query for block in blocks]),
        position=np.concatenate([block.position for block in blocks]),
        grade=np.concatenate([block.grade for block in blocks]),
        judged=np.concatenate([block.judged for block in blocks]),
    )


def _mean_by_rank(position: IntArray, gains: FloatArray, longest: int) -> FloatArray:
    """(longest,): the mean gain at each rank, or at the nearest rank that has any."""
    counts = np.bincount(position - 1, minlength=longest)
    sums = np.bincount(position - 1, gains, minlength=longest)
    known = np.flatnonzero(counts)
    if not len(known):
        return np.full(longest, np.nan)
    above = known[np.maximum(np.searchsorted(known, np.arange(longest), side="right") - 1, 0)]
    below = known[np.minimum(np.searchsorted(known, np.arange(longest)), len(known) - 1)]
    is_above = np.abs(np.arange(longest) - above) <= np.abs(below - np.arange(longest))
    nearest = np.where(is_above, above, below)
    return np.asarray(sums[nearest] / counts[nearest], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class TiedLists:
    """Returned documents in rank order, and the groups of ties they form.

    Attributes:
        runs: Whose candidates they are.
        query: (m,).
        position: (m,), 1-based.
        group: (m,) index of the group; never falls.
        grade: (m,).
        judged: (m,).
        owner: (G,) query of each group.
        before: (G,) documents that stand before the group (a).
        members: (G,) size of the group (n).
    """

    runs: AlignedRuns
    query: IntArray
    position: IntArray
    group: IntArray
    grade: IntArray
    judged: BoolArray
    owner: IntArray
    before: IntArray
    members: IntArray

    def sum_by_group(self, values: NDArray[np.generic]) -> FloatArray:
        """(G,): sums of the rows' values, (m,), by group."""
        return np.bincount(self.group, values, minlength=len(self.owner)).astype(np.float64)

    def by_query(self, values: FloatArray) -> FloatArray:
        """(Q,): sums of the rows' values, (m,), by query, in rank order."""
        return np.bincount(self.query, values, minlength=len(self.runs.queries)).astype(np.float64)

    def mean_by_rank(self, gain: NDArray[np.generic], depth: IntArray) -> FloatArray:
        """(m,): the mean of ``gain``, (m,), over each row's group; 0 beyond ``depth``, (Q,)."""
        mean = self.sum_by_group(gain) / self.members
        return np.where(self.position <= depth[self.query], mean[self.group], 0.0)

    def expect_at_first(
        self, relevant: BoolArray, depth: IntArray, value_at: Callable[[IntArray], FloatArray]
    ) -> FloatArray:
        """Expected value of a measure that depends on the first relevant document alone.

        It lies in the first group that has one, at its j-th place with the hypergeometric
        probability S(j − 1) · r/(n − j + 1), S(j) being that of no relevant one among the first j.

        Args:
            relevant: Shape (m,).
            depth: Shape (Q,): beyond this rank the value is 0.
            value_at: The measure's value where the first relevant document has this rank.

        Returns:
            Shape (Q,).
        """
        by_group = self.sum_by_group(relevant)
        holds = np.flatnonzero(by_group > 0)
        owner, index = np.unique(self.owner[holds], return_index=True)
        chosen = holds[index]
        r, n, a = by_group[chosen], self.members[chosen], self.before[chosen]
        value, none_yet = np.zeros(len(chosen)), np.ones(len(chosen))
        for j in range(1, int((n - r).max(initial=-1)) + 2):
            left = np.maximum(n - j + 1, 1)
            counts = a + j <= depth[owner]
            value += np.where(counts, none_yet * (r / left) * value_at(a + j), 0.0)
            none_yet *= np.maximum(left - r, 0) / left
        expected = np.zeros(len(self.runs.queries))
        expected[owner] = value
        return expected
