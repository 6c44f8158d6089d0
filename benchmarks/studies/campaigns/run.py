"""The cells of the study: a null under a proposer, a number of campaigns each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Final
from zlib import crc32

import numpy as np

from benchmarks.studies.campaigns.nulls import SKEWS, Scene, draw_skewed, flip_signs, permute_grades
from benchmarks.studies.campaigns.proposers import ADVERSARY, PROPOSERS, SHIPS
from benchmarks.studies.campaigns.replay import World, all_rules, replay
from benchmarks.studies.campaigns.results import CellResult

ASKS: Final = 1_000
CAMPAIGNS: Final = 200
NULLS: Final = {"grades permuted": permute_grades, "signs flipped": flip_signs}
MADE: Final = "made"
#: Held-out queries of made worlds.
MADE_QUERIES: Final = (400, 833)
#: Whether guesses are asked about, and dice → a world.
MakeWorld = Callable[[bool, np.random.Generator], World]


def list_nulls(scenes: Sequence[Scene]) -> Iterator[tuple[str, str, MakeWorld]]:
    """Data, kind of null, and what makes a world of it."""
    for queries, skew in product(MADE_QUERIES, SKEWS):
        yield f"{MADE}, {queries} queries", skew, partial(draw_skewed, skew, queries)
    for scene, (null, make) in product(scenes, NULLS.items()):
        yield f"{scene.pool.name}, {scene.measure}", null, partial(make, scene)


def run_cells(data: str, null: str, make: MakeWorld, campaigns: int, asks: int) -> list[CellResult]:
    """Replay the campaigns of a null under every proposer; the same whenever it is run.

    The searchers of a number share a world, in which the adversary has one of its own.
    """
    first: dict[str, dict[str, list[int]]] = {
        name: {rule.name: [] for rule in all_rules(asks, SHIPS[name])} for name in PROPOSERS
    }
    for number in range(campaigns):
        seed = [crc32(f"{data} {null}".encode()), number]
        dice = (np.random.default_rng([*seed, part]) for part in range(2))
        worlds = [make(guesses, rng) for guesses, rng in zip((False, True), dice, strict=True)]
        for name, proposer in PROPOSERS.items():
            rules, world = all_rules(asks, SHIPS[name]), worlds[name == ADVERSARY]
            shipped = replay(world, proposer, rules, asks, [*seed, crc32(name.encode())])
            for rule, ships in zip(rules, shipped, strict=True):
                first[name][rule.name] += [ask for ask, _ in ships[:1]]
    return [
        CellResult(data, null, name, SHIPS[name], campaigns, asks, first[name])
        for name in PROPOSERS
    ]
