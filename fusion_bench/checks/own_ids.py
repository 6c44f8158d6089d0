"""Queries that are documents of the collection, and that a list returns for themselves."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from fusion_bench.checks.tied_lists import count_places, order_by_rank
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import IntArray
from fusion_bench.measures import compute_measures, parse_measure

#: What both lists are measured by.
MEASURE: Final = "nDCG@10"
#: Fewer queries whose own document leads, or a smaller share of them, are chance.
LEAST_QUERIES, LEAST_SHARE = 2, 0.1


def measure_own_ids(runs: AlignedRuns, ranks: IntArray) -> dict[str, Any]:
    """Measure a list with and without the documents that have the ids of their queries.

    Args:
        runs: The candidates.
        ranks: Shape (N,): ranks of the list; 0 = not in it.

    Returns:
        Fields of a :class:`~fusion_bench.checks.records.ListInfo`; empty if few queries have such
        a document first, or if it is judged relevant.
    """
    first = np.flatnonzero((ranks == 1) & (runs.grades < runs.binary_relevance))
    leading = [
        row
        for row in first.tolist()
        if runs.vocabulary[int(runs.documents[row])] == runs.queries[int(runs.query_index[row])]
    ]
    answered = int(np.count_nonzero(ranks == 1))
    if len(leading) < max(LEAST_QUERIES, LEAST_SHARE * answered):
        return {}
    codes = {name: code for code, name in enumerate(runs.vocabulary)}
    own = np.array([codes.get(query, -1) for query in runs.queries], dtype=np.int64)
    kept = np.where(runs.documents == own[runs.query_index], 0, ranks)
    asked = [parse_measure(MEASURE)]
    means = [
        float(compute_measures(asked, runs, count_places(runs, order_by_rank(runs, each))).mean())
        for each in (ranks, kept)
    ]
    return {
        "own_id_queries": len(leading),
        "mean_with_own_ids": means[0],
        "mean_without_own_ids": means[1],
    }
