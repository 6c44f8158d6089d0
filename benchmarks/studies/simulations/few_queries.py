"""Verdicts from few queries: half of them held out, against cross-fitting over all."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache

import numpy as np

from benchmarks.collections import build_objective, load_attack, load_collection
from benchmarks.studies.simulations.promise import Promise, Side
from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.power import upper_tail
from fusion_bench.tune.cross_fitting import CrossFit, cross_fit
from fusion_bench.tune.sensitivity import sample_uniformly
from fusion_bench.tune.trial_selection import PRIOR_WEIGHT, evaluate_in_batches

TITLE = "Few queries"
DESCRIPTION = """
Differences of 100 trials to the default on n queries. Made ones mix four latent factors with noise
and unequal query scales (deep), or keep only the largest 15 % (sparse). Real ones are those of 100
random settings of RRF's k and weights on queries drawn from jqara and attack (nDCG@10). A random
sign for each query, the same for all trials, makes an exact null of them. The half split chooses by
shrinkage on one half and tests on the other by Student's t. Cross-fitting chooses on four fifths
and evaluates on the fifth left out. Its p is Student's, or that of 199 flips of the whole procedure
with a new choice in each. "Search": the trials follow the values, by 60 steps of hill climbing from
20 random trials in each fold. Promised: on an exact null the flips ship in at most 2.5 %.
"""
SEED, FOLDS, FLIPS, TRIALS = 7, 5, 199, 100
SIZES = (40, 60, 100)
LEVEL = 0.025
#: Trials of a search that follows the values: at the start, and one a step.
START, STEPS = 20, 60

#: Generator and n → differences (trials, n), and the trials' true gains.
Draw = Callable[[np.random.Generator, int], tuple[FloatArray, FloatArray]]


def run(*, draws: int) -> list[Promise]:
    """Shares of runs that ship, and that an interval covers."""
    promises = []
    for kind in ("sparse", "deep", *_real_kinds()):
        for n in SIZES:
            promises += _compare(f"{kind}, n = {n}, null", _null(kind), n, draws, limit=LEVEL)
    for kind in _real_kinds():
        for n in SIZES:
            promises += _compare(f"{kind}, n = {n}, true gain", _true(kind), n, draws // 4)
    return promises + [_search(kind, 60, draws // 4) for kind in _real_kinds()]


def _real_kinds() -> tuple[str, ...]:
    """Collections at hand; jqara is outside the repository."""
    return ("jqara", "attack") if "FUSION_BENCH_PARITY_DATA" in os.environ else ("attack",)


def _compare(
    design: str, draw: Draw, n: int, draws: int, *, limit: float | None = None
) -> list[Promise]:
    rng = np.random.default_rng(SEED)
    ships = np.zeros((draws, 3), dtype=bool)
    covered = []
    for i in range(draws):
        data, gains = draw(rng, n)
        folds = rng.permutation(n) % FOLDS
        fitted = _fit(data, folds, seed=i)
        ships[i] = (
            _half_split_p(data, rng) <= LEVEL,
            _student_p(fitted.values) <= LEVEL,
            fitted.mean > 0 and fitted.p <= 2 * LEVEL,
        )
        if fitted.values.any():
            low, high = fitted.interval
            covered.append(low <= _true_gain(fitted, folds, gains) <= high)
    half, student, flips = ships.sum(axis=0).tolist()
    side: Side = "none" if limit is None else "at most"
    return [
        Promise(design, "ships: half split", half, draws, limit, side),
        Promise(design, "ships: cross-fitting, Student's t", student, draws),
        Promise(design, "ships: cross-fitting, flips", flips, draws, limit, side),
        Promise(design, "interval by flips covers", sum(covered), max(len(covered), 1)),
    ]


def _fit(data: FloatArray, folds: np.ndarray, *, seed: int) -> CrossFit:
    names = [str(q) for q in range(data.shape[1])]
    return cross_fit(data, folds, names, level=LEVEL, flips=FLIPS, seed=seed)


def _true_gain(fitted: CrossFit, folds: np.ndarray, gains: FloatArray) -> float:
    """The mean true gain of what each fold was evaluated with."""
    by_fold = np.append(gains, 0.0)[fitted.chosen]  # −1 = the default
    return float(by_fold[folds].mean())


def _half_split_p(data: FloatArray, rng: np.random.Generator) -> float:
    order = rng.permutation(data.shape[1])
    tune, held_out = np.array_split(order, 2)
    means, spreads = data[:, tune].mean(axis=1), data[:, tune].std(axis=1, ddof=1)
    gains = len(tune) * means - PRIOR_WEIGHT * spreads  # shrunken_gains, in another unit
    best = int(gains.argmax())
    return _student_p(data[best, held_out]) if gains[best] > 0 else 1.0


def _student_p(values: FloatArray) -> float:
    """One-sided."""
    spread = values.std(ddof=1)
    n = len(values)
    return upper_tail(values.mean() / spread * np.sqrt(n), n - 1) if spread > 0 else 1.0


def _null(kind: str) -> Draw:
    def draw(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
        if kind in {"sparse", "deep"}:
            return _make(rng, n, kind), np.zeros(TRIALS)
        data, _ = _true(kind)(rng, n)
        return data * rng.choice([-1.0, 1.0], n), np.zeros(TRIALS)

    return draw


def _true(kind: str) -> Draw:
    def draw(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
        data = _real_differences(kind)
        return data[:, rng.choice(data.shape[1], n, replace=False)], data.mean(axis=1)

    return draw


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
def _real_differences(kind: str, trials: int = TRIALS) -> FloatArray:
    return _evaluate(kind, trials)[0]


@cache
def _evaluate(kind: str, trials: int) -> tuple[FloatArray, FloatArray]:
    """Differences to the default (trials, queries), and points of the search space (trials, D)."""
    collection = load_attack(reranked=False) if kind == "attack" else load_collection(kind)
    objective = build_objective(collection)
    sample = sample_uniformly(objective.parameters, trials, seed=SEED)
    values = evaluate_in_batches(objective, [objective.default_params, *sample])
    differences = values[1:] - values[0]
    differences[np.abs(differences) < 1e-9] = 0.0
    points = objective.unit_points([objective.normalize_weights(each) for each in sample])
    return differences, points


def _search(kind: str, n: int, draws: int) -> Promise:
    """Nulls where each fold's trials follow its values, and the flips choose among those."""
    data, points = _evaluate(kind, 500)
    near = ((points[:, None] - points) ** 2).sum(axis=-1).argsort(axis=1)
    rng, ships = np.random.default_rng(SEED), 0
    for i in range(draws):
        picked = rng.choice(data.shape[1], n, replace=False)
        null = data[:, picked] * rng.choice([-1.0, 1.0], n)
        folds = rng.permutation(n) % FOLDS
        tried: set[int] = set()
        for fold in range(FOLDS):
            tried |= _climb(null[:, folds != fold].mean(axis=1), near, rng)
        fitted = _fit(null[sorted(tried)], folds, seed=i)
        ships += fitted.mean > 0 and fitted.p <= 2 * LEVEL
    return Promise(f"{kind}, n = {n}, null, search", "ships: cross-fitting, flips", ships, draws)


def _climb(means: FloatArray, near: np.ndarray, rng: np.random.Generator) -> set[int]:
    """The trials of a search that goes to the nearest untried neighbor of its best."""
    tried = set(rng.choice(len(means), START, replace=False).tolist())
    for _ in range(STEPS):
        best = max(tried, key=lambda trial: means[trial])
        tried.add(next(int(trial) for trial in near[best] if int(trial) not in tried))
    return tried
