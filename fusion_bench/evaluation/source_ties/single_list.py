"""The exact range where the final list of a system is one of its sources."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from fusion_bench.blend.none import NoBlend
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.evaluation.ranking.plain_systems import plain_systems
from fusion_bench.evaluation.ranking.system_ranking import ranked_lists
from fusion_bench.evaluation.source_ties.tied_rows import order_by_rank, tied_with_next
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure, TieSensitivity, tie_sensitivity


def single_list_ties(
    system: System,
    runs: AlignedRuns,
    measures: Sequence[Measure],
    *,
    spaces: Mapping[str, ScoreSpace],
    qrels: Qrels,
    ranked_by_column: Collection[str],
) -> TieSensitivity | None:
    """Least, greatest and expected value over all orders of the ties inside the source.

    Args:
        system: The system, fitted.
        runs: Aligned runs.
        measures: M measures.
        spaces: Score space of each rerank list.
        qrels: The judgments.
        ranked_by_column: Sources whose order is that of a rank column: they have no ties.

    Returns:
        None where some final list is not that of one source, in its order.
    """
    if system.stages:
        return None  # ties inside the lists that a stage reads are not those of its own list
    size = (len(measures), len(runs.queries))
    extremes, affected = np.zeros((3, *size)), np.zeros(size[0], dtype=np.int64)
    for index, plain, part in plain_systems(system, runs, spaces):
        with_depth = plain.active_runs(part)
        if len(with_depth.sources) != 1 or not isinstance(plain.blend, NoBlend):
            return None
        (name,) = with_depth.sources
        whole = part.restrict([name])
        positions, firsts = _list_groups(whole, has_ties=name not in ranked_by_column)
        cut = int(with_depth.ranks.max(initial=0)) if _is_cut(whole, with_depth) else None
        if not _is_source_order(plain, part, spaces, positions, firsts, cut):
            return None
        limits = [limit for limit in (cut, plain.top_k) if limit is not None]
        ties = tie_sensitivity(
            measures, whole, positions, firsts, limit=min(limits, default=None), qrels=qrels
        )
        extremes[:, :, index] = ties.minimum, ties.maximum, ties.expected
        affected += ties.affected
    return TieSensitivity(affected, *extremes)


def _list_groups(runs: AlignedRuns, *, has_ties: bool) -> tuple[IntArray, IntArray]:
    """(N,) positions in the list of the only source, and (N,) where each group of ties starts."""
    ordered = order_by_rank(runs, runs.ranks[0])
    place = np.arange(1, len(ordered) + 1) - runs.offsets[runs.query_index[ordered]]
    first = place.copy()
    if has_ties:
        scores: FloatArray = runs.scores[0]
        starts = np.ones(len(ordered), dtype=bool)
        starts[1:] = ~tied_with_next(runs, ordered, scores)
        first = place[np.maximum.accumulate(np.where(starts, np.arange(len(ordered)), 0))]
    positions, firsts = np.zeros((2, len(runs.documents)), dtype=np.int64)
    positions[ordered], firsts[ordered] = place, first
    return positions, firsts


def _is_cut(whole: AlignedRuns, view: AlignedRuns) -> bool:
    return len(view.documents) < len(whole.documents)


def _is_source_order(
    plain: System,
    part: AlignedRuns,
    spaces: Mapping[str, ScoreSpace],
    positions: IntArray,
    firsts: IntArray,
    cut: int | None,
) -> bool:
    """Whether the final lists are the source's, with no ties but those of the source.

    Args:
        plain: A plain system of one source.
        part: All sources of its queries.
        spaces: Score space of each rerank list.
        positions: Shape (N,): of the source's candidates in its list.
        firsts: Shape (N,): where each group of ties of the source starts.
        cut: Documents beyond this rank are not read; None = all are.
    """
    _, (ranks, starts) = ranked_lists(plain, part, spaces)
    kept = positions <= cut if cut is not None else np.ones(len(positions), dtype=bool)
    if not np.array_equal(ranks, positions[kept]):
        return False
    return bool((starts >= firsts[kept]).all())
