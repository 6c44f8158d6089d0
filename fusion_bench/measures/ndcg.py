"""Normalized discounted cumulative gain."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final, Literal, TypeAlias

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns, cached_by_view
from fusion_bench.data.grouped_rows import count_within_queries, query_of_rows
from fusion_bench.data.ordering import FloatArray, IntArray, make_readonly
from fusion_bench.errors import DataError
from fusion_bench.measures._base import Measure, measure_classes
from fusion_bench.measures.rankings import Ranking, ReturnedDocuments, TiedLists, divide_or_zero

Dcg: TypeAlias = Literal["log2", "exp-log2"]

#: 2^grade must stay finite; far below the range of float64, so that a sum over a list does too.
MAX_EXPONENT: Final = 900


@measure_classes.register
class NDCG(Measure):
    """``nDCG``: DCG over the DCG of the perfect order, gain / log2(rank + 1).

    Source: Järvelin and Kekäläinen, TOIS 2002, as in trec_eval's m_ndcg_cut; ``exp-log2`` after
    Burges et al., ICML 2005.

    Attributes:
        dcg: The gain: the grade (``log2``), or 2^grade − 1 (``exp-log2``).
    """

    required_ranks = "relevant"
    external_options = frozenset({"gains"})

    method: str = "nDCG"
    dcg: Dcg = "log2"

    def compute_values(self, ranking: Ranking) -> FloatArray:
        """(Q,): from the returned documents of grade 1 or better."""
        rows = ranking.relevant(1).within_cutoff(self.cutoff)
        terms = _grade_gains(rows.grade, self.dcg) / _log_discounts(ranking.runs)[rows.position]
        dcg = np.bincount(rows.query, terms, minlength=ranking.size)
        return divide_or_zero(dcg, _ideal_dcg(ranking.runs, self.dcg, self.cutoff))

    def expected_value(self, lists: TiedLists, depth: IntArray) -> FloatArray:
        """(Q,): every member of a group earns the group's mean gain."""
        terms = lists.mean_by_rank(_grade_gains(lists.grade, self.dcg), depth)
        dcg = lists.by_query(terms / _log_discounts(lists.runs)[lists.position])
        return divide_or_zero(dcg, _ideal_dcg(lists.runs, self.dcg, self.cutoff))

    def filled_values(self, returned: ReturnedDocuments) -> FloatArray:
        """(Q,): the sum of known and mean gains over the ideal, at most 1."""
        gains = returned.fill_gains(_grade_gains(returned.grade, self.dcg), self.cutoff)
        dcg = (gains / _log_table(gains.shape[1])[1 : gains.shape[1] + 1]).sum(axis=1)
        return np.minimum(divide_or_zero(dcg, _ideal_dcg(returned.runs, self.dcg, self.cutoff)), 1)


def _grade_gains(grades: IntArray, dcg: Dcg) -> FloatArray:
    """Gain of each grade, any shape: the grade itself or 2^grade − 1; 0 for negative grades.

    Raises:
        DataError: 2^grade is beyond what a sum can hold.
    """
    positive = np.maximum(grades, 0)
    if dcg == "log2":
        return positive.astype(np.float64)
    if positive.max(initial=0) > MAX_EXPONENT:
        raise DataError(
            f"grade {positive.max()} is too great for nDCG(dcg='exp-log2'), whose gain is "
            f"2^grade − 1: grades up to {MAX_EXPONENT} are allowed"
        )
    return np.ldexp(1.0, positive.astype(np.int32)) - 1


@cached_by_view()
def _ideal_dcg(runs: AlignedRuns, dcg: Dcg, cutoff: int | None) -> FloatArray:
    """(Q,): DCG of the best order of everything judged, cut like the list itself."""
    position = count_within_queries(runs.ideal_offsets)
    kept = position <= (cutoff or len(position))
    terms = _grade_gains(runs.ideal_grades[kept], dcg) / _log_discounts(runs)[position[kept]]
    query = query_of_rows(runs.ideal_offsets)[kept]
    return np.bincount(query, terms, minlength=len(runs.queries)).astype(np.float64)


def _log_discounts(runs: AlignedRuns) -> FloatArray:
    """log2(i + 1) at index i, for every rank that can occur; 1 at index 0."""
    longest = max(np.diff(runs.offsets).max(initial=0), np.diff(runs.ideal_offsets).max(initial=0))
    return _log_table(1 << int(longest).bit_length())


@lru_cache(maxsize=32)
def _log_table(size: int) -> FloatArray:
    """Computed one by one: numpy's log2 may differ in the last bit with a value's place."""
    table = np.array([1.0, *(math.log2(i + 1) for i in range(1, size + 1))])
    make_readonly(table)
    return table
