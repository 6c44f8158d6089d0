"""The gate's statistics: fusion_bench against scipy's permutation_test, side by side in one run.

What is timed is everything between the values and the verdicts: tests, bounds, Holm, both powers.
scipy does the randomisation test alone, of one check; its time is multiplied by the number of
checks. Rounds are interleaved, medians of processor seconds are compared (other work may run on the
machine), and the p-values of both must agree.
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
from fusion_bench.gate.result import CheckResult

RESULTS = Path(__file__).parent / "gate.json"
QUERIES, MEASURES, COLLECTIONS, RESAMPLES = 10_000, 5, 3, 10_000
#: Two p-values from 10,000 draws each differ by less than this: six standard errors at ½.
AGREE = 6 * np.sqrt(2 * 0.25 / RESAMPLES)


def contests(queries: int, measures: int, collections: int) -> list[Check]:
    """Checks on values that a measure could have: many ties, correlated measures."""
    random = np.random.Generator(np.random.PCG64(7))
    groups, found = np.arange(queries), []
    for c in range(collections):
        base = 1 / random.integers(1, 11, queries)
        for m in range(measures):
            moved = random.random(queries) < 0.4
            values = np.where(moved, 1 / random.integers(1, 11, queries), base) - 0.0005 * m
            found.append(Check(f"c{c}", None, f"m{m}", 0.005, base, np.clip(values, 0, 1), groups))
    return found


def ours(checks: list[Check], resamples: int) -> tuple[CheckResult, ...]:
    """Every verdict with its powers."""
    return run_checks(checks, resamples=resamples, seed=7)


def theirs(checks: list[Check], resamples: int) -> list[float]:
    """scipy: the one-sided sign-flip test of each check, vectorised, in blocks of memory."""
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


def bench(
    queries: int = QUERIES,
    measures: int = MEASURES,
    collections: int = COLLECTIONS,
    resamples: int = RESAMPLES,
    rounds: int = 3,
) -> dict[str, float | int]:
    """One row: processor seconds of both, their ratio, and how far their p-values lie apart."""
    checks = contests(queries, measures, collections)
    taken: dict[str, list[float]] = {"ours": [], "scipy": []}
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, p_values in _contestants(checks, resamples).items():
            started = time.process_time()
            found[name] = p_values()
            taken[name].append(time.process_time() - started)
    gap = abs(found["ours"][0] - found["scipy"][0])
    seconds = {name: statistics.median(times) for name, times in taken.items()}
    return {
        "queries": queries,
        "measures": measures,
        "collections": collections,
        "randomisations": resamples,
        "seconds": seconds["ours"],
        "scipy seconds, one check": seconds["scipy"],
        "ratio": len(checks) * seconds["scipy"] / seconds["ours"],
        "difference of p": gap,
    }


def _contestants(checks: list[Check], resamples: int) -> dict[str, Callable[[], list[float]]]:
    return {
        "ours": lambda: [result.p or 0.0 for result in ours(checks, resamples)],
        "scipy": lambda: theirs(checks[:1], resamples),
    }


def rows(rounds: int = 3) -> list[dict[str, float | int]]:
    """The rows of the table: a small gate and the size that must take seconds."""
    return [bench(1_000, 3, 1, rounds=rounds), bench(rounds=rounds)]


def main() -> None:
    """Print the table and keep it beside this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    found = rows(parser.parse_args().rounds)
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    RESULTS.write_text(json.dumps({"machine": machine, "rows": found}, indent=2) + "\n")
    for row in found:
        assert row["difference of p"] < AGREE, row  # noqa: S101 - a benchmark of wrong numbers is none
        print(
            f"gate: {row['queries']:,} queries × {row['measures']} measures × "
            f"{row['collections']} collections × {row['randomisations']:,} randomisations: "
            f"{row['seconds']:.2f} s with powers; scipy's test of one check "
            f"{row['scipy seconds, one check']:.2f} s, of all {row['ratio']:.1f}× as long"
        )


if __name__ == "__main__":
    main()
