"""Ranked lists with their groups of ties, and expected values over the orders inside the groups.

Closed forms after F. McSherry and M. Najork, "Computing Information Retrieval Performance
Measures Efficiently in the Presence of Tied Scores", ECIR 2008. Throughout, a
group stands behind ``a`` documents and has ``n`` members, ``r`` of them relevant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.measures.compute import gains, ideal_dcg, log_discounts, ratio
from fusion_bench.measures.names import Measure
from fusion_bench.measures.ranking import BoolArray, counted, relevant_counts, seen_as_judged

__all__ = ["TiedLists", "expectation", "tied_lists"]


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

    def totals(self, values: NDArray[np.generic]) -> FloatArray:
        """(G,): sums of the rows' values, (m,), by group."""
        return np.bincount(self.group, values, minlength=len(self.owner)).astype(np.float64)

    def by_query(self, values: FloatArray) -> FloatArray:
        """(Q,): sums of the rows' values, (m,), by query, in rank order."""
        return np.bincount(self.query, values, minlength=len(self.runs.queries)).astype(np.float64)


def tied_lists(
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
        rows = rows[seen_as_judged(runs)[rows]]
    slots = runs.offsets[runs.query_index[rows]] + positions[rows]
    rows = rows[np.argsort(slots)]
    query = runs.query_index[rows]
    heads = runs.offsets[query] + firsts[rows]  # tells groups apart: distinct and never falling
    position = counted(query) if judged_only else positions[rows]
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


def expectation(measure: Measure, lists: TiedLists, limit: IntArray) -> FloatArray:
    """Expected value over uniformly random orders inside every group of ties.

    Args:
        measure: One of the engine's own.
        lists: The lists; of judged documents only where the measure says so.
        limit: Shape (Q,): documents beyond this position are not returned.

    Returns:
        Shape (Q,).
    """
    depth = limit if measure.cutoff is None else np.minimum(limit, measure.cutoff)
    if measure.kind in ("RR", "Success"):
        return _first_relevant(measure, lists, depth)
    if measure.kind == "AP":
        return _average_precision(measure, lists, depth)
    return _linear(measure, lists, depth)


def _linear(measure: Measure, lists: TiedLists, depth: IntArray) -> FloatArray:
    """nDCG, P, R, Judged: every member of a group earns the group's mean gain."""
    runs = lists.runs
    gain: NDArray[np.generic] = lists.grade >= measure.rel
    if measure.kind == "nDCG":
        gain = gains(lists.grade, measure.dcg)
        whole = ideal_dcg(runs, measure.dcg, measure.cutoff)
    elif measure.kind == "R":
        whole = relevant_counts(runs, measure.rel).astype(np.float64)
    elif measure.kind == "P":
        whole = np.full(len(runs.queries), float(measure.cutoff or 1))
    else:
        gain = lists.judged
        length = np.bincount(lists.query, minlength=len(runs.queries))
        whole = np.minimum(length, depth).astype(np.float64)
    mean = lists.totals(gain) / lists.members
    terms = np.where(lists.position <= depth[lists.query], mean[lists.group], 0.0)
    if measure.kind == "nDCG":
        terms = terms / log_discounts(runs)[lists.position]
    return ratio(lists.by_query(terms), whole)


def _average_precision(measure: Measure, lists: TiedLists, depth: IntArray) -> FloatArray:
    """Sum of E[relevant at i · precision at i] over the positions i.

    The j-th member of a group behind R relevant documents is relevant with chance r/n; given
    that, each of the j − 1 members before it is with chance (r − 1)/(n − 1).
    """
    relevant = lists.totals(lists.grade >= measure.rel)
    running = np.cumsum(relevant) - relevant
    earlier = running - running[np.searchsorted(lists.owner, lists.owner)]  # in its own query
    r, n = relevant[lists.group], lists.members[lists.group]
    others = (lists.position - lists.before[lists.group] - 1) * (r - 1) / np.maximum(n - 1, 1)
    terms = r / n * (earlier[lists.group] + 1 + others) / lists.position
    terms[lists.position > depth[lists.query]] = 0
    return ratio(lists.by_query(terms), relevant_counts(lists.runs, measure.rel))


def _first_relevant(measure: Measure, lists: TiedLists, depth: IntArray) -> FloatArray:
    """RR and Success: where the first relevant document falls.

    It lies in the first group that has one, at its j-th place with the hypergeometric chance
    S(j − 1) · r/(n − j + 1), S(j) being the chance that the first j members are all irrelevant.
    """
    relevant = lists.totals(lists.grade >= measure.rel)
    holds = np.flatnonzero(relevant > 0)
    owner, index = np.unique(lists.owner[holds], return_index=True)
    chosen = holds[index]
    r, n, a = relevant[chosen], lists.members[chosen], lists.before[chosen]
    value, none_yet = np.zeros(len(chosen)), np.ones(len(chosen))
    for j in range(1, int((n - r).max(initial=-1)) + 2):
        left = np.maximum(n - j + 1, 1)
        reward = 1 / (a + j) if measure.kind == "RR" else 1.0
        value += np.where(a + j <= depth[owner], none_yet * (r / left) * reward, 0.0)
        none_yet *= np.maximum(left - r, 0) / left
    expected = np.zeros(len(lists.runs.queries))
    expected[owner] = value
    return expected
