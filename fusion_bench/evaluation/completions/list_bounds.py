"""The least and greatest values of one list over all completions, in closed form.

Where documents are relevant or not, the ends of one list need no search: the completion makes none,
all, or the highest or lowest few of its unjudged documents relevant. Grades of nDCG differ, so that
it has no such form: see :mod:`fusion_bench.evaluation.completions.linear_fractional`.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.evaluation.completions.top_documents import TopDocuments
from fusion_bench.measures import Measure
from fusion_bench.measures.average_precision import AveragePrecision
from fusion_bench.measures.rankings.ranking import divide_or_zero, relevant_counts
from fusion_bench.measures.reciprocal_rank import ReciprocalRank
from fusion_bench.measures.relevant_in_top import Precision, Recall, Success

#: The least and the greatest value of each query, (Q,) each.
Ends: TypeAlias = tuple[FloatArray, FloatArray]


def find_list_ends(measure: Measure, top: TopDocuments) -> Ends | None:
    """The ends of one list.

    Args:
        measure: The measure.
        top: The list's documents within the measure's cutoff.

    Returns:
        None = there is no closed form.
    """
    if type(measure) is Recall:
        return _recall_ends(measure, top)
    if type(measure) is Precision:
        counts = _count_relevant(top, measure.rel)
        return counts[0] / (measure.cutoff or 1), counts[1] / (measure.cutoff or 1)
    if type(measure) is Success:
        counts = _count_relevant(top, measure.rel)
        return (counts[0] > 0).astype(np.float64), (counts[1] > 0).astype(np.float64)
    if type(measure) is ReciprocalRank:
        relevant = top.grade >= measure.rel
        return _reciprocal_ranks(top, relevant), _reciprocal_ranks(top, relevant | ~top.judged)
    if type(measure) is AveragePrecision:
        return _precision_ends(measure, top)
    return None


def _count_relevant(top: TopDocuments, rel: int) -> tuple[IntArray, IntArray]:
    """(Q,) each: relevant documents where no unjudged one is relevant, and where all are."""
    relevant = top.grade >= rel
    least, most = (
        np.bincount(top.query[rows], minlength=top.size)
        for rows in (relevant, relevant | ~top.judged)
    )
    return least, most


def _recall_ends(measure: Recall, top: TopDocuments) -> Ends:
    """A new relevant document in the list never lowers the share: its hits are at most all."""
    least, most = _count_relevant(top, measure.rel)
    known = relevant_counts(top.runs, measure.rel)
    return divide_or_zero(least, known), divide_or_zero(most, known + most - least)


def _reciprocal_ranks(top: TopDocuments, relevant: BoolArray) -> FloatArray:
    best = np.zeros(top.size)
    np.maximum.at(best, top.query[relevant], 1 / top.first[relevant])
    return best


def _precision_ends(measure: AveragePrecision, top: TopDocuments) -> Ends:
    """The best and worst j new relevant documents are the highest and lowest, for every j.

    The sum of precisions S_j grows, document by document, by the precision at the new one and by
    1 / position for every relevant one below it. The value is S_j over the relevant documents.
    """
    order = np.argsort(top.query * (int(top.first.max(initial=0)) + 1) + top.first)
    query, place = top.query[order], top.first[order].astype(np.float64)
    relevant, unjudged = top.grade[order] >= measure.rel, ~top.judged[order]
    above = _sums_before(query, relevant)  # known relevant documents above each
    shares = relevant / place
    below = np.bincount(query, shares, minlength=top.size)[query] - _sums_before(query, shares)
    below -= shares
    known = relevant_counts(top.runs, measure.rel)
    start = np.bincount(query, relevant * (above + 1) / place, minlength=top.size)
    rows = np.flatnonzero(unjudged)
    owner, place = query[rows], place[rows]
    number = _sums_before(owner, np.ones(len(rows)))  # unjudged documents above each
    gains = (above[rows] + number + 1) / place + below[rows]
    high = divide_or_zero(start, known)
    values = (start[owner] + _sums_before(owner, gains) + gains) / (known[owner] + number + 1)
    np.maximum.at(high, owner, values)
    owner, last = owner[::-1], rows[::-1]
    # From the lowest: those added before stand below, and each gains 1 / position.
    added = _sums_before(-owner, 1 / place[::-1])
    gains = (above[last] + 1) / place[::-1] + below[last] + added
    number = _sums_before(-owner, np.ones(len(rows)))
    low = divide_or_zero(start, known)
    values = (start[owner] + _sums_before(-owner, gains) + gains) / (known[owner] + number + 1)
    np.minimum.at(low, owner, values)
    # Sums over many queries round, and no value lies beyond these.
    return np.clip(low, 0, 1), np.clip(high, 0, 1)


def _sums_before(owner: IntArray, terms: FloatArray | BoolArray) -> FloatArray:
    """(m,): the sum of the terms before each in its own query; ``owner`` never falls."""
    total = np.cumsum(terms, dtype=np.float64) - terms
    return np.asarray(total - total[np.searchsorted(owner, owner)]) if len(owner) else total
