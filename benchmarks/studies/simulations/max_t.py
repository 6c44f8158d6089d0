"""Max-T: errors over a family, power beside Holm's, and the printed detectable difference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.studies.simulations.promise import Estimate, Promise
from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.corrections import adjust_holm
from fusion_bench.stats.power import detectable_difference
from fusion_bench.stats.sign_flips import draw_flips, hash_group_ids

TITLE = "One inference: max-T"
DESCRIPTION = """
30 systems against a baseline. Differences have standard deviation .2 and correlation .5, as systems
that share a baseline have. Normal: normal. Sparse: 60 % of the queries are 0 for each system, the
others Laplace. Promised: with no true difference, any system is called better or worse in at most
5 % of the runs; one system that is truly better by the printed minimum detectable difference is
found in at least 80 %. Holm's correction of sign-flip tests of the same data stands beside it. Both
use 2,000 flips instead of 10,000 or more, so that a run is cheap.
"""
DRAWS = 2_000
SYSTEMS, CORRELATION, SD, ALPHA, FLIPS = 30, 0.5, 0.2, 0.05, 2_000
SIZES = (25, 50, 200)
#: Draws whose mean critical value gives the difference that is planted.
PILOTS = 40
Sampler = Callable[[np.random.Generator, int], FloatArray]


def draw_normal(rng: np.random.Generator, queries: int) -> FloatArray:
    """(systems, queries): correlated normal differences."""
    shared = rng.standard_normal(queries)
    alone = rng.standard_normal((SYSTEMS, queries))
    return np.asarray(SD * (np.sqrt(CORRELATION) * shared + np.sqrt(1 - CORRELATION) * alone))


def draw_sparse(rng: np.random.Generator, queries: int) -> FloatArray:
    """(systems, queries): the signs and sizes are half shared; 60 % of the values are 0."""
    sign = rng.choice([-1.0, 1.0], queries)
    shared = sign * rng.exponential(size=queries)
    alone = rng.laplace(size=(SYSTEMS, queries))
    is_shared = rng.random((SYSTEMS, queries)) < CORRELATION
    values = np.where(is_shared, shared, alone) * (rng.random((SYSTEMS, queries)) < 0.4)
    return np.asarray(SD * values / np.sqrt(0.8))  # E[x²] = 2 for both, 40 % of the values


SAMPLERS: dict[str, Sampler] = {"normal": draw_normal, "sparse": draw_sparse}


def run(*, draws: int) -> list[Promise | Estimate]:
    """Every kind of differences at every number of queries."""
    results: list[Promise | Estimate] = []
    for kind, sampler in SAMPLERS.items():
        for queries in SIZES:
            design = f"{kind}, {SYSTEMS} systems, {queries} queries"
            results += _run_design(design, sampler, queries, draws)
    return results


def _run_design(
    design: str, sampler: Sampler, queries: int, draws: int
) -> list[Promise | Estimate]:
    rng = np.random.default_rng([queries, SYSTEMS])
    keys = tuple(f"q{i}" for i in range(queries))
    planted = _printed_difference(sampler, queries, keys)
    false = np.zeros((draws, 2), dtype=bool)
    found = np.zeros((draws, 2), dtype=bool)
    for draw in range(draws):
        values = sampler(rng, queries)
        false[draw] = decide(values, keys, seed=draw)[0].any(axis=1)
        values[0] += planted
        found[draw] = decide(values, keys, seed=draw)[0][:, 0]
    power = f"difference {planted:.3f} shown"
    lift = found[:, 0].astype(float) - found[:, 1]
    return [
        Promise(design, "any false answer, max-T", int(false[:, 0].sum()), draws, 0.05, "at most"),
        Promise(design, "any false answer, Holm", int(false[:, 1].sum()), draws),
        Promise(design, f"{power}, max-T", int(found[:, 0].sum()), len(found), 0.8, "at least"),
        Promise(design, f"{power}, Holm", int(found[:, 1].sum()), len(found)),
        Estimate(
            design,
            "power of max-T - power of Holm",
            float(lift.mean()),
            float(lift.std() / np.sqrt(len(lift))),
        ),
    ]


def decide(values: FloatArray, keys: tuple[str, ...], *, seed: int) -> tuple[FloatArray, float]:
    """Which systems max-T (row 0) and Holm (row 1) call different, and max-T's critical value."""
    flips = 2 * draw_flips(hash_group_ids(seed, keys), 0, FLIPS) - 1
    observed = np.abs(values.sum(axis=1)) / np.sqrt((values**2).sum(axis=1))
    flipped, residuals = flip_rows(values, flips)
    reached = (1 + (flipped >= observed[:, None] * (1 - 1e-12)).sum(axis=1)) / (FLIPS + 1)
    kinds = [np.append(each.max(axis=0), observed.max()) for each in (flipped, residuals)]
    p = np.max([(each >= observed[:, None] * (1 - 1e-12)).mean(axis=1) for each in kinds], axis=0)
    t = critical_t(max(find_critical(each) for each in kinds), len(keys))
    return np.stack([p <= ALPHA, adjust_holm(reached) <= ALPHA]), t


def flip_rows(values: FloatArray, flips: FloatArray) -> list[FloatArray]:
    """|Σ d| / √Σ d² of the values and of the residuals after each flip, (systems, flips) each.

    The same statistics and flips as ``stats.max_t``: every query alone, Σ d² is the same after each
    flip, so that t grows with |Σ d| / √Σ d².
    """
    residuals = values - values.mean(axis=1, keepdims=True)
    return [
        np.abs(each @ flips) / np.sqrt((each**2).sum(axis=1, keepdims=True))
        for each in (values, residuals)
    ]


def find_critical(largest: FloatArray) -> float:
    """The ⌊α·N⌋-th largest of N values."""
    return float(np.sort(largest)[-int(ALPHA * len(largest))])


def critical_t(value: float, queries: int) -> float:
    """t² = x² (N − 1) / (N − x²) for x = |Σ d| / √Σ d²."""
    return float(value * np.sqrt((queries - 1) / (queries - value**2)))


def _printed_difference(sampler: Sampler, queries: int, keys: tuple[str, ...]) -> float:
    """The minimum detectable difference at the true standard error and the usual c."""
    rng = np.random.default_rng([queries, PILOTS])
    critical = [decide(sampler(rng, queries), keys, seed=i)[1] for i in range(PILOTS)]
    error = SD / np.sqrt(queries)
    difference = detectable_difference(error, float(np.mean(critical)), freedom=queries - 1)
    return difference or 0.0
