"""Rerank blends and weighted scores evaluated: fusion_bench against ranx, side by side.

The rerank list scores every candidate, as a cross-encoder would: noise, and more for relevant
documents. ranx has no blends: every row is compared with its ``fuse(rrf)`` and ``evaluate``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from benchmarks.cases import SIZES, Case, make_case
from benchmarks.engine import BATCH, MEASURES, ranx_task
from benchmarks.timing import Row, Task, median_seconds
from fusion_bench.data.records import ScoreSpace
from fusion_bench.experiment.system import System
from fusion_bench.measures import parse_measure
from fusion_bench.ranking.system_scores import evaluate_systems

TITLE = "Rerank blends and weighted scores"
#: What is measured: name → blend.
CONFIGURATIONS: Mapping[str, Mapping[str, object]] = {
    "linear, fused": {"method": "linear", "beta": 0.7},
    "position_aware, 1/rank": {"method": "position_aware", "retrieval": "reciprocal_rank"},
    "replace": {"method": "replace"},
    "weighted_score, min_max": {"method": "none"},
}
SPACES: dict[str, ScoreSpace] = {"reranker": "unit"}


def add_reranker(case: Case, seed: int = 1) -> Case:
    """The same collection with a rerank score in [0, 1] for every candidate."""
    runs = case.aligned
    noise = np.random.default_rng(seed).normal(size=len(runs.documents))
    scores = 1 / (1 + np.exp(-(noise + 1.5 * (runs.grades > 0))))
    order = np.lexsort((-scores, runs.query_index))
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order)) - runs.offsets[runs.query_index[order]] + 1
    aligned = replace(
        runs, rerankers=("reranker",), rerank=scores[None], rerank_ranks=ranks[None], spaces=SPACES
    )
    return replace(case, aligned=aligned)


def make_systems(case: Case, name: str, count: int, turn: int) -> list[System]:
    """One blend over ``count`` fusions, different in every turn."""
    blend = dict(CONFIGURATIONS[name])
    if blend["method"] != "none":
        blend["reranker"] = "reranker"
    names = [run.name for run in case.runs]

    def fusion(n: int) -> dict[str, object]:
        weights = {run: 1 + 0.1 * i + 0.01 * (turn + n) for i, run in enumerate(names)}
        if name.startswith("weighted_score"):
            return {"method": "weighted_score", "normalize": "min_max", "weights": weights}
        return {"method": "rrf", "k": 20.0 + turn + 1.7 * n, "weights": weights}

    return [
        System.model_validate({"name": f"s{n}", "runs": names, "fusion": fusion(n), "blend": blend})
        for n in range(count)
    ]


def fusion_bench_task(case: Case, name: str, count: int) -> Task:
    """Evaluate ``count`` configurations at once."""
    measures = [parse_measure(measure) for measure in MEASURES]

    def task(turn: int) -> object:
        batch = make_systems(case, name, count, turn)
        return evaluate_systems(batch, case.aligned, measures)

    return task


def rows(rounds: int, *, toy: bool = False) -> list[Row]:
    """One line a configuration, each beside ranx on the same lists."""
    case = add_reranker(make_case(SIZES["toy" if toy else "many"]))
    contestants = {"ranx": ranx_task(case, list(MEASURES.values()))}
    for name in CONFIGURATIONS:
        contestants |= {f"{name} {n}": fusion_bench_task(case, name, n) for n in (1, BATCH)}
    times = median_seconds(contestants, rounds)
    return [
        {
            "queries × runs × documents": case.size.name,
            "system": name,
            "ranx ms": 1000 * times["ranx"],
            "one ms": 1000 * times[f"{name} 1"],
            "one ratio": times["ranx"] / times[f"{name} 1"],
            f"of {BATCH} ms": 1000 * times[f"{name} {BATCH}"] / BATCH,
            f"of {BATCH} ratio": times["ranx"] / (times[f"{name} {BATCH}"] / BATCH),
        }
        for name in CONFIGURATIONS
    ]
