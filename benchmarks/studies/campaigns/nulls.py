"""Worlds in which no candidate is better than another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import numpy as np

from benchmarks.studies.campaigns.pool import DEPTH, Measure, Pool, baseline_of
from benchmarks.studies.campaigns.replay import Side, World
from fusion_bench.data.ordering import FloatArray, IntArray

#: Candidates of the made worlds, and guesses of the adversary.
CANDIDATES: Final = 1_000
#: Made skew → gain and share of the wins, loss and share of the losses: the mean is 0.
SKEWS: Final[Mapping[str, tuple[float, float, float, float]]] = {
    "wins .05 on 30 %, losses .75 on 2 %": (0.05, 0.3, 0.75, 0.02),
    "wins .01 on 30 %, losses 1 on .3 %": (0.01, 0.3, 1.0, 0.003),
}


@dataclass(frozen=True, eq=False)
class Scene:
    """A collection's settings with their real differences to the baseline.

    Attributes:
        pool: The settings.
        measure: What is compared.
        baseline: The setting at the tenth percentile.
        differences: Shape (T, Q).
    """

    pool: Pool
    measure: Measure
    baseline: int
    differences: FloatArray

    @classmethod
    def prepare(cls, pool: Pool, measure: Measure) -> Scene:
        """Evaluate a pool."""
        values = pool.evaluate(measure)
        baseline = baseline_of(values)
        return cls(pool, measure, baseline, values - values[baseline])

    def split(self, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Tuning and held-out queries: half of the groups each."""
        groups = self.pool.groups
        order = rng.permutation(int(groups.max()) + 1)
        is_held_out = np.isin(groups, order[: len(order) // 2])
        return np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)


#: A scene, whether guesses are asked about, and dice → a world.
Null: TypeAlias = Callable[[Scene, bool, np.random.Generator], World]


def permute_grades(scene: Scene, guesses: bool, rng: np.random.Generator) -> World:
    """Grades dealt anew to the documents of each query.

    All settings fill the same ranks of a query, so the true difference of any two is 0.
    """
    pool, grades = scene.pool, scene.pool.deal_grades(rng)
    tuning, held_out = scene.split(rng)
    if guesses:
        swaps: FloatArray = np.zeros((CANDIDATES, len(grades)), dtype=np.float32)
        swaps[:, held_out] = guess_swaps(scene, grades, held_out, rng)
        return _world_of_guesses(Side.select(swaps, pool.groups, held_out))
    values = pool.evaluate(scene.measure, grades)
    values -= values[scene.baseline].copy()
    known = Side.select(values, pool.groups, tuning)
    return World(known, Side.select(values, pool.groups, held_out), pool.points)


def guess_swaps(
    scene: Scene, grades: FloatArray, queries: IntArray, rng: np.random.Generator
) -> FloatArray:
    """(1000, q): on half of the queries another of the first ten changes place with the first."""
    top = scene.pool.top[scene.baseline][queries]
    first, rows = grades[queries[:, None], top], np.arange(len(queries))
    measure = partial(scene.pool.measure_lists, scene.measure, queries=queries)
    before = measure(first)
    values: FloatArray = np.empty((CANDIDATES, len(queries)), dtype=np.float32)
    for value in values:
        lists = first.copy()
        place = rng.integers(DEPTH, size=len(rows)) * (rng.random(len(rows)) < 0.5)
        lists[rows, place], lists[:, 0] = first[:, 0], first[rows, place]
        value[:] = measure(lists) - before
    return values


def flip_signs(scene: Scene, guesses: bool, rng: np.random.Generator) -> World:
    """Real differences on both sides, a random sign for each held-out group."""
    pool, differences = scene.pool, scene.differences
    tuning, held_out = scene.split(rng)
    if guesses:
        sizes = np.abs(differences[rng.integers(len(differences), size=CANDIDATES)])
        values = sizes * rng.choice(np.array([-1, 1], dtype=np.float32), size=sizes.shape)
        return _world_of_guesses(Side.select(values, pool.groups, held_out))
    signs = rng.choice(np.array([-1, 1], dtype=np.float32), size=int(pool.groups.max()) + 1)
    flipped = Side.select(differences * signs[pool.groups], pool.groups, held_out)
    return World(Side.select(differences, pool.groups, tuning), flipped, pool.points)


def _world_of_guesses(held_out: Side) -> World:
    """The adversary knows the tuning queries: each guess is right on them."""
    count = len(held_out.values)
    return World(_rising(count), held_out, np.zeros((count, 1)), guesses=True)


def _rising(count: int) -> Side:
    """Tuning queries on which every candidate is better than those before it."""
    tuning = 0.01 * (1 + np.arange(count))[:, None] * np.linspace(0.9, 1.1, 40)
    return Side(tuning, np.arange(40))


def draw_skewed(skew: str, queries: int, guesses: bool, rng: np.random.Generator) -> World:
    """Independent candidates with rare losses, none of which the tuning queries show."""
    win, wins, loss, losses = SKEWS[skew]
    draws = rng.random((CANDIDATES, queries), dtype=np.float32)
    values = np.where(draws < losses, -loss, np.where(draws < losses + wins, win, 0.0))
    held_out = Side(values.astype(np.float32), np.arange(queries))
    points = np.random.default_rng(queries).random((CANDIDATES, 3))
    tuning = win * (rng.random((CANDIDATES, queries), dtype=np.float32) < wins)
    if guesses:
        return _world_of_guesses(held_out)
    return World(Side(tuning.astype(np.float32), np.arange(queries)), held_out, points)
