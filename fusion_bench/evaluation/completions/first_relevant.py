"""Extremes of measures that depend on the first relevant document alone: RR and Success.

A second relevant document beside the first one of a list changes nothing there, and can only help
the other list. So the extremes over all completions are those over the completions with at most
one new relevant document: U + 1 values for U unjudged documents. The result is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.evaluation.completions.extremes import Extremes
from fusion_bench.evaluation.completions.top_documents import TopDocuments


@dataclass(frozen=True, eq=False)
class FirstRelevant:
    """A measure of this kind over the first documents of two systems.

    Attributes:
        top: The m documents.
        rel: The grade from which a document is relevant.
        value: Positions (m,) → value of a list whose first relevant document stands there; 0 for
            position 0.
    """

    top: TopDocuments
    rel: int
    value: Callable[[IntArray], FloatArray]

    def _best(self, positions: IntArray, is_relevant: np.typing.NDArray[np.bool_]) -> FloatArray:
        """(Q,): the value of one list; a value never rises with the position."""
        best = np.zeros(self.top.size)
        np.maximum.at(best, self.top.query, np.where(is_relevant, self.value(positions), 0.0))
        return best

    def differences(self, grades: IntArray) -> FloatArray:
        """(Q,): 0 where nothing is relevant."""
        is_relevant = grades >= self.rel
        first = self._best(self.top.first, is_relevant)
        return first - self._best(self.top.second, is_relevant)

    def _best_others(
        self, positions: IntArray, is_relevant: np.typing.NDArray[np.bool_]
    ) -> FloatArray:
        """(m,): the value of one list without the document itself."""
        query = self.top.query
        values = np.where(is_relevant, self.value(positions), 0.0)
        order = np.lexsort((-values, query))
        starts = np.searchsorted(query, np.arange(self.top.size))
        ends = np.searchsorted(query, np.arange(self.top.size), side="right")
        filled = np.flatnonzero(ends > starts)
        best = self._best(positions, is_relevant)
        others = best[query]
        second = np.zeros(self.top.size)
        several = np.flatnonzero(ends > starts + 1)
        second[several] = values[order[starts[several] + 1]]
        leaders = order[starts[filled]]
        others[leaders] = second[filled]
        return others

    def _each_way(self, is_relevant: np.typing.NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
        """(m,) each: the difference without each document, and with it relevant."""
        places = (self.top.first, self.top.second)
        first, second = (self._best_others(place, is_relevant) for place in places)
        with_first, with_second = (
            np.maximum(others, self.value(place))
            for others, place in zip((first, second), places, strict=True)
        )
        return first - second, with_first - with_second

    def find_extremes(self) -> Extremes:
        """Exact."""
        top = self.top
        _, values = self._each_way(top.grade >= self.rel)
        ends, grades = [], []
        for sign in (-1.0, 1.0):
            best = sign * self.differences(top.grade)
            rows = np.flatnonzero(~top.judged & (sign * values > best[top.query]))
            rows = rows[np.lexsort((-sign * values[rows], top.query[rows]))]
            query, index = np.unique(top.query[rows], return_index=True)
            best[query] = sign * values[rows[index]]
            assigned = top.grade.copy()
            assigned[rows[index]] = self.rel
            ends.append(sign * best)
            grades.append(assigned)
        return Extremes(ends[0], ends[1], grades[0], grades[1])

    def grade_effects(self, grades: IntArray) -> FloatArray:
        """(m,): relevant or not; the other documents stay."""
        without, with_it = self._each_way(grades >= self.rel)
        return np.where(self.top.judged, 0.0, np.abs(with_it - without))
