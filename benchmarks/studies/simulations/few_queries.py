"""Verdicts from few queries: half of them held out, against cross-fitting over all."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache

import numpy as np

from benchmarks.collections import build_objective, load_attack, load_collection
from benchmarks.studies.simulations.promise import Promise, Side
from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.values import Pair
from fusion_bench.tune.held_out import estimate_family
from fusion_bench.tune.sensitivity import sample_uniformly
from fusion_bench.tune.trial_selection import PRIOR_WEIGHT, decide_verdict, evaluate_in_batches

TITLE = "Few queries"
DESCRIPTION = """
Differences of 100 trials to the default on n queries. Made ones mix four latent factors with noise
and unequal query scales (deep), or keep only the largest 15 % (sparse). Skewed ones win .05 on 90 %
of the queries and lose .45 on 10 %. Real ones come from 100 random settings of RRF's k and weights
on queries drawn from jqara and attack (nDCG@10). A random sign for each query, equal for all
trials, makes an exact null of the real ones. The half split chooses by shrinkage on one half and
takes the verdict from the other. Cross-fitting chooses on four fifths, evaluates on the fifth left
out, and takes the verdict from all. Promised of a verdict: on a symmetric null it ships in at most
2.5 %. On a skewed null with 50 held-out queries, it ships in at most 5 %.
"""
SEED, FOLDS, TRIALS, DRAWS = 7, 5, 100, 400
SIZES = (40, 60, 100)
LEVEL, SKEWED_LEVEL = 0.025, 0.05
#: Correlation of skewed trials, and the normal quantile above which they lose.
CORRELATION, LOSS_QUANTILE = 0.5, 1.2815515655446004

#: Generator and n → differences (trials, n).
Draw = Callable[[np.random.Generator, int], FloatArray]


def run(*, draws: int = DRAWS) -> list[Promise]:
    """Shares of runs that ship."""
    promises = []
    for kind in ("sparse", "deep", "skewed", *_real_kinds()):
        limit = SKEWED_LEVEL if kind == "skewed" else LEVEL
        for n in SIZES:
            promises += _compare(f"{kind}, n = {n}, null", _null(kind), n, draws, limit=limit)
    for kind in _real_kinds():
        for n in SIZES:
            promises += _compare(f"{kind}, n = {n}, true gain", _true(kind), n, draws)
    return promises


def _real_kinds() -> tuple[str, ...]:
    """Collections at hand; jqara is outside the repository."""
    return ("jqara", "attack") if "FUSION_BENCH_PARITY_DATA" in os.environ else ("attack",)


def _compare(
    design: str, draw: Draw, n: int, draws: int, *, limit: float | None = None
) -> list[Promise]:
    rng = np.random.default_rng(SEED)
    ships = np.zeros((draws, 2), dtype=bool)
    for i in range(draws):
        data = draw(rng, n)
        tune, held_out = np.array_split(rng.permutation(n), 2)
        half = choose(data[:, tune])
        ships[i, 0] = half >= 0 and is_shipped(data[half, held_out], seed=i)
        ships[i, 1] = is_shipped(cross_fit(data, rng.permutation(n) % FOLDS), seed=i)
    half, crossed = ships.sum(axis=0).tolist()
    side: Side = "none" if limit is None else "at most"
    return [
        Promise(design, "ships: half split", half, draws, limit, side),
        Promise(design, "ships: cross-fitting", crossed, draws, limit, side),
    ]


def choose(data: FloatArray) -> int:
    """The trial of the greatest gain after shrinkage; −1 = the default."""
    gains = data.shape[1] * data.mean(axis=1) - PRIOR_WEIGHT * data.std(axis=1, ddof=1)
    best = int(gains.argmax())
    return best if gains[best] > 0 else -1


def cross_fit(data: FloatArray, folds: np.ndarray) -> FloatArray:
    """(Q,): the differences of what the other folds choose."""
    values: FloatArray = np.zeros(len(folds))
    for fold in range(FOLDS):
        chosen = choose(data[:, folds != fold])
        if chosen >= 0:
            values[folds == fold] = data[chosen, folds == fold]
    return values


def is_shipped(values: FloatArray, *, seed: int) -> bool:
    """Whether the verdict on these differences is ``ship``."""
    names = [str(q) for q in range(len(values))]
    row = Pair.from_arrays(values, keys=names)
    [gain] = estimate_family([row], alpha=2 * LEVEL, seed=seed)
    return decide_verdict(gain, min_gain=0.0, level=LEVEL) == "ship"


def _null(kind: str) -> Draw:
    def draw(rng: np.random.Generator, n: int) -> FloatArray:
        if kind == "skewed":
            return _make_skewed(rng, n)
        if kind in {"sparse", "deep"}:
            return _make(rng, n, kind)
        return np.asarray(_true(kind)(rng, n) * rng.choice([-1.0, 1.0], n))

    return draw


def _true(kind: str) -> Draw:
    def draw(rng: np.random.Generator, n: int) -> FloatArray:
        data = _real_differences(kind)
        return data[:, rng.choice(data.shape[1], n, replace=False)]

    return draw


def _make_skewed(rng: np.random.Generator, n: int) -> FloatArray:
    """Small wins and rare losses of correlated trials, with the mean 0, (TRIALS, n)."""
    shared, alone = rng.standard_normal(n), rng.standard_normal((TRIALS, n))
    z = np.sqrt(CORRELATION) * shared + np.sqrt(1 - CORRELATION) * alone
    return np.asarray(np.where(z > LOSS_QUANTILE, -0.45, 0.05))


def _make(rng: np.random.Generator, n: int, kind: str) -> FloatArray:
    """Symmetric differences of correlated trials, (TRIALS, n)."""
    loadings = rng.normal(size=(TRIALS, 4))
    loadings /= np.linalg.norm(loadings, axis=1, keepdims=True)
    factors = rng.normal(size=(4, n)) * np.exp(0.7 * rng.normal(size=n))
    data = loadings @ factors + 0.5 * rng.normal(size=(TRIALS, n))
    data *= rng.uniform(0.3, 1.0, size=(TRIALS, 1))
    if kind == "sparse":
        data[np.abs(data) < np.quantile(np.abs(data), 0.85)] = 0.0
    return data


@cache
def _real_differences(kind: str) -> FloatArray:
    """Differences to the default, (trials, queries)."""
    collection = load_attack(reranked=False) if kind == "attack" else load_collection(kind)
    objective = build_objective(collection)
    sample = sample_uniformly(objective.parameters, TRIALS, seed=SEED)
    values = evaluate_in_batches(objective, [objective.default_params, *sample])
    differences: FloatArray = values[1:] - values[0]
    differences[np.abs(differences) < 1e-9] = 0.0
    return differences
