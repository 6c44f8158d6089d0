"""Many runs of the gate at once, and the real differences that they draw from."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import numpy as np

from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.experiment.system import System
from fusion_bench.gate.verdict import ALPHA
from fusion_bench.measures import parse_measure
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.stats.corrections import adjust_holm, randomization_p_values
from fusion_bench.stats.intervals import log_capital, log_returns, t_quantile

#: Measures of a run's four checks, with their tolerances.
CHECKS = {"nDCG@10": 0.005, "RR@10": 0.01, "R@10": 0.01, "AP@10": 0.005}
#: Four changes of the fusion of bm25 and dense on JQaRA (1,667 queries).
CONVEX = {"method": "weighted_score", "normalize": "min_max", "missing": "zero"}
CHANGES: dict[str, dict[str, Any]] = {
    "k 60 → 50": {"method": "rrf", "k": 50},
    "weights 1:1 → 1:1.2": {"method": "rrf", "k": 60, "weights": {}},
    "rrf → z-scores": {"method": "weighted_score", "normalize": "z_score", "missing": "min"},
    "rrf → convex": CONVEX,
}
#: Values in a block of runs.
BLOCK = 2_000_000


@cache
def read_differences() -> dict[str, FloatArray]:
    """By change, the real differences of JQaRA, shape (4 checks, 1,667 queries).

    Without ``FUSION_BENCH_PARITY_DATA`` those of a small made collection stand in.
    """
    if os.environ.get("FUSION_BENCH_PARITY_DATA"):
        from tests.parity.collections import aligned

        runs = aligned("jqara")
    else:
        from benchmarks.collections import make_toy_collection

        runs = make_toy_collection().runs
    names = list(runs.sources)
    measures = [parse_measure(name) for name in CHECKS]
    fusions = [{"method": "rrf", "k": 60}, *CHANGES.values()]
    weights = dict(zip(names, (1, 1.2), strict=False))
    fusions = [{**each, "weights": weights} if "weights" in each else each for each in fusions]
    systems = [
        System.model_validate({"name": f"s{i}", "runs": names, "fusion": fusion})
        for i, fusion in enumerate(fusions)
    ]
    before, *after = evaluate_systems(systems, runs, measures)
    return {
        name: scores.values - before.values for name, scores in zip(CHANGES, after, strict=True)
    }


def draw_null(
    differences: FloatArray, shape: tuple[int, int], random: np.random.Generator
) -> FloatArray:
    """Runs without a true difference, shape (checks, runs, queries).

    Queries are drawn with replacement, and the labels of the two systems are swapped with
    probability ½ in every query, for all checks alike.
    """
    queries = random.integers(0, differences.shape[1], shape)
    return np.asarray(differences[:, queries] * random.choice([-1.0, 1.0], shape))


def find_passes(rows: FloatArray, max_drop: float, runs: int = 1) -> tuple[BoolArray, BoolArray]:
    """Whether the t bound, and whether both bounds lie above −max_drop; each (R,).

    Args:
        rows: Shape (R, n): differences.
        max_drop: m.
        runs: Candidates that share the level.
    """
    count = rows.shape[1]
    means, errors = rows.mean(axis=1), rows.std(axis=1, ddof=1) / np.sqrt(count)
    changed = (rows != 0).any(axis=1)
    by_t = changed & (means - t_quantile(count - 1, 1 - ALPHA / runs) * errors > -max_drop)
    both = by_t.copy()
    candidates = np.flatnonzero(by_t)
    for part in np.array_split(candidates, max(1, len(candidates) * count // BLOCK)):
        if len(part):
            sums = log_returns(rows[part], 1.0, -max_drop).sum(axis=1)
            both[part] = log_capital(sums) >= -np.log(ALPHA / runs)
    return by_t, both


def find_alarms(rows: FloatArray, max_drops: FloatArray, seed: int, flips: int) -> BoolArray:
    """Whether any check of a run falls, shape (R,).

    Only runs in which a mean lies below −m are tested; 25 of them share their signs.

    Args:
        rows: Shape (checks, R, n).
        max_drops: Shape (checks,).
        seed: Of the signs.
        flips: Of each test.
    """
    low = rows.mean(axis=2) < -max_drops[:, None]
    alarms = np.zeros(rows.shape[1], dtype=bool)
    tested = np.flatnonzero(low.any(axis=0))
    for i, part in enumerate(np.array_split(tested, max(1, len(tested) // 25))):
        if not len(part):
            continue
        flat = rows[:, part].transpose(1, 0, 2).reshape(-1, rows.shape[2])
        p = randomization_p_values(flat, resamples=flips, seed=seed + i, alternative="less")
        for run, values in zip(part, p.reshape(len(part), -1), strict=True):
            alarms[run] = (low[:, run] & (adjust_holm(values) <= ALPHA)).any()
    return alarms
