"""Everything measured of one ranking: values, judged-only values, ties, unjudged documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fusion_bench import measures as measure
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, positions
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.evaluation.completions.query_bounds import QueryBounds, find_bounds
from fusion_bench.evaluation.details.rank_collector import Observer
from fusion_bench.evaluation.ranking.fitting import fit_system
from fusion_bench.evaluation.ranking.list_positions import cut_positions
from fusion_bench.evaluation.ranking.plain_systems import plain_systems
from fusion_bench.evaluation.ranking.system_ranking import ranked_lists
from fusion_bench.evaluation.unjudged.unjudged_values import UnjudgedCollector, UnjudgedValues
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure, TieSensitivity


@dataclass(frozen=True, eq=False)
class Assessment:
    """One system on Q queries and M measures.

    Attributes:
        values: Shape (M, Q).
        ties: What the order of ties could make of the values.
        unjudged: What unjudged documents could change in the primary measure, its only one.
        candidates: Documents returned over all queries.
        bounds: (M,): what completions of the judgments make of each measure; None = complete
            judgments.
        trials: Shape (T, M, Q): the values of each trial, where everything else is the mean over
            T trials; None = there is one.
    """

    values: FloatArray
    ties: TieSensitivity
    unjudged: UnjudgedValues
    candidates: int
    bounds: tuple[QueryBounds | None, ...]
    trials: FloatArray | None = None

    @property
    def first_values(self) -> FloatArray:
        """(Q,): the primary measure on the first trial."""
        values: FloatArray = self.values[0] if self.trials is None else self.trials[0, 0]
        return values


def assess_system(
    system: System,
    runs: AlignedRuns,
    measures: Sequence[Measure],
    *,
    spaces: Mapping[str, ScoreSpace],
    qrels: Qrels,
    observe: Observer | None = None,
) -> Assessment:
    """Measure everything that a report says of one system.

    Args:
        system: The system.
        runs: Aligned runs.
        measures: M measures, the primary one first.
        spaces: Score space of each rerank list.
        qrels: The judgements.
        observe: Called with the lists of each part of the queries.
    """
    size = (len(measures), len(runs.queries))
    values, extremes = np.zeros(size), np.zeros((3, *size))
    unjudged = UnjudgedCollector(runs, measures[:1], qrels)
    affected = np.zeros(size[0], dtype=np.int64)
    candidates, parts = 0, []
    for index, plain, part in plain_systems(fit_system(system, runs, spaces), runs, spaces):
        view, (placed, tie_starts) = ranked_lists(plain, part, spaces)
        positions = cut_positions(placed, plain.top_k)
        values[:, index] = measure.compute_measures(measures, view, positions, qrels=qrels)
        unjudged.add_part(index, view, placed, positions)
        ties = measure.tie_sensitivity(
            measures, view, placed, tie_starts, limit=plain.top_k, qrels=qrels
        )
        extremes[:, :, index] = ties.minimum, ties.maximum, ties.expected
        affected += ties.affected
        candidates += int((positions > 0).sum())
        parts.append((index, view, positions))
        if observe is not None:
            observe(index, view, positions)
    ties = TieSensitivity(affected, *extremes)
    bounds = find_bounds(measures, runs, parts, qrels)
    return Assessment(values, ties, unjudged.make_values(), candidates, bounds)


def perfect_order_values(
    runs: AlignedRuns, measures: Sequence[Measure], *, qrels: Qrels
) -> FloatArray:
    """(M, Q): values of the candidate pool in the order of its grades: no fusion can do better."""
    # Judged documents stand above unjudged ones of the same gain, for measures that ask.
    placed = positions(
        np.maximum(runs.grades, 0).astype(np.float64),
        runs.offsets,
        tie_order=np.where(runs.judged, 0, 1),
    )
    return measure.compute_measures(measures, runs, placed, qrels=qrels)
