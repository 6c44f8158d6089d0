"""Systems with a reranker, for the dialects whose blend is part of them."""

from __future__ import annotations

import numpy as np

from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.experiment.system import System
from fusion_bench.ranking.system_ranking import rank_candidates
from tests.engines.cases import ROLES, Lists


def final_scores(
    system: System, lists: Lists, rerank: dict[str, float], query: str = "q"
) -> dict[str, float]:
    """Document → final score, best first; rerank scores are on the unit scale."""
    runs = align(
        Qrels.from_dict({query: {"a": 1}}),
        [Run.from_dict(name, dict(run), roles=ROLES[name]) for name, run in lists.items()],
        rerankers=[Run.from_dict("ce", {query: rerank})],
    )
    ranking = rank_candidates(system, runs, {"ce": "unit"})
    rows = np.flatnonzero(ranking.positions > 0)
    rows = rows[np.argsort(ranking.positions[rows])]
    view = ranking.runs
    return {view.vocabulary[view.documents[n]]: float(ranking.scores[n]) for n in rows}
