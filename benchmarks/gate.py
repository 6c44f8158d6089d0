"""The gate's statistics against scipy's bootstrap, side by side.

The gate's time covers both ends, p and power of all checks. scipy computes the BCa interval of one
check; its time is multiplied by the number of checks. The lower ends of both must agree.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from benchmarks.timing import Row
from fusion_bench.gate.checks import Check, run_checks
from fusion_bench.gate.tolerances import standard_error
from fusion_bench.stats.inference import DRAWS, draw_counts
from fusion_bench.stats.intervals import ALPHA
from fusion_bench.stats.values import Pair

TITLE = "The gate's statistics"
#: Queries, measures and collections.
SIZES = ((1_000, 3, 1), (10_000, 5, 3))
TOY = ((200, 2, 1),)


def make_checks(queries: int, measures: int, collections: int) -> list[Check]:
    """Checks on values that a measure could have: many ties, correlated measures."""
    random = np.random.Generator(np.random.PCG64(7))
    keys, checks = tuple(f"q{q}" for q in range(queries)), []
    for c in range(collections):
        base = 1 / random.integers(1, 11, queries)
        for m in range(measures):
            differs = random.random(queries) < 0.4
            values = np.where(differs, 1 / random.integers(1, 11, queries), base) - 0.0005 * m
            pair = Pair.from_arrays(np.clip(values, 0, 1), base, keys, measure=f"m{m}")
            checks.append(Check(f"c{c}", None, 0.005, pair))
    return checks


def gate_ends(checks: list[Check]) -> list[float]:
    """The lower ends of all checks; upper ends, p and power are computed too."""
    return [result.lower_end or 0.0 for result in run_checks(checks, seed=7)]


def scipy_ends(checks: list[Check]) -> list[float]:
    """scipy: the one-sided BCa bootstrap interval of each mean, vectorized, in blocks of memory."""
    from scipy.stats import bootstrap

    return [
        float(
            bootstrap(
                (check.pair.difference,),
                np.mean,
                n_resamples=DRAWS,
                batch=500,
                vectorized=True,
                confidence_level=1 - 2 * ALPHA,
                method="BCa",
                rng=np.random.default_rng(7),
            ).confidence_interval.low
        )
        for check in checks
    ]


#: Two lower ends differ by less, in standard errors.
AGREEMENT = 0.25


def rows(rounds: int, *, toy: bool = False) -> list[Row]:
    """One line a size: median CPU seconds of at most three rounds, taken in turns."""
    return [_measure_row(*size, rounds=min(rounds, 3)) for size in (TOY if toy else SIZES)]


def _measure_row(queries: int, measures: int, collections: int, *, rounds: int) -> Row:
    checks = make_checks(queries, measures, collections)
    functions: dict[str, Callable[[], list[float]]] = {
        "gate": lambda: gate_ends(checks),
        "scipy": lambda: scipy_ends(checks[:1]),
    }
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    ends: dict[str, float] = {}
    for _ in range(rounds):
        draw_counts.cache_clear()
        for name, function in functions.items():
            started = time.process_time()
            ends[name] = function()[0]
            seconds[name].append(time.process_time() - started)
    if abs(ends["gate"] - ends["scipy"]) >= AGREEMENT * standard_error(checks[0]):
        raise ArithmeticError(f"{queries} queries: the lower ends differ: {ends}")
    gate, scipy = (statistics.median(seconds[name]) for name in functions)
    return {
        "queries × measures × collections": f"{queries:,} × {measures} × {collections}",
        "gate s": gate,
        "scipy, one check s": scipy,
        "scipy ratio": len(checks) * scipy / gate,
    }
