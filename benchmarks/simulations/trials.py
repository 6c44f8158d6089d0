"""Trials: errors of a family whose systems answer differently each time."""

from __future__ import annotations

import numpy as np

from benchmarks.simulations.promise import Promise
from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.compare_family import ComparedValues, compare_family

TITLE = "Repeated trials"
DESCRIPTION = """
5 systems against a baseline on 100 queries, 3 trials each. Values have standard deviation .3 over
queries, which all systems share but for .15, and .15 from trial to trial on one query. Each trial
moves all queries of its system by a normal number of standard deviation 0, .01, .02 or .05.
Promised: with no true difference, all intervals of the family hold it in at least 93 % of the runs,
so that any system is called better or worse in at most 7 %. The plain paired test of the means over
trials stands beside it. Both use 2,000 flips.
"""
DRAWS = 2_000
SYSTEMS, QUERIES, TRIALS, FLIPS = 6, 100, 3, 2_000
QUERY_SD, SYSTEM_SD, RESIDUAL_SD = 0.3, 0.15, 0.15
TRIAL_SDS = (0.0, 0.01, 0.02, 0.05)
KEYS = tuple(f"q{i}" for i in range(QUERIES))
BASELINE = "0"


def run(*, draws: int) -> list[Promise]:
    """Every effect of trials."""
    results = []
    for trial_sd in TRIAL_SDS:
        rng = np.random.default_rng(int(1000 * trial_sd))
        false = np.zeros(2, dtype=int)
        for draw in range(draws):
            false += find_answers(draw_trials(rng, trial_sd), seed=draw)
        design = f"sd of trials {trial_sd:g}"
        event = "any false answer"
        results += [
            Promise(design, f"{event}, crossed model", int(false[0]), draws, 0.07, "at most"),
            Promise(design, f"{event}, plain paired test", int(false[1]), draws),
        ]
    return results


def draw_trials(rng: np.random.Generator, trial_sd: float) -> FloatArray:
    """(systems, trials, queries): values without any true difference."""
    shared = QUERY_SD * rng.standard_normal(QUERIES)
    alone = SYSTEM_SD * rng.standard_normal((SYSTEMS, 1, QUERIES))
    moved = trial_sd * rng.standard_normal((SYSTEMS, TRIALS, 1))
    return shared + alone + moved + RESIDUAL_SD * rng.standard_normal((SYSTEMS, TRIALS, QUERIES))


def find_answers(values: FloatArray, *, seed: int) -> FloatArray:
    """Whether any system is called different, by the crossed model and by the plain test."""
    trials = {str(i): system for i, system in enumerate(values)}
    means = {name: system.mean(axis=0) for name, system in trials.items()}
    tables = [ComparedValues("m", means, BASELINE, KEYS, trials=each) for each in (trials, {})]
    families = [compare_family([table], seed=seed, resamples=FLIPS)[0] for table in tables]
    return np.array([any((row.p_adjusted or 1) <= 0.05 for row in rows) for rows in families])
