"""Returned documents with the gains that unjudged ones are given: the mean of judged ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.measures.rankings.ranking import has_grade


@dataclass(frozen=True, eq=False)
class ReturnedDocuments:
    """The m documents that one system returns for all queries, in any order.

    Attributes:
        runs: Gives the Q queries, and the ideals of their judgments.
        query: (m,).
        position: (m,), 1-based.
        grade: (m,); 0 where unjudged.
        judged: (m,): whether the grade is known; a negative grade is not, as to trec_eval.
    """

    runs: AlignedRuns
    query: IntArray
    position: IntArray
    grade: IntArray
    judged: BoolArray

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
    runs: AlignedRuns, parts: Iterable[tuple[IntArray, AlignedRuns, IntArray]]
) -> ReturnedDocuments:
    """The documents that a system returns, put together from the parts that rank its queries.

    Args:
        runs: All Q queries.
        parts: For each part the indices of its queries among the Q, its view, and the positions
            of the view's candidates; 0 = not returned.
    """
    columns: list[tuple[NDArray[np.generic], ...]] = [
        (
            index[view.query_index[rows]],
            positions[rows],
            view.grades[rows],
            has_grade(view)[rows],
        )
        for index, view, positions in parts
        for rows in (np.flatnonzero(positions > 0),)
    ]
    return ReturnedDocuments(
        runs, *(np.concatenate(column) for column in zip(*columns, strict=True))
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
