"""Alarms without a difference, and passes at a true drop of exactly the tolerance."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.studies.simulations._gate_runs import (
    CHECKS,
    draw_null,
    find_alarms,
    find_passes,
    read_differences,
)
from benchmarks.studies.simulations.promise import Promise
from fusion_bench.data.ordering import FloatArray

TITLE = "The gate on few queries and small changes"
DESCRIPTION = """
Differences are those of four changes of the fusion of two lists on JQaRA, in four checks (nDCG@10
and AP@10 with max_drop .005, RR@10 and R@10 with .01). Queries are drawn with replacement, and
the labels of the two systems are swapped with probability ½, so that there is no true difference.
Rare losses: at a true drop a share m of the queries loses 1 instead; without a difference .5 %
lose 1 and .5 % gain 1. A run has 2,000 flips. Promised: any alarm in at most 5 % of the runs
without a difference, and a plain pass (nDCG@10) in at most 5 % at a true drop of exactly m. `pass
on these queries` promises nothing.
"""
SIZES = (50, 200, 1000)
FLIPS = 2_000
RARE = 0.005


def run(*, draws: int) -> list[Promise]:
    """Measure every change at every size."""
    random = np.random.default_rng(41)
    promises: list[Promise] = []
    for change, differences in read_differences().items():
        for size in SIZES:
            promises += _measure_alarms(change, differences, size, draws, random)
            promises += _measure_false_passes(change, differences, size, draws, random)
    return promises


def _measure_alarms(
    change: str, differences: FloatArray, size: int, draws: int, random: np.random.Generator
) -> Iterator[Promise]:
    max_drops = np.array(list(CHECKS.values()))
    for name in ("", ", rare ±1"):
        alarms = 0
        for start in range(0, draws, 250):
            shape = (min(250, draws - start), size)
            rows = draw_null(differences, shape, random)
            if name:
                rare = random.random(shape) < 2 * RARE
                rows = np.where(rare, random.choice([-1.0, 1.0], shape), rows)
            seed = int(random.integers(2**31))
            alarms += int(find_alarms(rows, max_drops, seed, FLIPS).sum())
        yield Promise(
            f"{change}, {size:,} queries{name}", "any alarm", alarms, draws, 0.05, "at most"
        )


def _measure_false_passes(
    change: str, differences: FloatArray, size: int, draws: int, random: np.random.Generator
) -> Iterator[Promise]:
    """A true drop of exactly m = .01, as rare losses of 1 and as a small loss of every query."""
    m = 0.01
    for name in ("rare losses of 1", "every query loses m"):
        passed = both = 0
        for start in range(0, draws, 500):
            shape = (min(500, draws - start), size)
            rows = draw_null(differences[:1], shape, random)[0]
            rows = np.where(random.random(shape) < m, -1.0, rows) if "rare" in name else rows - m
            by_t, by_both = find_passes(np.maximum(rows, -1.0), m)
            passed += int(by_t.sum())
            both += int(by_both.sum())
        design = f"{change}, {size:,} queries, {name}"
        yield Promise(design, "pass at a drop of m = .01", both, draws, 0.05, "at most")
        yield Promise(design, "either pass at a drop of m = .01", passed, draws)
