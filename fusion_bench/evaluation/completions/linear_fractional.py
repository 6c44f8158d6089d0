"""Extremes of measures that are a sum of gains over an ideal: nDCG, precision and recall.

The difference of two lists is N(g) / I(g). N = Σ_d gain(g_d) · w_d, w_d being the document's
discount in the first list less that in the second. I depends on the number c_t of documents of
grade t or better alone: I = Σ_t Δ_t · D(c_t), Δ_t the step of the gain at grade t, and D(c) the sum
of the first c discounts (nDCG), c (recall), or the cutoff (precision).

The greatest value is found with Dinkelbach's method (Management Science 13, 1967): λ is raised to
N / I of the grades that maximize N − λI, until nothing does better. For given λ the best m_t
documents of grade t or better are those of greatest weight, so N − λI is a sum over t of terms
that depend on m_t alone, under m_1 ≥ m_2 ≥ …: one pass over t with running maxima. With U unjudged
documents and T grades a step takes O(U·T); a handful of steps suffices. The result is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.rows.grouped_rows import query_of_rows
from fusion_bench.evaluation.completions.extremes import Extremes
from fusion_bench.evaluation.completions.top_documents import TopDocuments
from fusion_bench.measures.rankings.ranking import divide_or_zero

#: Values this close are equal: sums of discounts round in another order.
ROUNDING: Final = 1e-14
#: Cells of a table over queries and documents that are worked on at a time.
BLOCK_CELLS: Final = 2_000_000
#: Dinkelbach's method converges faster than any geometric series: this is never reached.
MOST_STEPS: Final = 100


@dataclass(frozen=True, eq=False)
class LinearFractional:
    """A measure of this kind over the first documents of two systems.

    Attributes:
        top: The m documents.
        thresholds: (T,): the positive grades of the scale and of the judgments, ascending.
        steps: (T,): how much the gain of each exceeds that of the one before; above 0.
        weights: (m,): discount in the first list less that in the second.
        ideal: Numbers of documents of some grade or better, any shape → their part of the ideal.
    """

    top: TopDocuments
    thresholds: IntArray
    steps: FloatArray
    weights: FloatArray
    ideal: Callable[[IntArray], FloatArray]

    @cached_property
    def _known(self) -> IntArray:
        """(Q, T): judged documents of each grade or better, in the lists or not."""
        runs = self.top.runs
        query = query_of_rows(runs.ideal_offsets)
        rows = [
            np.bincount(query[runs.ideal_grades >= grade], minlength=self.top.size)
            for grade in self.thresholds.tolist()
        ]
        return np.stack(rows, axis=1)

    @cached_property
    def _judged_part(self) -> FloatArray:
        """(Q,): the numerators where no unjudged document is relevant."""
        return self._numerators(self.top.grade)

    def _gains(self, grades: IntArray) -> FloatArray:
        return np.asarray((grades[..., None] >= self.thresholds) @ self.steps)

    def _parts(self, grades: IntArray) -> tuple[FloatArray, IntArray]:
        """(Q,) numerators, and (Q, T) documents of each grade or better."""
        top, unjudged = self.top, ~self.top.judged
        counts = self._known.copy()
        np.add.at(counts, top.query[unjudged], grades[unjudged, None] >= self.thresholds)
        return self._numerators(grades), counts

    def _numerators(self, grades: IntArray) -> FloatArray:
        terms = self._gains(grades) * self.weights
        return np.bincount(self.top.query, terms, minlength=self.top.size).astype(np.float64)

    def differences(self, grades: IntArray) -> FloatArray:
        """(Q,): 0 where nothing is relevant."""
        numerator, counts = self._parts(grades)
        return divide_or_zero(numerator, self._ideals(counts))

    def _ideals(self, counts: IntArray) -> FloatArray:
        ideals = np.asarray(self.ideal(counts) @ self.steps)
        return np.where(counts[..., 0] > 0, ideals, 0.0)

    def grade_effects(self, grades: IntArray) -> FloatArray:
        """(m,): each grade in turn; the other documents stay."""
        top, rows = self.top, np.flatnonzero(~self.top.judged)
        numerator, counts = self._parts(grades)
        query, known = top.query[rows], grades[rows, None] >= self.thresholds
        rest = numerator[query] - self._gains(grades[rows]) * self.weights[rows]
        values = []
        for grade in (0, *self.thresholds.tolist()):
            reached = grade >= self.thresholds
            changed = counts[query] - known + reached
            gain = float(reached @ self.steps)
            values.append(divide_or_zero(rest + gain * self.weights[rows], self._ideals(changed)))
        effects = np.zeros(len(top.query))
        effects[rows] = np.ptp(np.stack(values), axis=0)
        return effects

    def find_extremes(self) -> Extremes:
        """Exact."""
        ends, grades = [], []
        for sign in (-1.0, 1.0):
            values, assigned = np.zeros(self.top.size), self.top.grade.copy()
            for queries, rows in self._blocks():
                best, chosen = self._maximize(queries, rows, sign)
                values[queries], assigned[rows] = sign * best, chosen
            ends.append(values)
            grades.append(assigned)
        return Extremes(ends[0], ends[1], grades[0], grades[1])

    def _blocks(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Queries, and the rows of their unjudged documents, few enough for one table."""
        rows = np.flatnonzero(~self.top.judged)
        counts = np.bincount(self.top.query[rows], minlength=self.top.size)
        width = max(1, int(counts.max(initial=0))) * max(1, len(self.thresholds))
        height = max(1, BLOCK_CELLS // width)
        for start in range(0, self.top.size, height):
            queries = np.arange(start, min(start + height, self.top.size))
            owners = self.top.query[rows]
            yield queries, rows[(owners >= start) & (owners < start + height)]

    def _maximize(
        self, queries: IntArray, rows: IntArray, sign: float
    ) -> tuple[FloatArray, IntArray]:
        """(B,): the greatest ``sign`` · difference of each query; the grades of the rows then."""
        owner = self.top.query[rows] - queries[0]
        order = np.lexsort((-sign * self.weights[rows], owner))
        counts = np.bincount(owner, minlength=len(queries))
        place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        width = int(counts.max(initial=0))
        sums = np.zeros((len(queries), width + 1))
        sums[owner[order], place + 1] = sign * self.weights[rows][order]
        sums = np.cumsum(sums, axis=1)
        known = self._known[queries]
        numbers = np.arange(width + 1)
        ideals = self.ideal(known[:, :, None] + numbers)  # (B, T, U+1)
        base = sign * self._judged_part[queries]
        value = divide_or_zero(base, self._ideals(known))
        best = np.zeros(known.shape, dtype=np.int64)
        for _ in range(MOST_STEPS):
            chosen = self._best_counts(sums, ideals, value, numbers > counts[:, None])
            picked = np.take_along_axis(sums, chosen, axis=1) @ self.steps
            ratio = divide_or_zero(base + picked, self._ideals(known + chosen))
            improved = ratio > value + ROUNDING
            if not improved.any():
                break
            value = np.where(improved, ratio, value)
            best[improved] = chosen[improved]
        grades = np.zeros(len(rows), dtype=np.int64)
        levels = (best[owner[order]] > place[:, None]).sum(axis=1)
        grades[order] = np.concatenate([[0], self.thresholds])[levels]
        return value, grades

    def _best_counts(
        self,
        sums: FloatArray,
        ideals: FloatArray,
        value: FloatArray,
        beyond: np.typing.NDArray[np.bool_],
    ) -> IntArray:
        """(B, T): how many unjudged documents get each grade or better, to maximize N − λI."""
        terms = self.steps[:, None] * (sums[:, None, :] - value[:, None, None] * ideals)
        terms = np.where(beyond[:, None, :], -np.inf, terms)
        totals = [terms[:, -1]]
        for t in range(terms.shape[1] - 2, -1, -1):
            totals.append(terms[:, t] + np.maximum.accumulate(totals[-1], axis=1))
        totals.reverse()
        numbers = np.arange(sums.shape[1])
        chosen = np.empty(terms.shape[:2], dtype=np.int64)
        limit = np.full(len(sums), sums.shape[1])
        for t, total in enumerate(totals):
            chosen[:, t] = np.where(numbers <= limit[:, None], total, -np.inf).argmax(axis=1)
            limit = chosen[:, t]
        return chosen
