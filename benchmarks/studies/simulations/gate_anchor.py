"""Many small losses in a row."""

from __future__ import annotations

import os

import numpy as np

from benchmarks.studies.simulations.promise import Estimate, Promise
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.experiment.system import System
from fusion_bench.gate.verdict import ALPHA
from fusion_bench.measures import parse_measure
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.stats.intervals import t_quantile

TITLE = "Twenty-four small losses in a row"
DESCRIPTION = """
On 1,667 queries each of 24 changes truly loses .0014 (.033 in all). Its differences are the ones of
one change on JQaRA (k 60 → 50) in nDCG@10 with swapped labels, minus .0014. A change that passes
against the baseline (max_drop .005) becomes the baseline. With the anchor, its check since the
anchor (max_drop .01) must pass, too. A refused change is undone. Promised: the baseline ends more
than .01 below the anchor in at most 5 % of the runs. With so many queries the lower end is
Student's.
"""
DRAWS = 1_000
CHANGES, LOSS, QUERIES = 24, 0.0014, 1667
MAX_DROP, SINCE_ANCHOR = 0.005, 0.01


def run(*, draws: int) -> list[Promise | Estimate]:
    """Run the series with and without an anchor."""
    results: list[Promise | Estimate] = []
    differences = read_differences()
    for has_anchor in (False, True):
        random = np.random.default_rng(43)
        name = "with the anchor" if has_anchor else "without an anchor"
        lost = np.concatenate(
            [
                _lose(min(200, draws - start), has_anchor, random, differences)
                for start in range(0, draws, 200)
            ]
        )
        far = int((lost > SINCE_ANCHOR + 1e-9).sum())
        limit = {"limit": 0.05, "side": "at most"} if has_anchor else {}
        results.append(Promise(name, "more than .01 lost in truth", far, draws, **limit))  # type: ignore[arg-type]
        everything = int((lost > CHANGES * LOSS - 1e-9).sum())
        results.append(Promise(name, "all 24 changes accepted", everything, draws))
        error = float(lost.std(ddof=1) / np.sqrt(draws)) if draws > 1 else 0.0
        results.append(Estimate(name, "true loss that was accepted", float(lost.mean()), error))
    return results


def _lose(
    runs: int, has_anchor: bool, random: np.random.Generator, differences: np.ndarray
) -> np.ndarray:
    """The true loss that was accepted, shape (runs,)."""
    total = np.zeros((runs, QUERIES))
    lost = np.zeros(runs)
    for _ in range(CHANGES):
        change = draw_null(differences, (runs, QUERIES), random) - LOSS
        accepted = find_passes(change, MAX_DROP)
        if has_anchor:
            accepted &= find_passes(total + change, SINCE_ANCHOR)
        total += np.where(accepted[:, None], change, 0)
        lost += np.where(accepted, LOSS, 0)
    return lost


def read_differences() -> FloatArray:
    """(Q,): the differences of nDCG@10 of k 60 → 50 on JQaRA.

    Without ``FUSION_BENCH_PARITY_DATA`` those of a small made collection stand in.
    """
    if os.environ.get("FUSION_BENCH_PARITY_DATA"):
        from tests.parity.collections import aligned

        runs = aligned("jqara")
    else:
        from benchmarks.collections import make_toy_collection

        runs = make_toy_collection().runs
    systems = [
        System.model_validate(
            {"name": f"k={k}", "runs": list(runs.sources), "fusion": {"method": "rrf", "k": k}}
        )
        for k in (60, 50)
    ]
    before, after = evaluate_systems(systems, runs, [parse_measure("nDCG@10")])
    return np.asarray(after.values[0] - before.values[0])


def draw_null(
    differences: FloatArray, shape: tuple[int, int], random: np.random.Generator
) -> FloatArray:
    """Runs without a true difference: queries drawn with replacement, labels swapped at random."""
    queries = random.integers(0, len(differences), shape)
    return np.asarray(differences[queries] * random.choice([-1.0, 1.0], shape))


def find_passes(rows: FloatArray, max_drop: float) -> BoolArray:
    """(R,): whether the lower end of each row of differences, shape (R, n), is above −m."""
    count = rows.shape[1]
    means, errors = rows.mean(axis=1), rows.std(axis=1, ddof=1) / np.sqrt(count)
    ends = means - t_quantile(count - 1, 1 - ALPHA) * errors
    return np.asarray((rows != 0).any(axis=1) & (ends > -max_drop))
