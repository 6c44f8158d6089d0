"""The final list of one query, ranked by the functions that ``eval`` ranks with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np

from fusion_bench.blend import RerankBlend
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.evaluation.ranking.plain_systems import plain_systems
from fusion_bench.evaluation.ranking.system_ranking import (
    SystemRanking,
    fused_list,
    name_system_in_errors,
    rank_candidates,
)
from fusion_bench.experiment.system import System
from fusion_bench.live.hits import Hit
from fusion_bench.live.query_lists import candidate_ids
from fusion_bench.live.results import LiveDocument, SourceHit


def rank_documents(
    system: System,
    runs: AlignedRuns,
    spaces: Mapping[str, ScoreSpace],
    lists: Mapping[str, Sequence[Hit]],
) -> tuple[LiveDocument, ...]:
    """The documents that a system returns for one query, best first.

    Args:
        system: The system.
        runs: Of the query, with every rerank list that the system reads.
        spaces: Score space of each rerank list.
        lists: What was handed over, by name, in the caller's order.

    Raises:
        AlignmentError: A candidate has no rerank score, under ``missing: error``.
        ConfigError: The system does not fit the lists.
    """
    [(_, plain, part)] = plain_systems(system, runs, spaces)
    ranking = rank_candidates(plain, part, spaces)
    view = ranking.runs
    fused = fused_list(view, plain.fusion)
    columns = (ranking.scores, fused.scores, _rerank_scores(plain, ranking, spaces))
    scores, fused_scores, rerank_scores = (column.tolist() for column in columns)
    ids, extras, hits = candidate_ids(view), _merge_extras(lists), _source_hits(plain, view)
    rows = np.flatnonzero(ranking.positions > 0)
    return tuple(
        LiveDocument(
            id=ids[row],
            score=scores[row],
            fused_score=fused_scores[row],
            rerank_score=None if isnan(rerank_scores[row]) else rerank_scores[row],
            sources=hits(row),
            text=extras[ids[row]][0],
            metadata=extras[ids[row]][1],
        )
        for row in rows[np.argsort(ranking.positions[rows])].tolist()
    )


def _rerank_scores(
    system: System, ranking: SystemRanking, spaces: Mapping[str, ScoreSpace]
) -> FloatArray:
    """(N,): rerank scores on the unit scale; NaN = not scored."""
    runs, blend = ranking.runs, system.blend
    if not isinstance(blend, RerankBlend):
        return np.full(len(runs.documents), np.nan)
    with name_system_in_errors(system):
        fused = fused_list(runs, system.fusion)
        _, unit, _ = blend.score_candidates(runs, fused, spaces)
    raw = runs.rerank[runs.rerankers.index(blend.reranker)]
    return np.where(np.isnan(raw), np.nan, unit)


def _source_hits(system: System, runs: AlignedRuns) -> Callable[[int], tuple[SourceHit, ...]]:
    """Row of a candidate → where it came from."""
    weights = system.fusion.source_weights(runs.sources, runs.roles).tolist()
    ranks, scores = runs.ranks.T.tolist(), runs.scores.T.tolist()

    def list_hits(row: int) -> tuple[SourceHit, ...]:
        columns = zip(runs.sources, ranks[row], scores[row], weights, strict=True)
        return tuple(SourceHit(*column) for column in columns if column[1] > 0)

    return list_hits


def _merge_extras(
    lists: Mapping[str, Sequence[Hit]],
) -> dict[str, tuple[str | None, dict[str, Any]]]:
    """Document → its first text and its merged metadata, in which later lists win."""
    merged: dict[str, tuple[str | None, dict[str, Any]]] = {}
    for hits in lists.values():
        for hit in hits:
            text, metadata = merged.get(hit.id, (None, {}))
            merged[hit.id] = hit.text if text is None else text, {**metadata, **hit.metadata}
    return merged
