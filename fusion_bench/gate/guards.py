"""Bounds on single queries, and documents that must not be lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.evaluation.scores import Ranking
from fusion_bench.experiment.gate_settings import Golden, Guard
from fusion_bench.gate.result import GoldenResult, GuardResult
from fusion_bench.stats.comparison import NOISE

__all__ = ["golden_result", "guard_result", "place_of"]

Rankings = Sequence[tuple[IntArray, Ranking]]


def guard_result(
    guard: Guard, collection: str, baseline: FloatArray, candidate: FloatArray
) -> GuardResult:
    """How many queries lose more than the guard allows.

    Args:
        guard: The bound.
        collection: The dataset.
        baseline: Shape (Q,).
        candidate: Shape (Q,).
    """
    if not len(baseline):
        fault: str | None = "no query to guard"
    else:
        finite = np.isfinite(baseline) & np.isfinite(candidate)
        fault = None if finite.all() else f"{int((~finite).sum())} values are not finite"
    losers = int((candidate - baseline < -guard.lose - NOISE).sum())
    share = losers / max(len(baseline), 1)
    return GuardResult(
        collection=collection,
        measure=guard.measure,
        lose=guard.lose,
        at_most=guard.at_most,
        losers=losers,
        share=share,
        fault=fault,
        holds=fault is None and share <= guard.at_most,
    )


def golden_result(golden: Golden, found: Mapping[str, Rankings]) -> GoldenResult:
    """Whether a golden query keeps its document.

    Args:
        golden: The query, the document and the last place that will do.
        found: Rankings of the candidate by collection.
    """
    names = [golden.dataset] if golden.dataset is not None else list(found)
    places = [place_of(found[name], golden.query, golden.document) for name in names]
    place = places[0] if len(names) == 1 else None
    fault = None
    if len(names) != 1:
        fault = f"several datasets ({', '.join(names)}): name the golden query's 'dataset'"
    elif place is None:
        fault = "no such query among the evaluated ones"
    return GoldenResult(
        collection=names[0] if len(names) == 1 else "",
        query=golden.query,
        document=golden.document,
        top=golden.top,
        place=place or None,
        fault=fault,
        holds=fault is None and place is not None and 1 <= place <= golden.top,
    )


def place_of(rankings: Rankings, query: str, document: str) -> int | None:
    """Position of a document in the final list; 0 = not in it, None = no such query."""
    for _, ranking in rankings:
        runs = ranking.runs
        if query not in runs.queries:
            continue
        q = runs.queries.index(query)
        for row in range(int(runs.offsets[q]), int(runs.offsets[q + 1])):
            if runs.vocabulary[runs.documents[row]] == document:
                return int(ranking.positions[row])
        return 0
    return None
