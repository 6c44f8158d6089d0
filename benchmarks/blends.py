"""Rerank blends and weighted scores evaluated: fusion_bench against ranx, side by side.

The rerank list scores every candidate, as a cross-encoder would: relevant documents higher by
some, all of them with noise. ranx knows no blends, so that all rows are compared with its
``fuse(rrf)`` and ``evaluate``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from benchmarks.cases import SIZES, Case, make
from benchmarks.engine import BATCH, MEASURES, seconds, theirs
from fusion_bench.evaluate import System, evaluate
from fusion_bench.measure import parse_measure
from fusion_bench.records import ScoreSpace

__all__ = ["CONFIGURATIONS", "rows"]

#: What is measured: name → blend.
CONFIGURATIONS: Mapping[str, Mapping[str, object]] = {
    "linear, fused": {"method": "linear", "beta": 0.7},
    "position_aware, 1/rank": {"method": "position_aware", "retrieval": "reciprocal_rank"},
    "replace": {"method": "replace"},
    "weighted_score, min_max": {"method": "none"},
}
SPACES: dict[str, ScoreSpace] = {"reranker": "unit"}


def reranked(case: Case, seed: int = 1) -> Case:
    """The same collection with a rerank score in [0, 1] for every candidate."""
    runs = case.aligned
    noise = np.random.default_rng(seed).normal(size=len(runs.documents))
    scores = 1 / (1 + np.exp(-(noise + 1.5 * (runs.grades > 0))))
    order = np.lexsort((-scores, runs.query_index))
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order)) - runs.offsets[runs.query_index[order]] + 1
    aligned = replace(
        runs, rerankers=("reranker",), rerank=scores[None], rerank_ranks=ranks[None], _memo={}
    )
    return replace(case, aligned=aligned)


def systems(case: Case, name: str, count: int, start: float) -> list[System]:
    """One blend over ``count`` fusions, none of them seen before."""
    blend = dict(CONFIGURATIONS[name])
    if blend["method"] != "none":
        blend["reranker"] = "reranker"
    names = [run.name for run in case.runs]

    def fusion(n: int) -> dict[str, object]:
        weights = {run: 1 + 0.1 * i + 0.01 * (start + n) for i, run in enumerate(names)}
        if name.startswith("weighted_score"):
            return {"method": "weighted_score", "normalize": "min_max", "weights": weights}
        return {"method": "rrf", "k": start + 1.7 * n, "weights": weights}

    return [
        System.model_validate({"name": f"s{n}", "runs": names, "fusion": fusion(n), "blend": blend})
        for n in range(count)
    ]


def ours(case: Case, name: str, count: int) -> Callable[[int], None]:
    """Evaluate ``count`` configurations at once."""
    measures = [parse_measure(measure) for measure in MEASURES]

    def go(turn: int) -> None:
        evaluate(systems(case, name, count, 20.0 + turn), case.aligned, measures, spaces=SPACES)

    return go


def rows(size: str = "many", rounds: int = 5) -> list[dict[str, float | str]]:
    """One row a configuration, as ``benchmarks.engine.bench`` makes them for plain RRF."""
    case = reranked(make(SIZES[size]))
    contestants = {"ranx": theirs(case)}
    for name in CONFIGURATIONS:
        contestants |= {name: ours(case, name, 1), f"{name} batch": ours(case, name, BATCH)}
    found = seconds(contestants, rounds)
    return [
        {
            "size": f"{case.size.name}, {name}",
            "ranx ms": 1000 * found["ranx"],
            "one ms": 1000 * found[name],
            "one ratio": found["ranx"] / found[name],
            "batch ms": 1000 * found[f"{name} batch"] / BATCH,
            "batch ratio": BATCH * found["ranx"] / found[f"{name} batch"],
        }
        for name in CONFIGURATIONS
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # numba's, about features that ranx uses
    print(f"{'':44} {'ranx':>10} {'one':>10} {'ratio':>8} {'in 32s':>10} {'ratio':>8}")
    for row in rows(rounds=options.rounds):
        print(
            f"{row['size']:44} {row['ranx ms']:8.1f}ms {row['one ms']:8.2f}ms "
            f"{row['one ratio']:7.0f}× {row['batch ms']:8.2f}ms {row['batch ratio']:7.0f}×"
        )


if __name__ == "__main__":
    main()
