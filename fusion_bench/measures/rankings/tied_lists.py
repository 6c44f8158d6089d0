"""Ranked lists with their groups of ties, and expected values over the orders inside the groups.

Closed forms after F. McSherry and M. Najork, "Computing Information Retrieval Performance
Measures Efficiently in the Presence of Tied Scores", ECIR 2008. Throughout, a
group stands behind ``a`` documents and has ``n`` members, ``r`` of them relevant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.measures.rankings.ranking import count_in_groups, has_grade


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


def find_tied_lists(
    runs: AlignedRuns,
    positions: IntArray,
    firsts: IntArray,
    queries: BoolArray,
    *,
    judged_only: bool,
) -> TiedLists:
    """The lists of some queries.

    Args:
        runs: The candidates.
        positions: Shape (N,); 0 = not returned.
        firsts: Shape (N,): position of the first member of each candidate's group.
        queries: Shape (Q,): the queries to take.
        judged_only: Take the unjudged documents out, which leaves smaller groups.
    """
    rows = np.flatnonzero((positions > 0) & queries[runs.query_index])
    if judged_only:
        rows = rows[has_grade(runs)[rows]]
    slots = runs.offsets[runs.query_index[rows]] + positions[rows]
    rows = rows[np.argsort(slots)]
    query = runs.query_index[rows]
    heads = runs.offsets[query] + firsts[rows]  # tells groups apart: distinct and never falling
    position = count_in_groups(query) if judged_only else positions[rows]
    starts = np.flatnonzero(np.diff(heads, prepend=-1) > 0)
    return TiedLists(
        runs=runs,
        query=query,
        position=position,
        group=np.cumsum(np.diff(heads, prepend=-1) > 0) - 1,
        grade=runs.grades[rows],
        judged=runs.judged[rows],
        owner=query[starts],
        before=position[starts] - 1,
        members=np.diff(np.append(starts, len(rows))),
    )
