"""Everything measured of one ranking: values, judged-only values, ties, unjudged documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fusion_bench import measures as measure
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, positions
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.evaluation.ranking.fitting import fit_system
from fusion_bench.evaluation.ranking.plain_systems import plain_systems
from fusion_bench.evaluation.ranking.system_ranking import ranked_lists
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure, TieSensitivity

#: Depth at which the unjudged share is stated.
UNJUDGED_DEPTH = 10


@dataclass(frozen=True, eq=False)
class Assessment:
    """One system on Q queries and M measures.

    Attributes:
        values: Shape (M, Q).
        judged_only: Shape (Q,): the primary measure over judged documents only, of the list
            before ``top_k`` cuts it.
        ties: What the order of ties could make of the values.
        unjudged: Shape (Q,): share of unjudged documents among the first 10 that are returned;
            0 where nothing is.
        candidates: Documents returned over all queries.
    """

    values: FloatArray
    judged_only: FloatArray
    ties: TieSensitivity
    unjudged: FloatArray
    candidates: int


def assess_system(
    system: System,
    runs: AlignedRuns,
    measures: Sequence[Measure],
    *,
    spaces: Mapping[str, ScoreSpace],
    qrels: Qrels,
) -> Assessment:
    """Measure everything that a report says of one system.

    Args:
        system: The system.
        runs: Aligned runs.
        measures: M measures, the primary one first.
        spaces: Score space of each rerank list.
        qrels: The judgements.
    """
    size = (len(measures), len(runs.queries))
    values, extremes = np.zeros(size), np.zeros((3, *size))
    judged_only, unjudged = np.zeros(size[1]), np.zeros(size[1])
    affected = np.zeros(size[0], dtype=np.int64)
    candidates = 0
    for index, plain, part in plain_systems(fit_system(system, runs, spaces), runs, spaces):
        view, (placed, tie_starts) = ranked_lists(plain, part, spaces)
        positions = placed if plain.top_k is None else np.where(placed > plain.top_k, 0, placed)
        values[:, index] = measure.compute_measures(measures, view, positions, qrels=qrels)
        # Before top_k cuts: with the unjudged documents gone, others must be able to move up.
        judged_only[index] = measure.compute_measures(
            [measures[0].with_judged_only()], view, placed, qrels=qrels
        )[0]
        ties = measure.tie_sensitivity(
            measures, view, placed, tie_starts, limit=plain.top_k, qrels=qrels
        )
        extremes[:, :, index] = ties.minimum, ties.maximum, ties.expected
        affected += ties.affected
        unjudged[index] = _unjudged_share(view, positions)
        candidates += int((positions > 0).sum())
    ties = TieSensitivity(affected, *extremes)
    return Assessment(values, judged_only, ties, unjudged, candidates)


def _unjudged_share(runs: AlignedRuns, placed: IntArray) -> FloatArray:
    top = (placed >= 1) & (placed <= UNJUDGED_DEPTH)
    shown = np.bincount(runs.query_index[top], minlength=len(runs.queries))
    unknown = np.bincount(runs.query_index[top & ~runs.judged], minlength=len(runs.queries))
    return unknown / np.maximum(shown, 1)


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
