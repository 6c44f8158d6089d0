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
trials stands beside it. Both use 2,000 flips. In the last rows the baseline is one list without an
effect of trials, and counts as fixed. Nothing is promised there: each system has to show its effect
of trials by itself.
"""
DRAWS = 2_000
SYSTEMS, QUERIES, TRIALS, FLIPS = 6, 100, 3, 2_000
QUERY_SD, SYSTEM_SD, RESIDUAL_SD = 0.3, 0.15, 0.15
TRIAL_SDS = (0.0, 0.01, 0.02, 0.05)
#: Effects of trials, and trials of each system, where the baseline is fixed.
FIXED_DESIGNS = ((0.02, 3), (0.05, 3), (0.05, 6))
KEYS = tuple(f"q{i}" for i in range(QUERIES))
BASELINE = "0"


def run(*, draws: int) -> list[Promise]:
    """Every effect of trials, then a fixed baseline."""
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
    return [*results, *(run_fixed(*design, draws=draws) for design in FIXED_DESIGNS)]


def run_fixed(trial_sd: float, trials: int, *, draws: int) -> Promise:
    """Systems of several trials against a baseline of one list."""
    rng = np.random.default_rng([int(1000 * trial_sd), trials])
    false = 0
    for draw in range(draws):
        values = draw_trials(rng, trial_sd, trials, is_fixed=True)
        repeated = {str(i): system for i, system in enumerate(values) if i}
        means = {name: system.mean(axis=0) for name, system in repeated.items()}
        table = ComparedValues(
            "m", {BASELINE: values[0, 0], **means}, BASELINE, KEYS, trials=repeated
        )
        false += is_answered(table, seed=draw)
    design = f"sd of trials {trial_sd:g}, {trials} trials, a fixed baseline"
    return Promise(design, "any false answer, crossed model", false, draws)


def draw_trials(
    rng: np.random.Generator, trial_sd: float, trials: int = TRIALS, *, is_fixed: bool = False
) -> FloatArray:
    """(systems, trials, queries): values without any true difference.

    Args:
        rng: Source of the random numbers.
        trial_sd: The effect of trials.
        trials: Of each system.
        is_fixed: Whether trials have no effect on the first system.
    """
    shared = QUERY_SD * rng.standard_normal(QUERIES)
    alone = SYSTEM_SD * rng.standard_normal((SYSTEMS, 1, QUERIES))
    moved = trial_sd * rng.standard_normal((SYSTEMS, trials, 1))
    moved[0] *= not is_fixed
    return shared + alone + moved + RESIDUAL_SD * rng.standard_normal((SYSTEMS, trials, QUERIES))


def find_answers(values: FloatArray, *, seed: int) -> FloatArray:
    """Whether any system is called different, by the crossed model and by the plain test."""
    trials = {str(i): system for i, system in enumerate(values)}
    means = {name: system.mean(axis=0) for name, system in trials.items()}
    tables = [ComparedValues("m", means, BASELINE, KEYS, trials=each) for each in (trials, {})]
    return np.array([is_answered(table, seed=seed) for table in tables])


def is_answered(table: ComparedValues, *, seed: int) -> bool:
    """Whether any system of the family is called different."""
    [rows] = compare_family([table], seed=seed, resamples=FLIPS)
    return any((row.p_adjusted or 1) <= 0.05 for row in rows)
