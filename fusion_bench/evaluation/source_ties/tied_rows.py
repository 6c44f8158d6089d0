"""Equal scores inside one list: which candidates they are, and other orders of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import KEY_SPACING, BoolArray, FloatArray, IntArray, score_keys


class TiedRows(NamedTuple):
    """The candidates of one list whose score another candidate of the same query has too.

    Attributes:
        rows: (m,) candidates, by query and rank.
        group: (m,) the group of equal scores of each; never falls.
    """

    rows: IntArray
    group: IntArray

    def settle(self, ranks: IntArray, keys: FloatArray) -> IntArray:
        """(N,): the ranks with every group in the order of its keys, lowest first.

        Args:
            ranks: Shape (N,): as the list has them.
            keys: Shape (m,): of each tied candidate.
        """
        order = np.lexsort((keys, self.group))
        settled = ranks.copy()
        settled[self.rows[order]] = ranks[self.rows]
        return settled

    def queries(self, runs: AlignedRuns) -> BoolArray:
        """(Q,): the queries that have tied candidates."""
        marked = np.zeros(len(runs.queries), dtype=bool)
        marked[runs.query_index[self.rows]] = True
        return marked


def order_by_rank(runs: AlignedRuns, ranks: IntArray) -> IntArray:
    """(n,): the candidates that a list returned, by query and rank.

    Args:
        runs: The candidates.
        ranks: Shape (N,): 1-based, different within a query; 0 = not in the list.
    """
    rows = np.flatnonzero(ranks > 0)
    query, place = runs.query_index[rows], ranks[rows]
    counts = np.bincount(query, minlength=len(runs.queries))
    if (place > counts[query]).any():  # ranks with gaps
        return rows[np.lexsort((place, query))]
    ordered = np.empty(len(rows), dtype=np.int64)
    ordered[(np.cumsum(counts) - counts)[query] + place - 1] = rows
    return ordered


def tied_with_next(runs: AlignedRuns, ordered: IntArray, scores: FloatArray) -> BoolArray:
    """(n - 1,): whether a candidate has the score of the next one of the same query.

    Scores are equal where their keys are (see :mod:`fusion_bench.data.ordering`).

    Args:
        runs: The candidates.
        ordered: Shape (n,): candidates by query and rank.
        scores: Shape (N,).
    """
    above, below = scores[ordered[:-1]], scores[ordered[1:]]
    query = runs.query_index[ordered]
    with np.errstate(over="ignore"):
        apart = np.abs(above - below)
    near = apart <= np.maximum(np.abs(above), np.abs(below)) * KEY_SPACING
    close = np.flatnonzero(near & (query[1:] == query[:-1]))
    is_tied = np.zeros(len(above), dtype=bool)
    is_tied[close] = score_keys(above[close]) == score_keys(below[close])
    return is_tied


def find_tied_rows(runs: AlignedRuns, ranks: IntArray, scores: FloatArray) -> TiedRows:
    """The tied candidates of one list.

    Args:
        runs: The candidates.
        ranks: Shape (N,): ranks of the list; 0 = not in it.
        scores: Shape (N,): scores of the list.
    """
    ordered = order_by_rank(runs, ranks)
    is_tied = tied_with_next(runs, ordered, scores)
    is_member = np.zeros(len(ordered), dtype=bool)
    is_member[1:] = is_tied
    is_member[:-1] |= is_tied
    starts = np.ones(len(ordered), dtype=bool)
    starts[1:] = ~is_tied
    return TiedRows(ordered[is_member], np.cumsum(starts)[is_member])
