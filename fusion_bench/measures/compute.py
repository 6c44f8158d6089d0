"""Values of measures per query, all queries at once.

Sums run in rank order, one query after the other. So a value never depends on how candidates are
stored, on other queries, or on how queries are split between processes, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.measures._base import Measure
from fusion_bench.measures.external.external_measure import ExternalMeasure
from fusion_bench.measures.external.ir_measures_backend import evaluate_externally
from fusion_bench.measures.rankings.ranking import Ranking


def compute_measures(
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
        qrels: The judgments, needed only where ir_measures computes a measure.

    Returns:
        Shape (M, Q). A query without a relevant document or with an empty list has 0.

    Raises:
        ConfigError: A measure of ir_measures without ``qrels``.
        DataError: A grade too great for 2^grade.
    """
    rankings = {flag: Ranking(runs, positions, judged_only=flag) for flag in (False, True)}
    values = np.zeros((len(measures), len(runs.queries)))
    external = []
    for m, measure in enumerate(measures):
        if isinstance(measure, ExternalMeasure):
            external.append(m)
        else:
            values[m] = measure.compute_values(rankings[measure.judged_only])
    if external:
        names = [measures[m].name for m in external]
        values[external] = evaluate_externally(names, runs, positions, qrels)
    return values
