"""Extremes of average precision: exact for few unjudged documents, else a safe bound.

AP of one list is Σ_j j / ρ_j over R, ρ_j the position of its j-th relevant document and R the
number of all relevant ones. So j new relevant documents give one list most where they stand
highest, and least where they stand outside it or lowest. Two lists share the documents, and their
difference has no such order. Up to :data:`MOST_ENUMERATED` unjudged documents every completion is
tried. Beyond, the bound takes for each j the best choice for one list and the worst for the other:
no completion exceeds it, and with one list alone it is exact. A query with U unjudged documents
and L documents takes O(2^U · L), or O(U · L).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np

from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.evaluation.completions.extremes import Extremes
from fusion_bench.evaluation.completions.top_documents import TopDocuments
from fusion_bench.measures.rankings.ranking import relevant_counts

#: Unjudged documents of a query up to which every completion is tried.
MOST_ENUMERATED: Final = 8


@dataclass(frozen=True, eq=False)
class AveragePrecisionModel:
    """Average precision over the first documents of two systems.

    Attributes:
        top: The m documents.
        rel: The grade from which a document is relevant.
    """

    top: TopDocuments
    rel: int

    @cached_property
    def _known(self) -> IntArray:
        return relevant_counts(self.top.runs, self.rel)

    @cached_property
    def _slices(self) -> list[slice]:
        ends = np.searchsorted(self.top.query, np.arange(self.top.size + 1)).tolist()
        return [slice(start, end) for start, end in pairwise(ends)]

    def differences(self, grades: IntArray) -> FloatArray:
        """(Q,): 0 where nothing is relevant."""
        chosen = (grades >= self.rel)[None, :]
        return np.array([self._values(q, chosen[:, part])[0] for q, part in self._query_slices()])

    def _query_slices(self) -> list[tuple[int, slice]]:
        return list(enumerate(self._slices))

    def _values(self, query: int, chosen: BoolArray) -> FloatArray:
        """(C,): the difference where these documents, shape (C, n), are relevant."""
        part = self._slices[query]
        relevant = self._known[query] + (chosen & ~self.top.judged[part]).sum(axis=1)
        first, second = (_sum_precision(chosen, p[part]) for p in (self.top.first, self.top.second))
        return np.asarray((first - second) / np.maximum(relevant, 1))

    def find_extremes(self) -> Extremes:
        """Exact where every query has few unjudged documents, or there is one list."""
        top = self.top
        low, high = np.zeros(top.size), np.zeros(top.size)
        grades = [top.grade.copy(), top.grade.copy()]
        is_exact = True
        for query, part in self._query_slices():
            unjudged = np.flatnonzero(~top.judged[part])
            if len(unjudged) <= MOST_ENUMERATED:
                ends = self._enumerate(query, unjudged)
            else:
                ends = self._bound(query, unjudged)
                is_exact = is_exact and not (top.first[part].any() and top.second[part].any())
            for end, (value, chosen), column in zip((0, 1), ends, (low, high), strict=True):
                column[query] = value
                grades[end][part.start + unjudged[chosen]] = self.rel
        return Extremes(low, high, grades[0], grades[1], is_exact)

    def _enumerate(
        self, query: int, unjudged: IntArray
    ) -> tuple[tuple[float, BoolArray], tuple[float, BoolArray]]:
        part = self._slices[query]
        known = self.top.grade[part] >= self.rel
        bits = np.arange(2 ** len(unjudged))[:, None] >> np.arange(len(unjudged)) & 1
        chosen = np.tile(known, (len(bits), 1))
        chosen[:, unjudged] = bits.astype(bool)
        values = self._values(query, chosen)
        low, high = int(values.argmin()), int(values.argmax())
        return (
            (float(values[low]), bits[low].astype(bool)),
            (float(values[high]), bits[high].astype(bool)),
        )

    def _bound(
        self, query: int, unjudged: IntArray
    ) -> tuple[tuple[float, BoolArray], tuple[float, BoolArray]]:
        part = self._slices[query]
        places = [self.top.first[part], self.top.second[part]]
        most, least = (
            [self._sums(query, unjudged, place, is_most=flag) for place in places]
            for flag in (True, False)
        )
        relevant = np.maximum(self._known[query] + np.arange(len(unjudged) + 1), 1)
        high = (most[0][0] - least[1][0]) / relevant
        low = (least[0][0] - most[1][0]) / relevant
        j, i = int(high.argmax()), int(low.argmin())
        made_relevant = np.zeros((2, len(unjudged)), dtype=bool)
        made_relevant[0][most[1][1][:i]] = True
        made_relevant[1][most[0][1][:j]] = True
        return (float(low[i]), made_relevant[0]), (float(high[j]), made_relevant[1])

    def _sums(
        self, query: int, unjudged: IntArray, place: IntArray, *, is_most: bool
    ) -> tuple[FloatArray, IntArray]:
        """(U+1,): Σ precision of one list with j new relevant documents, and their order."""
        known = self.top.grade[self._slices[query]] >= self.rel
        places = place[unjudged]
        key = np.where(places > 0, places, np.iinfo(np.int64).max)
        order = np.argsort(key if is_most else -key, kind="stable")
        chosen = np.tile(known, (len(unjudged) + 1, 1))
        for j, row in enumerate(unjudged[order].tolist(), 1):
            chosen[j:, row] = True
        return _sum_precision(chosen, place), order

    def grade_effects(self, grades: IntArray) -> FloatArray:
        """(m,): relevant or not; the other documents stay."""
        effects = np.zeros(len(self.top.query))
        for query, part in self._query_slices():
            unjudged = np.flatnonzero(~self.top.judged[part])
            if not len(unjudged):
                continue
            base = np.tile(grades[part] >= self.rel, (2 * len(unjudged), 1))
            base[np.arange(len(base)), np.repeat(unjudged, 2)] = np.tile([0, 1], len(unjudged))
            values = self._values(query, base).reshape(-1, 2)
            effects[part.start + unjudged] = np.ptp(values, axis=1)
        return effects


def _sum_precision(chosen: BoolArray, place: IntArray) -> FloatArray:
    """(C,): Σ precision at the relevant documents of a list.

    Args:
        chosen: Shape (C, n): which documents are relevant.
        place: Shape (n,): their positions; 0 = not in the list.
    """
    order = np.argsort(place)
    order = order[place[order] > 0]
    relevant = chosen[:, order]
    return np.asarray((np.cumsum(relevant, axis=1) * relevant / place[order]).sum(axis=1))
