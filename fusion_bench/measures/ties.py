"""How much a measure depends on the order of ties: least, greatest and expected value.

The order of documents with equal scores is a convention, not a finding. For every query this
module gives the range of a measure over all orders that the scores allow, and its mean over them
(McSherry and Najork, ECIR 2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, freeze
from fusion_bench.data.records import Qrels
from fusion_bench.measures.compute import evaluate
from fusion_bench.measures.names import Measure
from fusion_bench.measures.ranking import BoolArray, counted, seen_as_judged
from fusion_bench.measures.tied_lists import expectation, tied_lists
from fusion_bench.measures.ties_at_cutoff import over_the_edge

__all__ = ["TieSensitivity", "tie_sensitivity"]


@dataclass(frozen=True, eq=False)
class TieSensitivity:
    """What the order of ties could make of each measure.

    Attributes:
        affected: (M,): queries whose value depends on it.
        minimum: (M, Q).
        maximum: (M, Q).
        expected: (M, Q): mean over all orders, each as likely; NaN where ir_measures computes
            the measure and the order matters.
    """

    affected: IntArray
    minimum: FloatArray
    maximum: FloatArray
    expected: FloatArray

    def __post_init__(self) -> None:
        for array in (self.affected, self.minimum, self.maximum, self.expected):
            freeze(array)


class _Order(NamedTuple):
    """What the closed forms work from."""

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
    qrels: Qrels | None = None,
) -> TieSensitivity:
    """Least, greatest and expected value over all orders of equal scores.

    Of a measure that ir_measures computes, the extremes are those of three orders: the given
    one, best grades first, and best grades last in each group. They are the true extremes where
    a better document higher up never lowers the measure.

    Args:
        measures: (M,).
        runs: The candidates.
        positions: Shape (N,): places before any cut; 0 = not returned.
        firsts: Shape (N,): position of the first member of each candidate's group of ties, as
            :func:`fusion_bench.data.ordering.tie_firsts` returns it.
        limit: Documents beyond this place are not returned (``top_k``); None = all are.
        qrels: The judgements, needed only where ir_measures computes a measure.

    Raises:
        ConfigError: A measure of ir_measures without ``qrels``.
    """
    order = _Order(runs, positions, firsts, limit)
    size = (len(measures), len(runs.queries))
    minimum, maximum = np.empty(size), np.empty(size)
    movable = _movable(order)
    for of_judged in (False, True):
        chosen = [m for m, x in enumerate(measures) if (x.kind == "Judged") is of_judged]
        if not chosen:
            continue
        some = [measures[m] for m in chosen]
        keys = runs.judged.astype(np.int64) + seen_as_judged(runs) if of_judged else runs.grades
        lowest, highest = (_replaced(order, movable, sign * keys) for sign in (1, -1))
        minimum[chosen] = evaluate(some, runs, lowest, qrels=qrels)
        maximum[chosen] = evaluate(some, runs, highest, qrels=qrels)
    others = [m for m, measure in enumerate(measures) if measure.kind == "external"]
    if others:
        given = evaluate([measures[m] for m in others], runs, _cut(positions, limit), qrels=qrels)
        seen = np.stack([minimum[others], maximum[others], given])
        minimum[others], maximum[others] = seen.min(axis=0), seen.max(axis=0)
    differs = (minimum != maximum) & ~(np.isnan(minimum) & np.isnan(maximum))
    expected = minimum.copy()
    for m, measure in enumerate(measures):
        if differs[m].any():
            expected[m, differs[m]] = _expected(measure, order, differs[m])[differs[m]]
    return TieSensitivity(differs.sum(axis=1), minimum, maximum, expected)


class _Movable(NamedTuple):
    """Candidates whose order among themselves a measure may see.

    Attributes:
        rows: (m,).
        head: (m,) the group of ties of each.
    """

    rows: IntArray
    head: IntArray


def _movable(order: _Order) -> _Movable:
    """The members of groups of at least two, one of them judged."""
    runs = order.runs
    rows = np.flatnonzero(order.positions > 0)
    head = runs.offsets[runs.query_index[rows]] + order.firsts[rows] - 1
    size = len(order.positions)
    judged = np.flatnonzero(runs.judged[rows])
    seen = np.zeros(size, dtype=bool)
    seen[head[judged]] = True
    kept = np.flatnonzero(seen[head] & (np.bincount(head, minlength=size) > 1)[head])
    return _Movable(rows[kept], head[kept])


def _replaced(order: _Order, movable: _Movable, keys: IntArray) -> IntArray:
    """Shape (N,): positions with every group of ties ordered by ``keys``, (N,), lowest first."""
    ordered = np.lexsort((keys[movable.rows], movable.head))
    rows, head = movable.rows[ordered], movable.head[ordered]
    placed = order.positions.copy()
    placed[rows] = order.firsts[rows] + counted(head) - 1
    return _cut(placed, order.limit)


def _cut(positions: IntArray, limit: int | None) -> IntArray:
    """The same positions, 0 beyond the limit."""
    return positions if limit is None else np.where(positions > limit, 0, positions)


def _expected(measure: Measure, order: _Order, queries: BoolArray) -> FloatArray:
    """(Q,): expected value at the queries asked for."""
    size = len(order.runs.queries)
    if measure.kind == "external":
        return np.full(size, np.nan)
    lists = tied_lists(*order[:3], queries, judged_only=measure.judged_only)
    everything = np.full(size, np.iinfo(np.int64).max)
    if order.limit is None:
        return expectation(measure, lists, everything)
    if not measure.judged_only:
        return expectation(measure, lists, np.minimum(everything, order.limit))
    shown = tied_lists(*order[:3], queries, judged_only=False)
    return over_the_edge(measure, lists, shown, order.limit)
