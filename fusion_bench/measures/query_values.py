"""Values of measures per query, all queries at once; how much they depend on the order of ties.

Sums run in rank order, one query after the other. So a value never depends on how candidates are
stored, on other queries, or on how queries are split between processes, to the last bit.

The order of documents with equal scores is a convention, not a finding. For every query this
module gives the range of a measure over all orders that the scores allow, and its mean over them
(McSherry and Najork, ECIR 2008).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray, cut_positions, make_readonly
from fusion_bench.measures._base import Measure
from fusion_bench.measures.external_measures import ExternalMeasure, evaluate_externally
from fusion_bench.measures.rankings import Ranking, TiedLists, count_in_groups, has_grade


def compute_measures(
    measures: Sequence[Measure], runs: AlignedRuns, positions: IntArray
) -> FloatArray:
    """Score one order of the candidates.

    Args:
        measures: (M,).
        runs: The candidates.
        positions: Shape (N,): 1, 2, 3 … inside each query; 0 = not returned.

    Returns:
        Shape (M, Q). A query without a relevant document or with an empty list has 0.

    Raises:
        ConfigError: A measure of ir_measures, and runs without ``qrels``.
        DataError: A grade too great for 2^grade.
    """
    rankings = {flag: Ranking(runs, positions, judged_only=flag) for flag in (False, True)}
    values = np.zeros((len(measures), len(runs.queries)))
    external = []
    for m, measure in enumerate(measures):
        if isinstance(measure, ExternalMeasure):
            external.append(m)
        else:
            values[m] = measure.compute_values(rankings[measure.judged_only])
    if external:
        names = [measures[m].name for m in external]
        values[external] = evaluate_externally(names, runs, positions)
    return values


@dataclass(frozen=True, eq=False)
class TieSensitivity:
    """How much each measure depends on the order of ties.

    Attributes:
        affected: (M,): queries whose value depends on it.
        minimum: (M, Q).
        maximum: (M, Q).
        expected: (M, Q): mean over all orders, each as likely; NaN where the order matters and
            the measure has no formula for it.
    """

    affected: IntArray
    minimum: FloatArray
    maximum: FloatArray
    expected: FloatArray

    def __post_init__(self) -> None:
        for array in (self.affected, self.minimum, self.maximum, self.expected):
            make_readonly(array)


class _TiedOrder(NamedTuple):
    """One order of the candidates, with its groups of ties."""

    runs: AlignedRuns
    positions: IntArray
    firsts: IntArray
    limit: int | None


def tie_sensitivity(
    measures: Sequence[Measure],
    runs: AlignedRuns,
    positions: IntArray,
    firsts: IntArray,
    *,
    limit: int | None = None,
) -> TieSensitivity:
    """Least, greatest and expected value over all orders of equal scores.

    Of a measure that reads more than relevant or judged ranks, the extremes are those of three
    orders: the given one, best grades first, and best grades last in each group. They are the
    true extremes where a better document higher up never lowers the measure.

    Args:
        measures: (M,).
        runs: The candidates.
        positions: Shape (N,): ranks before any cut; 0 = not returned.
        firsts: Shape (N,): position of the first member of each candidate's group of ties, as
            :func:`fusion_bench.data.ordering.tie_group_starts` returns it.
        limit: Documents beyond this rank are not returned (``top_k``); None = all are.

    Raises:
        ConfigError: A measure of ir_measures, and runs without ``qrels``.
    """
    order = _TiedOrder(runs, positions, firsts, limit)
    size = (len(measures), len(runs.queries))
    minimum, maximum = np.empty(size), np.empty(size)
    movable = _find_movable(order)
    for of_judged in (False, True):
        chosen = [m for m, x in enumerate(measures) if (x.required_ranks == "judged") is of_judged]
        if not chosen:
            continue
        group = [measures[m] for m in chosen]
        keys = runs.judged.astype(np.int64) + has_grade(runs) if of_judged else runs.grades
        lowest = _reorder_ties(order, movable, keys)
        minimum[chosen] = maximum[chosen] = compute_measures(group, runs, lowest)
        if len(movable[0]):
            highest = _reorder_ties(order, movable, -keys)
            maximum[chosen] = compute_measures(group, runs, highest)
    others = [m for m, measure in enumerate(measures) if measure.required_ranks == "all"]
    if others:
        group = [measures[m] for m in others]
        given = compute_measures(group, runs, cut_positions(positions, limit))
        values = np.stack([minimum[others], maximum[others], given])
        minimum[others], maximum[others] = values.min(axis=0), values.max(axis=0)
    differs = (minimum != maximum) & ~(np.isnan(minimum) & np.isnan(maximum))
    expected = minimum.copy()
    for m, measure in enumerate(measures):
        if differs[m].any():
            expected[m, differs[m]] = _expected_values(measure, order, differs[m])[differs[m]]
    return TieSensitivity(differs.sum(axis=1), minimum, maximum, expected)


def _find_movable(order: _TiedOrder) -> tuple[IntArray, IntArray]:
    """(m,) candidates whose order a measure may see, and (m,) the group of ties of each.

    They are the members of groups of at least two, one of them judged.
    """
    runs = order.runs

    def heads(rows: IntArray) -> IntArray:
        return np.asarray(runs.offsets[runs.query_index[rows]] + order.firsts[rows] - 1)

    marks = np.zeros((2, len(order.positions)), dtype=bool)
    marks[0, heads(np.flatnonzero(order.positions != order.firsts))] = True
    marks[1, heads(np.flatnonzero(runs.judged & (order.positions > 0)))] = True
    is_head = marks[0] & marks[1]
    queries = np.zeros(len(runs.queries), dtype=bool)
    queries[runs.query_index[is_head]] = True
    rows = np.flatnonzero(queries[runs.query_index] & (order.positions > 0))
    head = heads(rows)
    kept = np.flatnonzero(is_head[head])
    return rows[kept], head[kept]


def _reorder_ties(
    order: _TiedOrder, movable: tuple[IntArray, IntArray], keys: IntArray
) -> IntArray:
    """Shape (N,): positions with every group of ties ordered by ``keys``, (N,), lowest first."""
    rows, head = movable
    ordered = np.lexsort((keys[rows], head))
    rows, head = rows[ordered], head[ordered]
    positions = order.positions.copy()
    positions[rows] = order.firsts[rows] + count_in_groups(head) - 1
    return cut_positions(positions, order.limit)


def _find_tied_lists(
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


def _expected_values(measure: Measure, order: _TiedOrder, queries: BoolArray) -> FloatArray:
    """(Q,): expected value at these queries."""
    lists = _find_tied_lists(*order[:3], queries, judged_only=measure.judged_only)
    if order.limit is not None and measure.judged_only:
        returned = _find_tied_lists(*order[:3], queries, judged_only=False)
        return _expect_across_limit(measure, lists, returned, order.limit)
    depth = np.full(len(order.runs.queries), order.limit or np.iinfo(np.int64).max)
    return measure.expected_value(lists, measure.cut_depth(depth))


def _expect_across_limit(
    measure: Measure, lists: TiedLists, returned: TiedLists, limit: int
) -> FloatArray:
    """Expected value over judged documents where a group of ties lies across the limit.

    Chance decides how many judged members of that group are returned. Given that number,
    they are a random order of the group's judged members cut after so many: the expected value
    is the mean over the numbers, which are distributed hypergeometrically.

    Args:
        measure: A judged-only measure.
        lists: The judged documents.
        returned: All documents.
        limit: Documents beyond this position of the whole list are not returned.
    """
    size = len(lists.runs.queries)
    last = returned.before + returned.members
    across = np.flatnonzero((returned.before < limit) & (limit <= last))
    judged = returned.sum_by_group(returned.judged & (returned.grade >= 0)).astype(np.int64)
    inside = np.where(last < limit, judged, 0)
    sure = np.bincount(returned.owner, inside, minlength=size).astype(np.int64)
    drawn = limit - returned.before[across]
    owner, members, marked = returned.owner[across], returned.members[across], judged[across]
    total = np.zeros(size)
    for number in range(int(np.minimum(drawn, marked).max(initial=0)) + 1):
        probability = np.zeros(size)
        probability[owner] = [
            _hypergeometric_probability(number, *urn)
            for urn in zip(members.tolist(), marked.tolist(), drawn.tolist(), strict=True)
        ]
        if number == 0:
            ended = np.setdiff1d(np.arange(size), owner)  # lists that end before the limit
            probability[ended] = 1.0
        total += probability * measure.expected_value(lists, measure.cut_depth(sure + number))
    return total


def _hypergeometric_probability(number: int, members: int, marked: int, drawn: int) -> float:
    """Probability of exactly ``number`` marked ones among the drawn members."""
    if number > drawn:
        return 0.0
    ways = math.comb(marked, number) * math.comb(members - marked, drawn - number)
    return ways / math.comb(members, drawn)
