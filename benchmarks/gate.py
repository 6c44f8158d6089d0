"""The gate's statistics against scipy's permutation_test, side by side in one run.

The gate's time covers tests, bounds, Holm's correction and power. scipy runs the randomization test
of one check; its time is multiplied by the number of checks. Rounds are interleaved, medians of CPU
seconds are compared, and the p-values of both must agree.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.gate.check_statistics import Check, run_checks

RESULTS = Path(__file__).parent / "gate.json"
QUERIES, MEASURES, COLLECTIONS, RESAMPLES = 10_000, 5, 3, 10_000
#: Two p-values from 10,000 draws each differ by less than this: six standard errors at ½.
AGREE = 6 * np.sqrt(2 * 0.25 / RESAMPLES)


def make_checks(queries: int, measures: int, collections: int) -> list[Check]:
    """Checks on values that a measure could have: many ties, correlated measures."""
    random = np.random.Generator(np.random.PCG64(7))
    groups, results = np.arange(queries), []
    for c in range(collections):
        base = 1 / random.integers(1, 11, queries)
        for m in range(measures):
            moved = random.random(queries) < 0.4
            values = np.where(moved, 1 / random.integers(1, 11, queries), base) - 0.0005 * m
            results.append(
                Check(f"c{c}", None, f"m{m}", 0.005, base, np.clip(values, 0, 1), groups)
            )
    return results


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


def measure_row(
    queries: int = QUERIES,
    measures: int = MEASURES,
    collections: int = COLLECTIONS,
    resamples: int = RESAMPLES,
    rounds: int = 3,
) -> dict[str, float | int]:
    """One row: CPU seconds of both, their ratio, and how far their p-values lie apart."""
    checks = make_checks(queries, measures, collections)
    durations: dict[str, list[float]] = {"gate": [], "scipy": []}
    results: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, p_values in _timed_functions(checks, resamples).items():
            started = time.process_time()
            results[name] = p_values()
            durations[name].append(time.process_time() - started)
    gap = abs(results["gate"][0] - results["scipy"][0])
    seconds = {name: statistics.median(times) for name, times in durations.items()}
    return {
        "queries": queries,
        "measures": measures,
        "collections": collections,
        "randomizations": resamples,
        "seconds": seconds["gate"],
        "scipy seconds, one check": seconds["scipy"],
        "ratio": len(checks) * seconds["scipy"] / seconds["gate"],
        "difference of p": gap,
    }


def _timed_functions(checks: list[Check], resamples: int) -> dict[str, Callable[[], list[float]]]:
    return {
        "gate": lambda: gate_p_values(checks, resamples),
        "scipy": lambda: scipy_p_values(checks[:1], resamples),
    }


def rows(rounds: int = 3) -> list[dict[str, float | int]]:
    """The rows of the table: a small gate and the size that must take seconds."""
    return [measure_row(1_000, 3, 1, rounds=rounds), measure_row(rounds=rounds)]


def main() -> None:
    """Print the table and keep it beside this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    results = rows(parser.parse_args().rounds)
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    RESULTS.write_text(json.dumps({"machine": machine, "rows": results}, indent=2) + "\n")
    for row in results:
        assert row["difference of p"] < AGREE, row  # noqa: S101 - wrong numbers make no benchmark
        print(
            f"gate: {row['queries']:,} queries × {row['measures']} measures × "
            f"{row['collections']} collections × {row['randomizations']:,} randomizations: "
            f"{row['seconds']:.2f} s with powers; scipy's test of one check "
            f"{row['scipy seconds, one check']:.2f} s, of all {row['ratio']:.1f}× as long"
        )


if __name__ == "__main__":
    main()
