"""The common measures, per query, all queries at once.

Definitions are those of trec_eval 9 (nDCG, RR, R, AP, P, Success) and ir_measures (Judged). Sums
run in rank order, one query after the other, so that a value never depends on how candidates are
stored, on other queries, or on how queries are split between processes, to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.grouped_rows import counting, query_of_rows
from fusion_bench.data.ordering import FloatArray, IntArray, freeze
from fusion_bench.data.records import Qrels
from fusion_bench.errors import DataError
from fusion_bench.measures.ir_measures_backend import from_ir_measures
from fusion_bench.measures.names import Dcg, Measure
from fusion_bench.measures.ranking import Ranking, counted, relevant_counts

__all__ = ["evaluate", "gains", "ideal_dcg", "log_discounts", "ratio"]

Formula: TypeAlias = Callable[[Measure, Ranking], FloatArray]

#: 2^grade must stay finite; far below the range of float64, so that a sum over a list does too.
MAX_EXPONENT: Final = 900


def evaluate(
    measures: Sequence[Measure],
    runs: AlignedRuns,
    positions: IntArray,
    *,
    qrels: Qrels | None = None,
) -> FloatArray:
    """Score one order of the candidates.

    Args:
        measures: (M,).
        runs: The candidates.
        positions: Shape (N,): 1, 2, 3 … inside each query; 0 = not returned.
        qrels: The judgements, needed only where ir_measures computes a measure.

    Returns:
        Shape (M, Q). A query without a relevant document or with an empty list has 0.

    Raises:
        ConfigError: A measure of ir_measures without ``qrels``.
        DataError: A grade too great for 2^grade.
    """
    rankings = {flag: Ranking(runs, positions, judged_only=flag) for flag in (False, True)}
    values = np.zeros((len(measures), len(runs.queries)))
    others = [m for m, measure in enumerate(measures) if measure.kind == "external"]
    for m, measure in enumerate(measures):
        if measure.kind != "external":
            values[m] = FORMULAS[measure.kind](measure, rankings[measure.judged_only])
    if others:
        values[others] = from_ir_measures(
            [measures[m].name for m in others], runs, positions, qrels
        )
    return values


def _ndcg(measure: Measure, ranking: Ranking) -> FloatArray:
    """DCG over the DCG of the perfect order, gain / log2(position + 1) (trec_eval m_ndcg_cut)."""
    rows = ranking.relevant(1).top(measure.cutoff)
    terms = gains(rows.grade, measure.dcg) / log_discounts(ranking.runs)[rows.position]
    dcg = np.bincount(rows.query, terms, minlength=ranking.size)
    return ratio(dcg, ideal_dcg(ranking.runs, measure.dcg, measure.cutoff))


def _rr(measure: Measure, ranking: Ranking) -> FloatArray:
    """One over the position of the first relevant document (trec_eval m_recip_rank)."""
    rows = ranking.relevant(measure.rel).top(measure.cutoff)
    first = rows.where(counted(rows.query) == 1)
    values = np.zeros(ranking.size)
    values[first.query] = 1 / first.position
    return values


def _ap(measure: Measure, ranking: Ranking) -> FloatArray:
    """Precision summed at relevant documents, over all relevant ones (trec_eval m_map_cut)."""
    rows = ranking.relevant(measure.rel).top(measure.cutoff)
    precision = counted(rows.query) / rows.position
    total = np.bincount(rows.query, precision, minlength=ranking.size)
    return ratio(total, relevant_counts(ranking.runs, measure.rel))


def _found(measure: Measure, ranking: Ranking) -> IntArray:
    """(Q,): relevant documents within the cutoff."""
    rows = ranking.relevant(measure.rel).top(measure.cutoff)
    return np.bincount(rows.query, minlength=ranking.size)


def _recall(measure: Measure, ranking: Ranking) -> FloatArray:
    """Share of all relevant documents that is found (trec_eval m_recall)."""
    return ratio(_found(measure, ranking), relevant_counts(ranking.runs, measure.rel))


def _precision(measure: Measure, ranking: Ranking) -> FloatArray:
    """Relevant ones over the cutoff, however short the list is (trec_eval m_P)."""
    # The parser sees to it that P has a cutoff.
    return _found(measure, ranking) / np.float64(measure.cutoff or 1)


def _success(measure: Measure, ranking: Ranking) -> FloatArray:
    """Whether anything relevant is found (trec_eval m_success)."""
    return (_found(measure, ranking) > 0).astype(np.float64)


def _judged(measure: Measure, ranking: Ranking) -> FloatArray:
    """Share of the first places that is judged; a list shorter than the cutoff counts as it is.

    That is ir_measures' definition: the denominator is min(cutoff, length of the list).
    """
    rows = ranking.judged.top(measure.cutoff)
    shown = ranking.returned
    if measure.cutoff is not None:
        shown = np.minimum(shown, measure.cutoff)
    return ratio(np.bincount(rows.query, minlength=ranking.size), shown)


FORMULAS: Final[dict[str, Formula]] = {
    "nDCG": _ndcg,
    "RR": _rr,
    "AP": _ap,
    "R": _recall,
    "P": _precision,
    "Success": _success,
    "Judged": _judged,
}


def gains(grades: IntArray, dcg: Dcg) -> FloatArray:
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


def ideal_dcg(runs: AlignedRuns, dcg: Dcg, cutoff: int | None) -> FloatArray:
    """(Q,): DCG of the best order of everything judged, cut like the list itself."""

    def compute() -> FloatArray:
        position = counting(runs.ideal_offsets)
        kept = position <= (cutoff or len(position))
        terms = gains(runs.ideal_grades[kept], dcg) / log_discounts(runs)[position[kept]]
        query = query_of_rows(runs.ideal_offsets)[kept]
        return np.bincount(query, terms, minlength=len(runs.queries)).astype(np.float64)

    return runs.memo(("measure", "ideal", dcg, cutoff), compute)


def log_discounts(runs: AlignedRuns) -> FloatArray:
    """log2(i + 1) at index i, for every position that can occur; 1 at index 0."""
    longest = max(np.diff(runs.offsets).max(initial=0), np.diff(runs.ideal_offsets).max(initial=0))
    return _log_table(1 << int(longest).bit_length())


@lru_cache(maxsize=32)
def _log_table(size: int) -> FloatArray:
    """Computed one by one: numpy's log2 may differ in the last bit with a value's place."""
    table = np.array([1.0, *(math.log2(i + 1) for i in range(1, size + 1))])
    freeze(table)
    return table


def ratio(part: NDArray[np.generic], whole: NDArray[np.generic]) -> FloatArray:
    """Part over whole, any shape; 0 where the whole is 0."""
    above, below = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    return np.divide(above, below, out=np.zeros_like(above), where=below != 0)
