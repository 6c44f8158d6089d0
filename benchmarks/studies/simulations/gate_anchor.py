"""Many small losses in a row."""

from __future__ import annotations

import numpy as np

from benchmarks.studies.simulations._gate_runs import draw_null, find_passes, read_differences
from benchmarks.studies.simulations.promise import Estimate, Promise

TITLE = "Twenty-four small losses in a row"
DESCRIPTION = """
On 1,667 queries each of 24 changes loses .0014 in truth (.033 in all): the differences of nDCG@10
of one change on JQaRA (k 60 → 50) with swapped labels, minus .0014. A change that passes against
the baseline (max_drop .005) becomes the baseline; with the anchor only where its check since the
anchor (max_drop .01) passes, too. What is refused is undone. Promised: the baseline ends more
than .01 below the anchor in at most 5 % of the runs.
"""
DRAWS = 1_000
CHANGES, LOSS, QUERIES = 24, 0.0014, 1667
MAX_DROP, SINCE_ANCHOR = 0.005, 0.01


def run(*, draws: int) -> list[Promise | Estimate]:
    """Run the series with and without an anchor."""
    results: list[Promise | Estimate] = []
    differences = next(iter(read_differences().values()))[:1]
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
        change = draw_null(differences, (runs, QUERIES), random)[0] - LOSS
        accepted, _ = find_passes(change, MAX_DROP)
        if has_anchor:
            accepted &= find_passes(total + change, SINCE_ANCHOR)[0]
        total += np.where(accepted[:, None], change, 0)
        lost += np.where(accepted, LOSS, 0)
    return lost
