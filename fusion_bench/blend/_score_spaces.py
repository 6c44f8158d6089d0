"""Score spaces: what a rerank list's numbers mean, and how they come onto the unit scale."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, positions
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.view_cache import cached_by_view
from fusion_bench.normalize.squash import sigmoid


def on_unit_scale(
    runs: AlignedRuns, reranker: int, candidates: NDArray[np.bool_], space: ScoreSpace
) -> FloatArray:
    """Rerank scores of the candidates, in [0, 1].

    Args:
        runs: Aligned runs with the rerank lists.
        reranker: Row of the rerank list.
        candidates: Shape (N,): the documents inside the depth.
        space: ``unit`` = as they are; ``logit`` = sigmoid; ``log_prob`` = exp; ``unbounded`` =
            min-max over the candidates; ``order`` = the i-th of n scored candidates gets
            (n+1−i)/n.

    Returns:
        Shape (N,): NaN where there is no score or no candidate.
    """
    given = np.where(candidates, fixed_scale(runs, reranker, space), np.nan)
    return _scale_within(given, runs.rerank_ranks[reranker], runs.query_index, space)


def to_unit_scale(scores: Sequence[float], space: ScoreSpace) -> FloatArray:
    """(n,): one query's scores in [0, 1], as :func:`on_unit_scale` reads them from a list.

    Equal scores of the space ``order`` count in the order given.
    """
    raw = np.array(scores, dtype=np.float64)
    query = np.zeros(len(raw), dtype=np.int64)
    return _scale_within(_link_scores(raw, space), rank_positions(raw), query, space)


def rank_positions(scores: FloatArray) -> IntArray:
    """(n,): 1-based ranks of one query's scores; equal scores keep their order."""
    return positions(scores, np.array([0, len(scores)]))


def _scale_within(
    given: FloatArray, ranks: IntArray, query_index: IntArray, space: ScoreSpace
) -> FloatArray:
    """What depends on the other scores of a query, given what :func:`fixed_scale` returns."""
    if space == "unbounded":
        return min_max_within(query_index, given)
    if space == "order":
        return _by_order(query_index, ranks, ~np.isnan(given))
    return given


@cached_by_view()
def fixed_scale(runs: AlignedRuns, reranker: int, space: ScoreSpace) -> FloatArray:
    """(N,): what does not depend on the candidates; raw scores where all of it does.

    Made once, so that a score is the same to the last bit wherever it is used.
    """
    return _link_scores(runs.rerank[reranker], space)


def _link_scores(raw: FloatArray, space: ScoreSpace) -> FloatArray:
    if space not in {"logit", "log_prob"}:
        return raw
    return sigmoid(raw) if space == "logit" else np.asarray(np.exp(raw), dtype=np.float64)


def min_max_within(query_index: IntArray, values: FloatArray) -> FloatArray:
    """Min-max of ``values``, shape (N,), over each query's values that are not NaN.

    Where all of a query's values are equal they become 1, as in a normalized list.
    """
    queries = np.max(query_index, initial=-1) + 1
    low, high = np.full(queries, np.inf), np.full(queries, -np.inf)
    np.fmin.at(low, query_index, values)
    np.fmax.at(high, query_index, values)
    low, high = low[query_index], high[query_index]
    out = np.where(np.isnan(values), np.nan, 1.0)
    halves = values / 2 - low / 2, high / 2 - low / 2  # differences themselves may overflow
    np.divide(*halves, out=out, where=~np.isnan(values) & (high > low))
    return out


def _by_order(query_index: IntArray, ranks: IntArray, scored: NDArray[np.bool_]) -> FloatArray:
    """(n+1−i)/n for the i-th of the n scored candidates of each query, by the list's order."""
    out = np.full(len(ranks), np.nan)
    rows = np.flatnonzero(scored)
    query = query_index[rows]
    rows = rows[np.lexsort((ranks[rows], query))]
    place = np.arange(len(rows)) - np.searchsorted(query, query) + 1
    size = np.bincount(query)[query]
    out[rows] = (size + 1 - place) / size
    return out
