"""Repeats: errors of a family whose systems answer differently each time."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from benchmarks.studies.simulations.promise import Estimate, Promise
from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.comparison_family import ComparedValues, compare_family
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.stats.repeat_variance import add_repeat_variance, make_repeat_terms

TITLE = "Repeated trials"
DESCRIPTION = """
5 systems against a baseline on 100 queries, 3 trials each. Values have standard deviation .3 over
queries, which all systems share but for .15, and .15 from trial to trial on one query. Each trial
moves all queries of its system by a normal number of standard deviation 0, .01, .02 or .05.
Promised: with no true difference, all intervals of the family hold it in at least 93 % of the runs,
so that any system is called better or worse in at most 7 %. The plain paired test of the means over
trials stands beside it. Both use 2,000 flips. "A fixed baseline" is one list without an effect of
trials, so that each system has to show its effect by itself; any false answer is promised in at
most 7 % there, too. The last rows are one system of 2 or 3 trials against a fixed list on n
queries. Promised: its interval, with the upper limit of the variance of trials, covers in at least
94 % of the runs. "Estimate" is the interval with the estimated variance instead. The ratio of the
half widths of the two is a mean over the runs.
"""
DRAWS = 2_000
SYSTEMS, QUERIES, TRIALS, FLIPS = 6, 100, 3, 2_000
QUERY_SD, SYSTEM_SD, RESIDUAL_SD = 0.3, 0.15, 0.15
REPEAT_SDS = (0.0, 0.01, 0.02, 0.05)
#: Effects of repeats, and repeats of each system, where the baseline is fixed.
FIXED_DESIGNS = ((0.02, 3), (0.05, 3), (0.05, 6))
#: One system of so many repeats, on so many queries, with such an effect of repeats.
FEW = tuple(product((2, 3), (40, 200, 1_000), (0.0, 0.01, 0.02, 0.05, 0.1)))
KEYS = tuple(f"q{i}" for i in range(QUERIES))
BASELINE = "0"


def run(*, draws: int) -> list[Promise | Estimate]:
    """Every effect of repeats, then a fixed baseline, then one system of few repeats."""
    results: list[Promise | Estimate] = []
    for trial_sd in REPEAT_SDS:
        rng = np.random.default_rng(int(1000 * trial_sd))
        false = np.zeros(2, dtype=int)
        for draw in range(draws):
            false += find_answers(draw_repeats(rng, trial_sd), seed=draw)
        design = f"sd of trials {trial_sd:g}"
        event = "any false answer"
        results += [
            Promise(design, f"{event}, crossed model", int(false[0]), draws, 0.07, "at most"),
            Promise(design, f"{event}, plain paired test", int(false[1]), draws),
        ]
    results += [run_fixed(*design, draws=draws) for design in FIXED_DESIGNS]
    return results + [each for design in FEW for each in run_few(*design, draws=draws)]


def run_few(
    repeats: int, queries: int, trial_sd: float, *, draws: int
) -> tuple[Promise, Promise, Estimate]:
    """Coverage of one system of few repeats against a fixed list, by limit and by estimate."""
    rng = np.random.default_rng([repeats, queries, int(1000 * trial_sd)])
    covered, ratios = np.zeros(2, dtype=int), np.empty(draws)
    for draw in range(draws):
        moved = trial_sd * rng.standard_normal((repeats, 1))
        values = moved + RESIDUAL_SD * rng.standard_normal((repeats, queries))
        values += SYSTEM_SD * np.sqrt(2) * rng.standard_normal(queries)
        by_queries = estimate_mean(values.mean(axis=0))
        limit = make_repeat_terms((values, None))
        estimated = [replace(term, is_limit=False) for term in limit]
        estimates = [
            add_repeat_variance(by_queries, [term for term in terms if term.variance > 0])
            for terms in (limit, estimated)
        ]
        covered += [each.low <= 0 <= each.high for each in estimates]
        widths = [each.high - each.low for each in estimates]
        ratios[draw] = widths[0] / widths[1]
    design = f"sd of trials {trial_sd:g}, {repeats} trials, {queries} queries, a fixed list"
    error = float(ratios.std(ddof=1) / np.sqrt(draws)) if draws > 1 else 0.0
    return (
        Promise(design, "interval covers, limit", int(covered[0]), draws, 0.94, "at least"),
        Promise(design, "interval covers, estimate", int(covered[1]), draws),
        Estimate(design, "half width, limit ÷ estimate", float(ratios.mean()), error),
    )


def run_fixed(trial_sd: float, repeats: int, *, draws: int) -> Promise:
    """Systems of several repeats against a baseline of one list."""
    rng = np.random.default_rng([int(1000 * trial_sd), repeats])
    false = 0
    for draw in range(draws):
        values = draw_repeats(rng, trial_sd, repeats, is_fixed=True)
        repeated = {str(i): system for i, system in enumerate(values) if i}
        means = {name: system.mean(axis=0) for name, system in repeated.items()}
        table = ComparedValues(
            "m", {BASELINE: values[0, 0], **means}, BASELINE, KEYS, repeats=repeated
        )
        false += is_answered(table, seed=draw)
    design = f"sd of trials {trial_sd:g}, {repeats} trials, a fixed baseline"
    return Promise(design, "any false answer, crossed model", false, draws, 0.07, "at most")


def draw_repeats(
    rng: np.random.Generator, trial_sd: float, repeats: int = TRIALS, *, is_fixed: bool = False
) -> FloatArray:
    """(systems, repeats, queries): values without any true difference.

    Args:
        rng: Source of the random numbers.
        trial_sd: The effect of repeats.
        repeats: Of each system.
        is_fixed: Whether repeats have no effect on the first system.
    """
    shared = QUERY_SD * rng.standard_normal(QUERIES)
    alone = SYSTEM_SD * rng.standard_normal((SYSTEMS, 1, QUERIES))
    moved = trial_sd * rng.standard_normal((SYSTEMS, repeats, 1))
    moved[0] *= not is_fixed
    return shared + alone + moved + RESIDUAL_SD * rng.standard_normal((SYSTEMS, repeats, QUERIES))


def find_answers(values: FloatArray, *, seed: int) -> FloatArray:
    """Whether any system is called different, by the crossed model and by the plain test."""
    repeats = {str(i): system for i, system in enumerate(values)}
    means = {name: system.mean(axis=0) for name, system in repeats.items()}
    tables = [ComparedValues("m", means, BASELINE, KEYS, repeats=each) for each in (repeats, {})]
    return np.array([is_answered(table, seed=seed) for table in tables])


def is_answered(table: ComparedValues, *, seed: int) -> bool:
    """Whether any system of the family is called different."""
    [rows] = compare_family([table], seed=seed, resamples=FLIPS)
    return any((row.p_adjusted or 1) <= 0.05 for row in rows)
