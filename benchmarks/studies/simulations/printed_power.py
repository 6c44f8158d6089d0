"""What a printed detectable difference and a printed N are worth on the next sample."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.studies.simulations.promise import Promise
from benchmarks.studies.simulations.sample_size import COVERED, SAMPLERS, SD, Sampler, is_right
from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.inference import RowInference, infer_family
from fusion_bench.stats.intervals import ALPHA
from fusion_bench.stats.power import NORMAL_FREEDOM, Spread, critical_value, estimate_spread
from fusion_bench.stats.values import Pair

TITLE = "Printed power"
DESCRIPTION = """
A sample without a true difference prints the difference D that is found with a power of about .8.
The next sample of as many queries has the true difference D. Promised: the next sample shows it in
72 to 88 %. Normal, sparse and rare losses: as in the simulation before. Gains: 30 % of the queries
change, by an exponential value less its mean. Families: five systems, correlation .5, one of them
truly better. Promised of the printed N: its 95 % interval includes the N of the true spread, or N
is "at least" no more than that, in at least 90 %.
"""
DRAWS = 60
SIZES = (60, 200, 1_000)
SYSTEMS, CORRELATION, DIFFERENCE = 5, 0.5, 0.02
LOWEST, HIGHEST = 0.72, 0.88
#: Spreads cost less than draws of a family: so many times as many.
SPREADS = 20


def draw_gains(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """30 % of the differences are exponential less their mean; standard deviation ``SD``."""
    values = rng.exponential(size=shape) - 1
    return np.asarray(values * (rng.random(shape) < 0.3) * SD / np.sqrt(0.3))


def draw_family(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Normal differences of correlated systems, (systems, Q)."""
    size = (SYSTEMS, *shape)
    shared, own = rng.standard_normal(shape), rng.standard_normal(size)
    return np.asarray(SD * (np.sqrt(CORRELATION) * shared + np.sqrt(1 - CORRELATION) * own))


DESIGNS: dict[str, Sampler] = {**SAMPLERS, "gains": draw_gains, "families": draw_family}


def run(*, draws: int, sizes: tuple[int, ...] = SIZES) -> list[Promise]:
    """The power of the next sample, then the coverage of N's interval, by design and size."""
    rng = np.random.default_rng(21)
    return [
        promise
        for queries in sizes
        for name, sampler in DESIGNS.items()
        for promise in _check_design(name, sampler, rng, queries, draws)
    ]


def _check_design(
    name: str, sampler: Sampler, rng: np.random.Generator, queries: int, draws: int
) -> Iterator[Promise]:
    keys, design = tuple(map(str, range(queries))), f"{name}, {queries:,} queries"
    drawn = shown = 0
    for _ in range(draws):
        [first, *_] = _infer(np.atleast_2d(sampler(rng, (queries,))), keys)
        if not np.isfinite(first.detectable):
            continue
        values = np.atleast_2d(sampler(rng, (queries,)))
        values[0] += first.detectable
        [second, *_] = _infer(values, keys)
        drawn += 1
        shown += second.mean > 0 and second.p <= ALPHA
    yield from Promise.from_range(design, "the next sample shows D", shown, drawn, LOWEST, HIGHEST)
    if name == "families":
        return
    size = Spread(SD).needed_queries(DIFFERENCE, critical_value(ALPHA / 2, NORMAL_FREEDOM))
    truth = 0 if size is None else size.queries
    sizes = [
        estimate_spread(row).needed_queries(DIFFERENCE, None)
        for row in sampler(rng, (SPREADS * draws, queries))
    ]
    printed = [each for each in sizes if each is not None]
    right = sum(is_right(each, truth) for each in printed)
    yield Promise(design, "N is right", right, len(printed), COVERED, "at least")


def _infer(values: FloatArray, keys: tuple[str, ...]) -> tuple[RowInference, ...]:
    return infer_family([Pair.from_arrays(row, keys=keys) for row in values])
