"""Repeated looks at held-out queries: with and without counting them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from benchmarks.studies.simulations.promise import Promise, Side
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.stats.intervals import t_quantile
from fusion_bench.tune.looks import look_level

TITLE = "Looks at held-out queries"
DESCRIPTION = """
Differences of 20 candidates to the default correlate at .5. They are normal (deep), or also 0 on 80
% of the queries (sparse). The exact null has mean 0. The true gain is one that a look at all 400
held-out queries finds at .025 with power .8. Added queries: 50, 100, … 400 held-out queries. The
parameters are frozen, or chosen anew by the best mean over as many tuning queries. Ten salts: 400
queries are halved ten times, and one half chooses the parameters that the other half tests. The
test is one-sided Student's t, which ships at least as often as the verdict. Promised: on an exact
null, any look of a series ships in at most 2.5 %.
"""
DRAWS = 4_000
SEED = 20_260
#: Draws computed together, candidates, queries, looks at added queries, and salts.
BLOCK, CANDIDATES, QUERIES, STEPS, SALTS = 250, 20, 400, 8, 10
#: Mean ÷ sd that one look at all queries finds one-sided at .025 with power .8.
EFFECT = 2.81 / np.sqrt(QUERIES)

#: Statistics and degrees of freedom of each look, (draws, looks) and (looks,).
Looks = tuple[FloatArray, list[int]]


def run(*, draws: int = DRAWS) -> list[Promise]:
    """Shares of series of looks in which any look ships."""
    designs: dict[str, Callable[[np.random.Generator, int, bool], Looks]] = {
        "queries added 8 times, frozen numbers": _added_frozen,
        "queries added 8 times, numbers chosen anew": _added_chosen,
        "10 salts": _salts,
    }
    promises = []
    for is_sparse in (False, True):
        kind = "sparse" if is_sparse else "deep"
        for name, design in designs.items():
            rng = np.random.default_rng(SEED)
            t, freedom = _collect(design, rng, draws, is_sparse)
            title = f"{name}, {kind}, null"
            promises += _compare(title, t, freedom, limit=0.025)
    rng = np.random.default_rng(SEED)
    t, freedom = _collect(partial(_added_frozen, effect=EFFECT), rng, draws, False)
    promises += _compare("queries added 8 times, frozen numbers, deep, true gain", t, freedom)
    single = t[:, -1:] > _critical([0.025], freedom[-1:])
    first = t[:, -1:] > _critical([look_level(1)], freedom[-1:])
    title = "one look at all 400 queries, true gain"
    promises.append(_count(title, "ships at .025 (looks not counted)", single))
    promises.append(_count(title, "ships at .02 (look 1)", first))
    second = t[:, -1:] > _critical([look_level(2)], freedom[-1:])
    promises.append(_count(title, "ships at .0025 (look 2)", second))
    return promises


def _compare(
    design: str,
    t: FloatArray,
    freedom: Sequence[int],
    *,
    limit: float | None = None,
) -> list[Promise]:
    """Any look of a series ships: not counted, and counted."""
    count = t.shape[1]
    plain = t > _critical([0.025] * count, freedom)
    counted = t > _critical([look_level(j) for j in range(1, count + 1)], freedom)
    return [
        _count(design, "any look ships, each at .025", plain),
        _count(design, "any look ships, counted", counted, limit),
    ]


def _count(design: str, event: str, ships: BoolArray, limit: float | None = None) -> Promise:
    count = int(ships.any(axis=1).sum())
    side: Side = "none" if limit is None else "at most"
    return Promise(design, event, count, len(ships), limit, side)


def _critical(levels: Sequence[float], freedom: Sequence[int]) -> FloatArray:
    return np.array([t_quantile(f, 1 - level) for f, level in zip(freedom, levels, strict=True)])


def _collect(
    design: Callable[[np.random.Generator, int, bool], Looks],
    rng: np.random.Generator,
    draws: int,
    is_sparse: bool,
) -> Looks:
    sizes = [min(BLOCK, draws - start) for start in range(0, draws, BLOCK)]
    blocks = [design(rng, size, is_sparse) for size in sizes]
    return np.concatenate([t for t, _ in blocks]), blocks[0][1]


def _differences(
    rng: np.random.Generator, draws: int, candidates: int, queries: int, is_sparse: bool
) -> FloatArray:
    """(draws, candidates, queries): correlated at .5; sparse ones change on the same fifth."""
    shared = rng.standard_normal((draws, 1, queries))
    data: FloatArray = np.sqrt(0.5) * (shared + rng.standard_normal((draws, candidates, queries)))
    if is_sparse:
        data *= rng.random((draws, 1, queries)) < 0.2
    return data


def _t(values: FloatArray) -> FloatArray:
    """Student's t over the last axis."""
    errors = values.std(axis=-1, ddof=1) / np.sqrt(values.shape[-1])
    return np.asarray(values.mean(axis=-1) / errors)


def _added_frozen(
    rng: np.random.Generator, draws: int, is_sparse: bool, effect: float = 0.0
) -> Looks:
    data = _differences(rng, draws, 1, QUERIES, is_sparse)[:, 0] + effect
    sizes = [QUERIES * k // STEPS for k in range(1, STEPS + 1)]
    return np.stack([_t(data[:, :n]) for n in sizes], axis=1), [n - 1 for n in sizes]


def _added_chosen(rng: np.random.Generator, draws: int, is_sparse: bool) -> Looks:
    tune, held_out = (_differences(rng, draws, CANDIDATES, QUERIES, is_sparse) for _ in range(2))
    sizes = [QUERIES * k // STEPS for k in range(1, STEPS + 1)]
    looks = [_t(_choose(tune[:, :, :n], held_out[:, :, :n])) for n in sizes]
    return np.stack(looks, axis=1), [n - 1 for n in sizes]


def _salts(rng: np.random.Generator, draws: int, is_sparse: bool) -> Looks:
    data = _differences(rng, draws, CANDIDATES, QUERIES, is_sparse)
    looks, half = [], QUERIES // 2
    for _ in range(SALTS):
        order = rng.permutation(QUERIES)
        looks.append(_t(_choose(data[:, :, order[:half]], data[:, :, order[half:]])))
    return np.stack(looks, axis=1), [half - 1] * SALTS


def _choose(tune: FloatArray, held_out: FloatArray) -> FloatArray:
    """(draws, held-out queries): of the candidate with the best mean over the tuning queries."""
    best = tune.mean(axis=2).argmax(axis=1)
    return np.asarray(held_out[np.arange(len(best)), best])
