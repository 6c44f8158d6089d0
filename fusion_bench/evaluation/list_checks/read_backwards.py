"""Whether a list reads better from its end: distances, for which less is better, as scores."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.rows.grouped_rows import number_by_appearance
from fusion_bench.evaluation.source_ties.tied_rows import order_by_rank
from fusion_bench.measures import compute_measures, parse_measure
from fusion_bench.stats.intervals import estimate_mean

#: What both orders are measured by.
MEASURE: Final = "nDCG@10"
#: Level of the interval that has to lie above 0: a sound list is called reversed once in 2,000.
ALPHA: Final = 0.001
#: Fewer answered queries show nothing.
LEAST_QUERIES: Final = 5


class BothOrders(NamedTuple):
    """The mean nDCG@10 of a list as it was read, and from its end.

    Attributes:
        as_read: Over the queries that it answers.
        backwards: The same with the last document first.
        is_reversed: Whether the second is shown to be the greater one.
        queries: Queries that it answers with two documents or more.
    """

    as_read: float
    backwards: float
    is_reversed: bool
    queries: int


def measure_both_orders(runs: AlignedRuns, ranks: IntArray) -> BothOrders | None:
    """Measure a list from both ends.

    Args:
        runs: The candidates.
        ranks: Shape (N,): ranks of the list; 0 = not in it.

    Returns:
        None for a list that answers too few queries.
    """
    ordered = order_by_rank(runs, ranks)
    query = runs.query_index[ordered]
    counts = np.bincount(query, minlength=len(runs.queries))
    answered = counts > 1
    if answered.sum() < LEAST_QUERIES:
        return None
    place = np.arange(1, len(ordered) + 1) - (np.cumsum(counts) - counts)[query]
    forwards, backwards = np.zeros((2, len(runs.documents)), dtype=np.int64)
    forwards[ordered], backwards[ordered] = place, counts[query] + 1 - place
    values: list[FloatArray] = [
        compute_measures([parse_measure(MEASURE)], runs, positions)[0][answered]
        for positions in (forwards, backwards)
    ]
    groups = number_by_appearance(runs.groups)[0][answered]
    gain = estimate_mean(values[1] - values[0], groups, alpha=ALPHA)
    is_reversed = gain.low is not None and gain.low > 0
    first, second = (float(row.mean()) for row in values)
    return BothOrders(first, second, is_reversed, int(answered.sum()))
