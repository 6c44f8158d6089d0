"""Where a system has each candidate: in its lists, in the fused list, in the final list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fusion_bench.blend import Fused, RerankBlend
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, IntArray, tie_group_starts
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.rows.grouped_rows import rows_of
from fusion_bench.evaluation.details.relevant_documents import find_keys
from fusion_bench.evaluation.ranking.fitting import fit_system
from fusion_bench.evaluation.ranking.plain_systems import plain_systems
from fusion_bench.evaluation.ranking.system_ranking import fused_list, ranked_lists
from fusion_bench.experiment.system import System
from fusion_bench.explain.diagnose_failures import StageRanks

#: The role of the lists that were asked with the user's question.
QUESTION = "question"


def rank_stages(system: System, runs: AlignedRuns, spaces: Mapping[str, ScoreSpace]) -> StageRanks:
    """Rank the candidates of every query, stage by stage.

    Args:
        system: The system.
        runs: All sources of the dataset, N candidates of Q queries.
        spaces: Score space of each rerank list.

    Raises:
        AlignmentError: The system does not fit these lists.
        ConfigError: As above.
    """
    fitted = fit_system(system, runs, spaces)
    stages = _empty_stages(len(runs.documents), len(runs.queries))
    for index, plain, part in plain_systems(fitted, runs, spaces):
        view, (final, final_tie_starts) = ranked_lists(plain, part, spaces)
        fused = fused_list(view, plain.fusion)
        rows = _rows_of_view(runs, index, part, view)
        question = [s for s, roles in enumerate(view.roles) if QUESTION in roles]
        stages.is_retrieved[rows] = True
        stages.is_question_first[rows] = (view.ranks[question] == 1).any(axis=0)
        stages.fused[rows] = fused.positions
        stages.fused_tie_starts[rows] = tie_group_starts(
            fused.positions, fused.sort_scores, view.offsets
        )
        stages.final[rows] = final
        stages.final_tie_starts[rows] = final_tie_starts
        is_cut = False if plain.top_k is None else final > plain.top_k
        stages.returned[rows] = np.where(is_cut, 0, final)
        stages.has_question[index] = bool(question)
        stages.is_reranked[index] = _find_reranked(plain, view, fused)
    inner = [stage for stage in (fitted.stages or {}).values() if stage.reranker_names]
    return replace(stages, inner=tuple(rank_stages(stage, runs, spaces) for stage in inner))


def _empty_stages(candidates: int, queries: int) -> StageRanks:
    """A system that retrieves nothing, to be filled."""
    masks = [np.zeros(size, dtype=bool) for size in (candidates, candidates, queries, queries)]
    ranks = [np.zeros(candidates, dtype=np.int64) for _ in range(5)]
    fused, fused_ties, final, final_ties, returned = ranks
    return StageRanks(
        is_retrieved=masks[0],
        is_question_first=masks[1],
        fused=fused,
        fused_tie_starts=fused_ties,
        final=final,
        final_tie_starts=final_ties,
        returned=returned,
        has_question=masks[2],
        is_reranked=masks[3],
    )


def _rows_of_view(
    runs: AlignedRuns, index: IntArray, part: AlignedRuns, view: AlignedRuns
) -> IntArray:
    """The candidates of ``runs`` that the rows of a view are.

    Args:
        runs: All candidates.
        index: The queries of the part.
        part: All candidates of these queries.
        view: What of the part a system reads, in any order.
    """
    everything = len(index) == len(runs.queries)
    rows = np.arange(len(runs.documents)) if everything else rows_of(runs.offsets, index)
    if view is part:
        return rows
    size = len(runs.vocabulary)
    keys = (item.query_index * size + item.documents for item in (part, view))
    return rows[find_keys(*keys)]


def _find_reranked(system: System, view: AlignedRuns, fused: Fused) -> BoolArray:
    """(q,): whether a reranker orders each query of a plain system."""
    blend = system.blend
    reranked = np.full(len(view.queries), blend.reranker_name is not None)
    if isinstance(blend, RerankBlend):
        skipped = view.query_index[blend.is_skipped(view, fused)]
        reranked[skipped] = False
    return reranked
