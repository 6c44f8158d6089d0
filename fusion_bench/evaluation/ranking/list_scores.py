"""Scores of final lists that stand in the order of the lists."""

from __future__ import annotations

import numpy as np

from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray, score_keys
from fusion_bench.evaluation.ranking.system_ranking import SystemRanking


def list_scores(ranking: SystemRanking, rows: IntArray) -> FloatArray:
    """(n,): scores that no list gains along its ranks: whoever sorts by them finds its order.

    Documents that the reranker did not score rank below those that it did, whatever their fused
    score. Where that is too high, it is lowered, by one constant for all of them in a list; where
    that would round different scores to one, they count down from the reranker's least score.

    Args:
        ranking: The ranking.
        rows: Its candidates, best first within each query.
    """
    scores, tiers = ranking.sort_scores[rows].copy(), ranking.tiers[rows]
    query = ranking.runs.query_index[rows]
    for tier in np.unique(tiers)[1:]:
        floor = _least_by_query(scores, query, tiers < tier, len(ranking.runs.queries))
        top = -_least_by_query(-scores, query, tiers == tier, len(ranking.runs.queries))
        is_high = np.isfinite(floor) & np.isfinite(top) & (top >= floor)
        shift = np.where(is_high, top - floor + 1, 0.0)
        lower = np.flatnonzero((tiers == tier) & is_high[query])
        if len(lower):
            scores[lower] = _lower_scores(scores[lower], query[lower], shift, floor)
    return scores


def _lower_scores(
    scores: FloatArray, query: IntArray, shift: FloatArray, floor: FloatArray
) -> FloatArray:
    """(n,): scores below the floor of their query, which fall wherever they fell.

    Args:
        scores: Shape (n,), grouped by query, falling within each.
        query: Shape (n,).
        shift: Shape (Q,): what is taken from each score.
        floor: Shape (Q,).
    """
    lowered = scores - shift[query]
    is_same = np.diff(query) == 0
    falls = is_same & (np.diff(score_keys(scores)) < 0)
    is_rounded = is_same & (falls != (np.diff(score_keys(lowered)) < 0))
    is_counted = np.isin(query, query[1:][is_rounded]) | np.isin(
        query, query[score_keys(lowered) >= score_keys(floor)[query]]
    )
    places = np.cumsum(np.concatenate(([0], falls))) + 1
    places -= places[np.searchsorted(query, query)] - 1
    step = np.maximum(1.0, 1e-10 * np.abs(floor))
    return np.where(is_counted, floor[query] - step[query] * places, lowered)


def _least_by_query(
    scores: FloatArray, query: IntArray, is_counted: BoolArray, queries: int
) -> FloatArray:
    """(Q,): the least of the scores that count; inf where none does."""
    least = np.full(queries, np.inf)
    np.minimum.at(least, query[is_counted], scores[is_counted])
    return least
