"""How relevant the segments of lists are."""

from __future__ import annotations

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, sum_terms
from fusion_bench.fuse._trained import is_relevant


def relevant_share_by_segment(
    runs: AlignedRuns, segment: IntArray, segments: int, *, judged_only: bool = False
) -> FloatArray:
    """(K,): the mean over all queries of the share of relevant documents in each segment.

    A query without documents in a segment counts as 0 there.

    Args:
        runs: Judged queries.
        segment: Shape (N,): 1 … K, or 0 for documents that do not count.
        segments: K.
        judged_only: The share of the judged documents, not of all.
    """
    shape = (len(runs.queries), segments + 1)

    def count(is_counted: np.typing.NDArray[np.bool_]) -> IntArray:
        cells = (runs.query_index * shape[1] + segment)[is_counted]
        return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)[:, 1:]

    everything = runs.judged if judged_only else np.ones(len(segment), dtype=bool)
    shares = count(is_relevant(runs)) / np.maximum(count(everything), 1)
    return np.asarray(sum_terms(shares) / shape[0])  # rounded once: no order of queries matters
