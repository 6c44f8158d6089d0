"""The gate's statistics against scipy's permutation_test, side by side.

The gate's time covers tests, bounds, Holm's correction and power. scipy runs the randomization test
of one check; its time is multiplied by the number of checks. The p-values of both must agree.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from benchmarks.timing import Row
from fusion_bench.data.ordering import FloatArray
from fusion_bench.gate.checks import Check, run_checks

TITLE = "The gate's statistics"
#: Queries, measures, collections and randomizations.
SIZES = ((1_000, 3, 1, 10_000), (10_000, 5, 3, 10_000))
TOY = ((200, 2, 1, 1_000),)


def make_checks(queries: int, measures: int, collections: int) -> list[Check]:
    """Checks on values that a measure could have: many ties, correlated measures."""
    random = np.random.Generator(np.random.PCG64(7))
    groups, checks = np.arange(queries), []
    for c in range(collections):
        base = 1 / random.integers(1, 11, queries)
        for m in range(measures):
            differs = random.random(queries) < 0.4
            values = np.where(differs, 1 / random.integers(1, 11, queries), base) - 0.0005 * m
            checks.append(Check(f"c{c}", None, f"m{m}", 0.005, base, np.clip(values, 0, 1), groups))
    return checks


def gate_p_values(checks: list[Check], resamples: int) -> list[float]:
    """The p-values of all checks; bounds, Holm and power are computed too."""
    return [result.p or 0.0 for result in run_checks(checks, resamples=resamples, seed=7)]


def scipy_p_values(checks: list[Check], resamples: int) -> list[float]:
    """scipy: the one-sided sign-flip test of each check, vectorized, in blocks of memory."""
    from scipy.stats import permutation_test

    def total(values: FloatArray, axis: int = -1) -> FloatArray:
        return np.asarray(values.sum(axis=axis))

    return [
        float(
            permutation_test(
                (check.difference,),
                total,
                permutation_type="samples",
                alternative="less",
                vectorized=True,
                n_resamples=resamples,
                batch=500,
                rng=np.random.default_rng(7),
            ).pvalue
        )
        for check in checks
    ]


def largest_difference(resamples: int) -> float:
    """Two p-values from so many draws differ by less: six standard errors at 1/2."""
    return float(6 * np.sqrt(2 * 0.25 / resamples))


def rows(rounds: int, *, toy: bool = False) -> list[Row]:
    """One line a size: median CPU seconds of at most three rounds, taken in turns."""
    return [_measure_row(*size, rounds=min(rounds, 3)) for size in (TOY if toy else SIZES)]


def _measure_row(
    queries: int, measures: int, collections: int, resamples: int, *, rounds: int
) -> Row:
    checks = make_checks(queries, measures, collections)
    functions: dict[str, Callable[[], list[float]]] = {
        "gate": lambda: gate_p_values(checks, resamples),
        "scipy": lambda: scipy_p_values(checks[:1], resamples),
    }
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    p_values: dict[str, float] = {}
    for _ in range(rounds):
        for name, function in functions.items():
            started = time.process_time()
            p_values[name] = function()[0]
            seconds[name].append(time.process_time() - started)
    if abs(p_values["gate"] - p_values["scipy"]) >= largest_difference(resamples):
        raise ArithmeticError(f"{queries} queries: the p-values differ: {p_values}")
    gate, scipy = (statistics.median(seconds[name]) for name in functions)
    return {
        "queries × measures × collections": f"{queries:,} × {measures} × {collections}",
        "randomizations": f"{resamples:,}",
        "gate s": gate,
        "scipy, one check s": scipy,
        "scipy ratio": len(checks) * scipy / gate,
    }
