"""Measures of a reader who stops somewhere in the list: ERR, RBP."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, ClassVar, Final

import numpy as np
from pydantic import Field

from fusion_bench.data.ordering import FloatArray, IntArray, make_readonly
from fusion_bench.errors import DataError
from fusion_bench.measures import rankings
from fusion_bench.measures._base import Measure, PositiveInt, RequiredRanks, measure_classes

#: 2^grade must stay exact.
MAX_SCALE: Final = 50


@measure_classes.register
class ExpectedReciprocalRank(Measure):
    """``ERR``: the expected value of one over the rank at which a reader is satisfied.

    Source: Chapelle et al., CIKM 2009: Σ_r R_r / r · Π_{s<r} (1 − R_s), where a document of grade
    g satisfies with probability R = (2^g − 1) / 2^max_grade.

    Attributes:
        max_grade: The highest grade of the scale; 4 as in gdeval, TREC's script, whatever grades
            the judgments have. A negative grade counts as 0.
    """

    required_ranks: ClassVar[RequiredRanks] = "relevant"

    method: str = "ERR"
    max_grade: Annotated[PositiveInt, Field(le=MAX_SCALE)] = 4

    def compute_values(self, ranking: rankings.Ranking) -> FloatArray:
        """(Q,): from the returned documents of grade 1 or better."""
        rows = ranking.relevant(1).within_cutoff(self.cutoff)
        number = rankings.count_in_groups(rows.query) - 1
        satisfied = np.zeros((ranking.size, int(number.max(initial=-1)) + 1))
        satisfied[rows.query, number] = self._satisfaction(rows.grade)
        terms = (satisfied * rankings.none_before(satisfied))[rows.query, number] / rows.position
        return np.bincount(rows.query, terms, minlength=ranking.size).astype(np.float64)

    def expected_value(self, lists: rankings.TiedLists, depth: IntArray) -> FloatArray:
        """(Q,): the mean over all orders of each group, which the groups before it leave unread.

        The j-th member of a group is where the reader stops with probability E_{j−1} − E_j, E_j
        being the mean over all choices of j members of the probability that none satisfies.
        """
        unsatisfied = 1 - self._satisfaction(lists.grade)
        expected, unread = np.zeros(len(depth)), np.ones(len(depth))
        starts = np.cumsum(lists.members) - lists.members
        for group in np.flatnonzero(lists.sum_by_group(lists.grade > 0)):
            query, before, size = lists.owner[group], lists.before[group], lists.members[group]
            means = _mean_products(unsatisfied[starts[group] :][:size])
            rank = np.arange(before + 1, min(before + size, depth[query]) + 1)
            expected[query] += unread[query] * (-np.diff(means)[: len(rank)] / rank).sum()
            unread[query] *= means[-1]
        return expected

    def filled_values(self, returned: rankings.ReturnedDocuments) -> FloatArray:
        """(Q,): with the mean probability of judged documents at the rank of an unjudged one."""
        satisfied = returned.fill_gains(self._satisfaction(returned.grade), self.cutoff)
        rank = np.arange(1, satisfied.shape[1] + 1)
        return np.asarray((satisfied * rankings.none_before(satisfied) / rank).sum(axis=1))

    def _satisfaction(self, grades: IntArray) -> FloatArray:
        """The probability that a document of each grade satisfies, any shape.

        Raises:
            DataError: A grade above the scale.
        """
        if grades.max(initial=0) > self.max_grade:
            raise DataError(
                f"grade {grades.max()} is beyond the scale of {self.name}, which ends at "
                f"{self.max_grade}: write ERR(max_grade={grades.max()}), or lower the grades"
            )
        powers = np.ldexp(1.0, np.maximum(grades, 0).astype(np.int32))
        return np.asarray((powers - 1) / 2.0**self.max_grade)


def _mean_products(factors: FloatArray) -> FloatArray:
    """(n + 1,): the mean product of 0, 1, … n of n factors, over all choices of so many."""
    means = np.zeros(len(factors) + 1)
    means[0] = 1
    for size, factor in enumerate(factors, start=1):
        chosen = np.arange(1, size + 1)
        means[1 : size + 1] = (
            (size - chosen) * means[1 : size + 1] + chosen * factor * means[:size]
        ) / size
    return means


#: cwl_eval, which computes RBP with ``rel`` for ir_measures, knows no more ranks.
CWL_RANKS: Final = 1000


@measure_classes.register
class RankBiasedPrecision(Measure):
    """``RBP``: gains at each rank, read with the probability that the reader comes so far.

    Source: Moffat and Zobel, TOIS 2008: (1 − p) Σ_r g_r p^(r−1). As in ir_measures, the gain is
    the grade itself, so that values exceed 1 where grades do; with ``rel`` it is 0 or 1. With
    ``rel`` and no cutoff, 1,000 ranks count and their weights sum to 1, as in cwl_eval.

    Attributes:
        p: The probability that the reader goes on to the next rank.
        rel: The grade from which a document is relevant; None = the gain is the grade.
    """

    required_ranks: ClassVar[RequiredRanks] = "relevant"

    method: str = "RBP"
    p: Annotated[float, Field(ge=0, lt=1)] = 0.8
    rel: PositiveInt | None = None

    def compute_values(self, ranking: rankings.Ranking) -> FloatArray:
        """(Q,): from the returned documents that have a gain."""
        rows = ranking.relevant(self.rel or 1).within_cutoff(self.cutoff)
        terms = self._gains(rows.grade) * self._weights(rows.position)
        return np.bincount(rows.query, terms, minlength=ranking.size).astype(np.float64)

    def expected_value(self, lists: rankings.TiedLists, depth: IntArray) -> FloatArray:
        """(Q,): every member of a group earns the group's mean gain."""
        means = lists.mean_by_rank(self._gains(lists.grade), depth)
        return lists.by_query(means * self._weights(lists.position))

    def filled_values(self, returned: rankings.ReturnedDocuments) -> FloatArray:
        """(Q,): the sum over known and mean gains."""
        gains = returned.fill_gains(self._gains(returned.grade), self.cutoff)
        return np.asarray((gains * self._weights(np.arange(1, gains.shape[1] + 1))).sum(axis=1))

    def _gains(self, grades: IntArray) -> FloatArray:
        gains = np.maximum(grades, 0) if self.rel is None else grades >= self.rel
        return gains.astype(np.float64)

    def _weights(self, ranks: IntArray) -> FloatArray:
        """The probability that the reader stops at or passes each rank, over the mean length."""
        powers = _power_table(self.p, 1 << int(ranks.max(initial=1)).bit_length())
        weights = (1 - self.p) * powers[ranks - 1]
        if self.rel is None or self.cutoff is not None:
            return np.asarray(weights)
        return np.where(ranks <= CWL_RANKS, weights, 0) / (1 - self.p**CWL_RANKS)


@lru_cache(maxsize=32)
def _power_table(base: float, size: int) -> FloatArray:
    """Computed one by one: numpy's power may differ in the last bit with a value's place."""
    table = np.array([base**exponent for exponent in range(size)])
    make_readonly(table)
    return table
