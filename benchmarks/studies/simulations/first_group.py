"""The first group: how often the true best is in it, and how many others."""

from __future__ import annotations

import numpy as np

from benchmarks.studies.simulations.promise import Estimate, Promise
from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.comparison_family import ComparedValues, find_first_group

TITLE = "The first group"
DESCRIPTION = """
Values of systems have standard deviation .3 over queries, partly shared by all systems, so that
their differences have standard deviation .2. Equal: no true difference, the first system counts as
the best. Ladder: each of ten systems is .02 below the one before. Apart: two equal systems, the
first counts as the best, and the others 1 (five standard deviations) below. Promised: the true best
is in the first group in at least 95 % of the runs. 500 flips instead of 10,000.
"""
SD, SPREAD, FLIPS, PROMISED = 0.3, 0.2, 500, 0.95
DESIGNS = ((10, 25), (10, 200), (30, 50))
KINDS = ("equal", "ladder", "apart")


def run(*, draws: int) -> list[Promise | Estimate]:
    """Every kind of true means at every number of systems and queries."""
    return [
        result
        for systems, queries in DESIGNS
        for kind in KINDS
        for result in _run_design(kind, systems, queries, draws)
    ]


def _run_design(kind: str, systems: int, queries: int, draws: int) -> list[Promise | Estimate]:
    rng = np.random.default_rng([systems, queries, KINDS.index(kind)])
    names, keys = [f"s{i}" for i in range(systems)], tuple(f"q{i}" for i in range(queries))
    means = true_means(kind, systems)
    sizes, found = np.zeros(draws), 0
    for draw in range(draws):
        values = draw_values(rng, means, queries)
        table = ComparedValues("m", dict(zip(names, values, strict=True)), "s0", keys)
        group = find_first_group(table, seed=draw, draws=FLIPS)
        sizes[draw], found = len(group), found + ("s0" in group)
    design, error = f"{kind}, {systems} systems, {queries} queries", sizes.std() / np.sqrt(draws)
    return [
        Promise(design, "the true best is in it", found, draws, PROMISED, "at least"),
        Estimate(design, "systems in it", float(sizes.mean()), float(error)),
    ]


def true_means(kind: str, systems: int) -> FloatArray:
    """(systems,): the first is a best one."""
    if kind == "ladder":
        return np.asarray(-0.02 * (np.arange(systems) % 10))
    return np.asarray(np.where(np.arange(systems) < 2, 0.0, -1.0 if kind == "apart" else 0.0))


def draw_values(rng: np.random.Generator, means: FloatArray, queries: int) -> FloatArray:
    """(systems, queries): normal values; each pair's differences have the same spread."""
    own = SPREAD / np.sqrt(2)
    shared = np.sqrt(SD**2 - own**2) * rng.standard_normal(queries)
    noise = own * rng.standard_normal((len(means), queries))
    return np.asarray(means[:, None] + shared + noise)
