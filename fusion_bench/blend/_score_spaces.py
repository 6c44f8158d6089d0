"""Score spaces: what a rerank list's numbers mean, and how they come onto the unit scale."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
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
    if space == "unbounded":
        return min_max_within(runs, given)
    if space == "order":
        return _by_order(runs, runs.rerank_ranks[reranker], ~np.isnan(given))
    return given


@cached_by_view()
def fixed_scale(runs: AlignedRuns, reranker: int, space: ScoreSpace) -> FloatArray:
    """(N,): what does not depend on the candidates; raw scores where all of it does.

    Made once, so that a score is the same to the last bit wherever it is used.
    """
    raw: FloatArray = runs.rerank[reranker]
    if space not in {"logit", "log_prob"}:
        return raw
    return sigmoid(raw) if space == "logit" else np.asarray(np.exp(raw), dtype=np.float64)


def min_max_within(runs: AlignedRuns, values: FloatArray) -> FloatArray:
    """Min-max of ``values``, shape (N,), over each query's values that are not NaN.

    Where all of a query's values are equal they become 1, as in a normalized list.
    """
    low = np.full(len(runs.queries), np.inf)
    high = np.full(len(runs.queries), -np.inf)
    np.fmin.at(low, runs.query_index, values)
    np.fmax.at(high, runs.query_index, values)
    low, high = low[runs.query_index], high[runs.query_index]
    out = np.where(np.isnan(values), np.nan, 1.0)
    np.divide(values - low, high - low, out=out, where=~np.isnan(values) & (high > low))
    return out


def _by_order(runs: AlignedRuns, ranks: IntArray, scored: NDArray[np.bool_]) -> FloatArray:
    """(n+1−i)/n for the i-th of the n scored candidates of each query, by the list's order."""
    out = np.full(len(ranks), np.nan)
    rows = np.flatnonzero(scored)
    query = runs.query_index[rows]
    rows = rows[np.lexsort((ranks[rows], query))]
    place = np.arange(len(rows)) - np.searchsorted(query, query) + 1
    size = np.bincount(query, minlength=len(runs.queries))[query]
    out[rows] = (size + 1 - place) / size
    return out
