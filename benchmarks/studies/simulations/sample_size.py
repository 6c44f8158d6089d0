"""Numbers of queries: the power at the printed number, and the coverage of its interval."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.studies.simulations.promise import Estimate, Promise
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.stats.inference import infer_family
from fusion_bench.stats.intervals import POWER, estimate_mean
from fusion_bench.stats.power import (
    NORMAL_FREEDOM,
    SampleSize,
    Spread,
    critical_value,
    estimate_spread,
)
from fusion_bench.stats.values import Pair

TITLE = "Numbers of queries"
DESCRIPTION = """
Differences have a standard deviation of .2. Normal: normal. Sparse: 60 % are 0, the others Laplace.
Rare losses: 5 % uniform in [−1, 0], the others small. Groups: 1 to 9 queries, half of the variance
between groups. Families: 30 systems, correlation .5, one of them truly better. Promised: the number
of queries printed for the true spread shows the difference with power .8. The 95 % interval of a
number from a sample includes that number, or "at least N" is no more than it, in at least 90 %.
"""
DRAWS = 4_000
COVERED = 0.9
SD, PILOT_DIFFERENCE, SYSTEMS, CORRELATION = 0.2, 0.02, 30, 0.5
#: Draws of a family cost more: one in so many.
FAMILY_COST = 4
Sampler = Callable[[np.random.Generator, tuple[int, ...]], FloatArray]


def draw_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Normal differences."""
    return SD * rng.standard_normal(shape)


def draw_sparse(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Laplace differences, 60 % of them 0: variance .4 · 2 · scale²."""
    return rng.laplace(scale=SD / np.sqrt(0.8), size=shape) * (rng.random(shape) < 0.4)


def draw_rare_losses(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """5 % lose up to 1, the others change little; mean 0 and standard deviation ``SD``."""
    losses = -rng.random(shape)
    values = np.where(rng.random(shape) < 0.05, losses, 0.02 * rng.standard_normal(shape))
    variance = 0.05 / 3 + 0.95 * 0.02**2 - 0.025**2
    return np.asarray((values + 0.025) * SD / np.sqrt(variance))


SAMPLERS: dict[str, Sampler] = {
    "normal": draw_normal,
    "sparse": draw_sparse,
    "rare losses": draw_rare_losses,
}


def draw_groups(rng: np.random.Generator, queries: int) -> tuple[FloatArray, IntArray]:
    """Differences and group codes, each (Q,); the last group may be cut."""
    sizes = rng.integers(1, 10, size=queries)
    codes = np.repeat(np.arange(queries), sizes)[:queries]
    between = rng.standard_normal(queries)[codes]
    return SD * (between + rng.standard_normal(queries)) / np.sqrt(2), codes


def run(*, draws: int) -> list[Promise | Estimate]:
    """Power at the printed number, then the coverage of intervals and bounds."""
    rng = np.random.default_rng(20)
    return [
        *_check_power(rng, draws),
        _check_grouped_power(rng, draws),
        _check_family_power(rng, max(1, draws // FAMILY_COST)),
        *_check_intervals(rng, draws),
        *_check_grouped_intervals(rng, draws),
    ]


def _needed(difference: float, tail: float = 0.025, design_effect: float = 1.0) -> int:
    """The printed number for the true spread."""
    spread = Spread(SD, design_effect=design_effect)
    size = spread.needed_queries(difference, critical_value(tail, NORMAL_FREEDOM))
    if size is None:
        raise ValueError(f"no number of queries for {difference}")
    return size.queries


def _check_power(rng: np.random.Generator, draws: int) -> Iterator[Promise]:
    for name, sampler in SAMPLERS.items():
        for difference, tail in ((0.1, 0.025), (0.03, 0.025), (0.03, 0.02)):
            queries = _needed(difference, tail)
            values = sampler(rng, (draws, queries)) + difference
            errors = values.std(axis=1, ddof=1) / np.sqrt(queries)
            count = int((values.mean(axis=1) / errors > critical_value(tail, queries - 1)).sum())
            design = f"{name}, difference {difference:g}, one-sided {tail:g}, N = {queries:,}"
            yield Promise(design, "difference shown", count, draws, POWER, "at least")


def _check_grouped_power(rng: np.random.Generator, draws: int) -> Promise:
    mean_size, mean_square = 5.0, 95 / 3  # of sizes 1 … 9
    queries = _needed(0.06, design_effect=1 + 0.5 * (mean_square / mean_size - 1))
    count = 0
    for _ in range(draws):
        values, codes = draw_groups(rng, queries)
        count += estimate_mean(values + 0.06, codes).low > 0
    design = f"groups, difference 0.06, N = {queries:,}"
    return Promise(design, "difference shown", count, draws, POWER, "at least")


def _check_family_power(rng: np.random.Generator, draws: int) -> Promise:
    """N is planned from the c of a pilot of 200 queries."""

    def draw_family(queries: int, seed: int, difference: float) -> tuple[float, float]:
        shared = rng.standard_normal(queries)
        own = rng.standard_normal((SYSTEMS, queries))
        values = SD * (np.sqrt(CORRELATION) * shared + np.sqrt(1 - CORRELATION) * own)
        values[0] += difference
        keys = tuple(str(i) for i in range(queries))
        [row, *_] = infer_family([Pair.from_arrays(row, keys=keys) for row in values], seed=seed)
        return row.low, row.critical[0]

    _, critical = draw_family(200, 0, 0.0)
    spread = Spread(SD, 200, freedom=199, changed=200, kurtosis=3)
    size = spread.needed_queries(0.08, critical)
    queries = 0 if size is None else size.queries
    count = sum(draw_family(queries, seed, 0.08)[0] > 0 for seed in range(draws))
    design = f"{SYSTEMS} systems, difference 0.08, N = {queries:,}"
    return Promise(design, "difference shown", count, draws, POWER, "at least")


def _check_intervals(rng: np.random.Generator, draws: int) -> Iterator[Promise]:
    for name, sampler in SAMPLERS.items():
        for queries in (50, 200, 1000):
            spreads = (estimate_spread(row) for row in sampler(rng, (draws, queries)))
            yield _count_covered(f"{name}, {queries:,} queries", spreads, 1.0)


def _check_grouped_intervals(rng: np.random.Generator, draws: int) -> Iterator[Promise]:
    effect = 1 + 0.5 * (95 / 3 / 5 - 1)
    for queries in (100, 300):
        spreads = (estimate_spread(*draw_groups(rng, queries)) for _ in range(draws))
        yield _count_covered(f"groups, {queries:,} queries", spreads, effect)


def _count_covered(design: str, spreads: Iterator[Spread], effect: float) -> Promise:
    """How often the printed number is right about the number of the truth."""
    truth = _needed(PILOT_DIFFERENCE, design_effect=effect)
    sizes = [spread.needed_queries(PILOT_DIFFERENCE, None) for spread in spreads]
    printed = [size for size in sizes if size is not None]
    right = sum(is_right(size, truth) for size in printed)
    return Promise(design, "N is right", right, len(printed), COVERED, "at least")


def is_right(size: SampleSize, truth: int) -> bool:
    """Whether the interval of N includes the true number, or "at least N" is no more than it."""
    if size.low is None or size.high is None:
        return size.queries <= truth
    return size.low <= truth <= size.high
