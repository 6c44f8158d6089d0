"""Who asks: random search, hill climbing on the answers, TPE on the tuning mean, an adversary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from benchmarks.studies.campaigns.replay import Proposer, World
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray

#: Neighbors that a climber asks about before it starts from another setting.
NEIGHBORS: Final = 50
#: Of the TPE: random settings at the start, settings a round, share that counts as good, width.
START, ROUND, GOOD, WIDTH = 40, 20, 0.15, 0.15


def search_randomly(
    _world: World, asked: BoolArray, _shipped: int | None, rng: np.random.Generator
) -> IntArray:
    """Any order."""
    return rng.permutation(np.flatnonzero(~asked))


def climb(
    world: World, asked: BoolArray, shipped: int | None, rng: np.random.Generator
) -> IntArray:
    """The neighbors of what was shipped last; where all are kept, those of another setting."""
    points, left = world.points, ~asked
    center = int(rng.choice(np.flatnonzero(left))) if shipped is None else shipped
    order: list[int] = []
    while left.any():
        open_rows = np.flatnonzero(left)
        distance = ((points[open_rows] - points[center]) ** 2).sum(axis=1)
        near = open_rows[distance.argsort(kind="stable")[:NEIGHBORS]]
        order += near.tolist()
        left[near] = False
        center = int(rng.choice(near))
    return np.array(order, dtype=np.int64)


def search_with_tpe(
    world: World, asked: BoolArray, _shipped: int | None, rng: np.random.Generator
) -> IntArray:
    """Bergstra et al. 2011 over the settings of the pool, by their means on the tuning queries."""
    means = world.tuning.values.mean(axis=1)
    kernel = _kernel(world.points)
    tried = asked.copy()
    chosen = rng.permutation(np.flatnonzero(~tried))[:START]
    order: list[int] = []
    density = kernel[np.flatnonzero(tried)].sum(axis=0)
    while len(chosen):
        order += chosen.tolist()
        tried[chosen] = True
        density = density + kernel[chosen].sum(axis=0)
        rows = np.flatnonzero(tried)
        good = rows[means[rows].argsort()[::-1][: max(int(GOOD * len(rows)), 1)]]
        odds = kernel[good].sum(axis=0) / (density + 1e-9)
        odds[tried] = -np.inf
        left = len(tried) - len(rows)
        chosen = odds.argsort()[::-1][: min(ROUND, left)]
    return np.array(order, dtype=np.int64)


_KERNELS: dict[tuple[int, float], FloatArray] = {}


def _kernel(points: FloatArray) -> FloatArray:
    key = (len(points), float(points.sum()))
    if key not in _KERNELS:
        squares = (points**2).sum(axis=1)
        distance = squares[:, None] + squares - 2 * points @ points.T
        _KERNELS[key] = np.exp(-distance / (2 * WIDTH**2)).astype(np.float32)
    return _KERNELS[key]


def guess_on(
    _world: World, asked: BoolArray, _shipped: int | None, _rng: np.random.Generator
) -> IntArray:
    """The adversary's next guesses, one after the other."""
    return np.flatnonzero(~asked)


ADVERSARY: Final = "adversary"
#: Key → proposer. The last one needs a world of guesses.
PROPOSERS: Final[Mapping[str, Proposer]] = {
    "random": search_randomly,
    "climber": climb,
    "TPE": search_with_tpe,
    ADVERSARY: guess_on,
}
#: Ships declared: those who learn from answers get some.
SHIPS: Final[Mapping[str, int]] = {"random": 1, "climber": 3, "TPE": 1, ADVERSARY: 3}
