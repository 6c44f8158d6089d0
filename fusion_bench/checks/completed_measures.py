"""The extremes of each measure over all completions of the judgments of one query.

A second relevant document beside the first one of a list changes nothing there, and can only help
the other list. So the extremes over all completions are those over the completions with at most
one new relevant document: U + 1 values for U unjudged documents. The result is exact.

AP of one list is Σ_j j / ρ_j over R, ρ_j the position of its j-th relevant document and R the
number of all relevant ones. So j new relevant documents give one list most where they stand
highest, and least where they stand outside it or lowest. Two lists share the documents, and their
difference has no such order. Up to :data:`MOST_ENUMERATED` unjudged documents every completion is
tried. Beyond, the bound takes for each j the best choice for one list and the worst for the other:
no completion exceeds it, and with one list alone it is exact. A query with U unjudged documents
and L documents takes O(2^U · L), or O(U · L).

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

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np

from fusion_bench.checks.completions import CompletionModel, Extremes, TopCandidates
from fusion_bench.data.grouped_rows import query_of_rows
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.measures import Measure
from fusion_bench.measures.binary_relevance import (
    AveragePrecision,
    Precision,
    Recall,
    ReciprocalRank,
    Success,
)
from fusion_bench.measures.ndcg import MAX_EXPONENT, NDCG
from fusion_bench.measures.rankings import count_in_groups, divide_or_zero, relevant_counts


@dataclass(frozen=True, eq=False)
class FirstRelevant:
    """A measure of this kind over the first documents of two systems.

    Attributes:
        top: The m documents.
        rel: The grade from which a document is relevant.
        value: Positions (m,) → value of a list whose first relevant document stands there; 0 for
            position 0.
    """

    top: TopCandidates
    rel: int
    value: Callable[[IntArray], FloatArray]

    def _best(self, positions: IntArray, is_relevant: np.typing.NDArray[np.bool_]) -> FloatArray:
        """(Q,): the value of one list; a value never rises with the position."""
        best = np.zeros(self.top.size)
        np.maximum.at(best, self.top.query, np.where(is_relevant, self.value(positions), 0.0))
        return best

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
        top, is_relevant = self.top, self.top.grade >= self.rel
        _, values = self._each_way(is_relevant)
        given = self._best(top.first, is_relevant) - self._best(top.second, is_relevant)
        ends, grades = [], []
        for sign in (-1.0, 1.0):
            best = sign * given
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


#: Unjudged documents of a query up to which every completion is tried.
MOST_ENUMERATED: Final = 8


@dataclass(frozen=True, eq=False)
class AveragePrecisionModel:
    """Average precision over the first documents of two systems.

    Attributes:
        top: The m documents.
        rel: The grade from which a document is relevant.
    """

    top: TopCandidates
    rel: int

    @cached_property
    def _known(self) -> IntArray:
        return relevant_counts(self.top.runs, self.rel)

    @cached_property
    def _slices(self) -> list[slice]:
        ends = np.searchsorted(self.top.query, np.arange(self.top.size + 1)).tolist()
        return [slice(start, end) for start, end in pairwise(ends)]

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
        for query, part in enumerate(self._slices):
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
        for query, part in enumerate(self._slices):
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

    top: TopCandidates
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

    def _gains(self, grades: IntArray) -> FloatArray:
        return np.asarray((grades[..., None] >= self.thresholds) @ self.steps)

    def _numerators(self, grades: IntArray) -> FloatArray:
        terms = self._gains(grades) * self.weights
        return np.bincount(self.top.query, terms, minlength=self.top.size).astype(np.float64)

    def _ideals(self, counts: IntArray) -> FloatArray:
        ideals = np.asarray(self.ideal(counts) @ self.steps)
        return np.where(counts[..., 0] > 0, ideals, 0.0)

    def grade_effects(self, grades: IntArray) -> FloatArray:
        """(m,): each grade in turn; the other documents stay."""
        top, rows = self.top, np.flatnonzero(~self.top.judged)
        numerator, counts = self._numerators(grades), self._known.copy()
        query, known = top.query[rows], grades[rows, None] >= self.thresholds
        np.add.at(counts, query, known)
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
        ends, grades = np.zeros((2, self.top.size)), np.tile(self.top.grade, (2, 1))
        given = self._numerators(self.top.grade)  # where no unjudged document is relevant
        for queries, rows in self._blocks():
            for end, sign in enumerate((-1.0, 1.0)):
                best, grades[end, rows] = self._maximize(queries, rows, sign, sign * given[queries])
                ends[end, queries] = sign * best
        return Extremes(*ends, *grades)

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
        self, queries: IntArray, rows: IntArray, sign: float, base: FloatArray
    ) -> tuple[FloatArray, IntArray]:
        """(B,): the greatest ``sign`` · difference of each query; the grades of the rows then."""
        owner = self.top.query[rows] - queries[0]
        place = count_in_groups(owner) - 1
        width = int(place.max(initial=-1)) + 1
        weights = np.full((len(queries), width), -np.inf)  # no sum reaches beyond the last document
        weights[owner, place] = sign * self.weights[rows]
        order = np.argsort(-weights, axis=1, kind="stable")
        known, ordered = self._known[queries], np.take_along_axis(weights, order, axis=1)
        first, alike = _find_distinct(np.hstack([base[:, None], known, ordered]))
        value, best = self._climb(base[first], known[first], ordered[first])
        levels = np.empty_like(order)
        counts = (best[:, :, None] > np.arange(width)).sum(axis=1)
        np.put_along_axis(levels, order, counts[alike], axis=1)
        return value[alike], np.concatenate([[0], self.thresholds])[levels[owner, place]]

    def _climb(
        self, base: FloatArray, known: IntArray, weights: FloatArray
    ) -> tuple[FloatArray, IntArray]:
        """Dinkelbach's method for some queries.

        Args:
            base: Shape (B,): the numerators where no unjudged document is relevant.
            known: Shape (B, T): judged documents of each grade or better.
            weights: Shape (B, U): of the unjudged documents, the greatest first; then −∞.

        Returns:
            (B,) the greatest values, and (B, T) how many unjudged documents of each grade or
            better give them.
        """
        sums = np.cumsum(np.pad(weights, ((0, 0), (1, 0))), axis=1)
        ideals = self.ideal(known[:, :, None] + np.arange(sums.shape[1]))  # (B, T, U+1)
        value = divide_or_zero(base, self._ideals(known))
        best = np.zeros(known.shape, dtype=np.int64)
        rising = np.arange(len(base))
        for _ in range(MOST_STEPS):  # what a step leaves as it is, the next one would too
            some = sums[rising]
            chosen = self._best_counts(some, ideals[rising], value[rising])
            picked = np.take_along_axis(some, chosen, axis=1) @ self.steps
            ratio = divide_or_zero(base[rising] + picked, self._ideals(known[rising] + chosen))
            improved = ratio > value[rising] + ROUNDING
            rising = rising[improved]
            if not len(rising):
                break
            value[rising], best[rising] = ratio[improved], chosen[improved]
        return value, best

    def _best_counts(self, sums: FloatArray, ideals: FloatArray, value: FloatArray) -> IntArray:
        """(B, T): how many unjudged documents get each grade or better, to maximize N − λI."""
        terms = self.steps[:, None] * (sums[:, None, :] - value[:, None, None] * ideals)
        totals = [terms[:, -1]]
        for t in range(terms.shape[1] - 2, -1, -1):
            totals.append(terms[:, t] + np.maximum.accumulate(totals[-1], axis=1))
        totals.reverse()
        numbers = np.arange(sums.shape[1])
        chosen = np.empty(terms.shape[:2], dtype=np.int64)
        for t, total in enumerate(totals):
            if t:  # no more of a better grade than of the one before
                np.copyto(total, -np.inf, where=numbers > chosen[:, t - 1, None])
            chosen[:, t] = total.argmax(axis=1)
        return chosen


def _find_distinct(rows: FloatArray) -> tuple[IntArray, IntArray]:
    """Where each distinct row stands first, and which of the distinct ones each row is."""
    numbers: dict[Any, int] = {}
    whole = np.dtype((np.void, rows.itemsize * rows.shape[1]))
    alike = [numbers.setdefault(row, len(numbers)) for row in rows.view(whole).ravel().tolist()]
    return np.unique(alike, return_index=True)[1], np.array(alike, dtype=np.int64)


#: The measures of which completions are known, for messages.
KNOWN_MEASURES: Final = ("nDCG", "RR", "AP", "P", "R", "Success")


def has_model(measure: Measure) -> bool:
    """Whether completions of a measure are known; not of measures over judged documents only."""
    known = (NDCG, ReciprocalRank, AveragePrecision, Precision, Recall, Success)
    return type(measure) in known and not measure.judged_only


def build_model(
    measure: Measure, top: TopCandidates, scale: Sequence[int]
) -> CompletionModel | None:
    """The completions of a measure over the first documents of two systems.

    Args:
        measure: The measure.
        top: The documents, within the measure's cutoff.
        scale: The grades that a judge may give.

    Returns:
        None = they are not known for this measure.
    """
    if not has_model(measure):
        return None
    if isinstance(measure, NDCG):
        return _ndcg(measure, top, scale)
    if isinstance(measure, ReciprocalRank):
        return FirstRelevant(top, measure.rel, _reciprocal)
    if isinstance(measure, Success):
        return FirstRelevant(top, measure.rel, lambda place: (place > 0).astype(np.float64))
    if isinstance(measure, AveragePrecision):
        return AveragePrecisionModel(top, measure.rel)
    return _make_counting_model(measure, top)


def _reciprocal(place: IntArray) -> FloatArray:
    return np.where(place > 0, 1 / np.maximum(place, 1), 0.0)


def _ndcg(measure: NDCG, top: TopCandidates, scale: Sequence[int]) -> LinearFractional:
    grades = sorted({*scale, *top.runs.ideal_grades.tolist()})
    thresholds = np.array([grade for grade in grades if grade > 0], dtype=np.int64)
    gains = thresholds.astype(np.float64)
    if measure.dcg == "exp-log2":
        gains = np.ldexp(1.0, np.minimum(thresholds, MAX_EXPONENT).astype(np.int32)) - 1
    # A query has no more relevant documents than those here and those that are judged.
    most = int(
        np.bincount(top.query).max(initial=0) + np.diff(top.runs.ideal_offsets).max(initial=0)
    )
    cutoff = most if measure.cutoff is None else min(most, measure.cutoff)
    longest = int(max(top.first.max(initial=0), top.second.max(initial=0)))
    discounts = [1 / math.log2(rank + 1) for rank in range(1, max(cutoff, longest) + 1)]
    table = np.array([0.0, *discounts])
    sums = np.cumsum(table)

    def ideal(counts: IntArray) -> FloatArray:
        return np.asarray(sums[np.minimum(counts, cutoff)])

    weights = table[top.first] - table[top.second]
    return LinearFractional(top, thresholds, np.diff(gains, prepend=0.0), weights, ideal)


def _make_counting_model(measure: Measure, top: TopCandidates) -> LinearFractional:
    """Precision and recall: every relevant document within the cutoff counts alike."""
    rel = measure.rel if isinstance(measure, Precision | Recall) else 1
    cutoff = float(measure.cutoff or 1)
    weights = (top.first > 0).astype(np.float64) - (top.second > 0)

    def ideal(counts: IntArray) -> FloatArray:
        if isinstance(measure, Precision):
            return np.full(counts.shape, cutoff)
        return counts.astype(np.float64)

    return LinearFractional(top, np.array([rel]), np.ones(1), weights, ideal)
