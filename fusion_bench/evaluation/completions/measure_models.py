"""The model of a measure's completions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.evaluation.completions.average_precision import AveragePrecisionModel
from fusion_bench.evaluation.completions.extremes import CompletionModel
from fusion_bench.evaluation.completions.first_relevant import FirstRelevant
from fusion_bench.evaluation.completions.linear_fractional import LinearFractional
from fusion_bench.evaluation.completions.top_documents import TopDocuments
from fusion_bench.measures import Measure
from fusion_bench.measures.average_precision import AveragePrecision
from fusion_bench.measures.ndcg import MAX_EXPONENT, NDCG
from fusion_bench.measures.reciprocal_rank import ReciprocalRank
from fusion_bench.measures.relevant_in_top import Precision, Recall, Success

#: The measures of which completions are known, for messages.
KNOWN_MEASURES: Final = ("nDCG", "RR", "AP", "P", "R", "Success")


def has_model(measure: Measure) -> bool:
    """Whether completions of a measure are known; not of measures over judged documents only."""
    known = (NDCG, ReciprocalRank, AveragePrecision, Precision, Recall, Success)
    return type(measure) in known and not measure.judged_only


def build_model(
    measure: Measure, top: TopDocuments, scale: Sequence[int]
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


def _ndcg(measure: NDCG, top: TopDocuments, scale: Sequence[int]) -> LinearFractional:
    grades = sorted({*scale, *np.unique(top.runs.ideal_grades).tolist()})
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


def _make_counting_model(measure: Measure, top: TopDocuments) -> LinearFractional:
    """Precision and recall: every relevant document within the cutoff counts alike."""
    rel = measure.rel if isinstance(measure, Precision | Recall) else 1
    cutoff = float(measure.cutoff or 1)
    weights = (top.first > 0).astype(np.float64) - (top.second > 0)

    def ideal(counts: IntArray) -> FloatArray:
        if isinstance(measure, Precision):
            return np.full(counts.shape, cutoff)
        return counts.astype(np.float64)

    return LinearFractional(top, np.array([rel]), np.ones(1), weights, ideal)
