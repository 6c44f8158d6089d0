"""The trial itself: worlds of every kind on every collection, round by round."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from zlib import crc32

import numpy as np

from benchmarks.studies.choice_rules.grid import Grid, build_grid
from benchmarks.studies.choice_rules.pairs import ListPair, drop_candidates, load_pair
from benchmarks.studies.choice_rules.results import (
    Outcome,
    PairResult,
    WorldResult,
    read_result,
    write_result,
)
from benchmarks.studies.choice_rules.rules import RULES
from benchmarks.studies.choice_rules.tuned import tune_looked_up
from benchmarks.studies.choice_rules.worlds import World, draw_null, hide_half, plant_gain

OURS: Final = "ours"
NULL, POOL, UNSEEN = "null", "null over the pool", "unseen half"
#: Planted worlds → the true gain of the planted setting.
PLANTED: Final[Mapping[str, float]] = {"planted .02": 0.02, "planted .05": 0.05}
#: Kind of a world → how many a collection gets; the second table comes after the first.
WORLDS: Final[Sequence[Mapping[str, int]]] = (
    {NULL: 200, **dict.fromkeys(PLANTED, 40), UNSEEN: 40},
    {POOL: 50},
)
TOY_WORLDS: Final[Mapping[str, int]] = dict.fromkeys((NULL, POOL, *PLANTED, UNSEEN), 1)
#: After each of so many rounds every collection has the same share of its worlds.
ROUNDS: Final = 20


@dataclass(frozen=True, eq=False)
class Stage:
    """A collection that is ready: its grid stored, its queries without candidates."""

    pair: ListPair
    grid: Grid

    @classmethod
    def prepare(cls, name: str) -> Stage:
        """Load a collection and rank it by every setting."""
        pair = load_pair(name)
        grid = build_grid(pair.runs)
        return cls(replace(pair, runs=drop_candidates(pair.runs)), grid)

    @property
    def empty_result(self) -> PairResult:
        """What is known before the first world."""
        runs, contenders = self.pair.runs, self.grid.contenders.sum(axis=1).mean()
        sizes = len(runs.queries), len(set(runs.groups))
        return PairResult(self.pair.name, runs.sources, *sizes, float(contenders), ())


def make_world(stage: Stage, kind: str, number: int) -> World:
    """The world of that kind and number; the same again whenever it is made."""
    rng = np.random.default_rng([crc32(f"{stage.pair.name} {kind}".encode()), number])
    grid, runs = stage.grid, stage.pair.runs
    if kind == UNSEEN:
        return hide_half(grid, runs, rng)
    if kind in PLANTED:
        return plant_gain(grid, runs, PLANTED[kind], rng)
    return draw_null(grid, runs, "pool" if kind == POOL else "contenders", rng)


def try_rules(stage: Stage, kind: str, number: int) -> WorldResult:
    """Let every rule choose on a world."""
    started = time.process_time()
    world, default = make_world(stage, kind, number), stage.grid.default
    outcomes = []
    for key, rule in RULES.items():
        choice = rule(world.values, default, number)
        truth = float(world.truth[choice.setting])
        outcomes.append(Outcome(key, choice.ships, choice.setting, choice.claimed, truth))
    ours = tune_looked_up(stage.pair.dataset, world.runs, world.values, default, number)
    choice, truth = ours.choice, float(world.truth[ours.choice.setting])
    facts = OURS, choice.ships, choice.setting, choice.claimed, truth
    outcomes.append(Outcome(*facts, ours.verdict))
    level, best = float(world.values[default].mean()), float(world.truth.max())
    seconds = time.process_time() - started
    return WorldResult(kind, number, best, level, seconds, tuple(outcomes))


def run_rounds(
    names: Sequence[str], worlds: Mapping[str, int], folder: Path, rounds: int = ROUNDS
) -> Iterator[str]:
    """Make the worlds that are missing; a line after each round of a collection.

    Args:
        names: Of the collections.
        worlds: Kind → how many.
        folder: Of the results, which are read first.
        rounds: Over how many rounds they are spread.
    """
    stages: dict[str, Stage] = {}
    for turn in range(1, rounds + 1):
        for name in names:
            path = folder / f"{name}.json"
            if path.exists() and not _list_missing(read_result(path), worlds, turn / rounds):
                continue
            if name not in stages:
                stages[name] = Stage.prepare(name)
            result = read_result(path) if path.exists() else stages[name].empty_result
            made = 0
            for kind, number in _list_missing(result, worlds, turn / rounds):
                world = try_rules(stages[name], kind, number)
                result = replace(result, worlds=(*result.worlds, world))
                made += 1
                write_result(result, folder)
            yield f"round {turn} of {rounds}, {name}: {made} worlds"


def _list_missing(
    result: PairResult, worlds: Mapping[str, int], share: float
) -> list[tuple[str, int]]:
    """Kind and number of the worlds of a share of all that are not made yet."""
    return [
        (kind, number)
        for kind, count in worlds.items()
        for number in range(int(share * count + 1e-9))
        if number not in result.numbers(kind)
    ]
