"""The cells of the study: a null under a proposer, a number of campaigns each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Final
from zlib import crc32

import numpy as np

from benchmarks.studies.campaigns.nulls import SKEWS, Scene, draw_skewed, flip_signs, permute_grades
from benchmarks.studies.campaigns.proposers import ADVERSARY, PROPOSERS, SHIPS
from benchmarks.studies.campaigns.replay import UNPROTECTED, World, all_rules, replay
from benchmarks.studies.campaigns.results import CellResult

ASKS: Final = 1_000
CAMPAIGNS: Final = 200
NULLS: Final = {"grades permuted": permute_grades, "signs flipped": flip_signs}
MADE: Final = "made"
#: Held-out queries of made worlds.
MADE_QUERIES: Final = (400, 833)
#: The rule that may ship without end, for the picture.
ENDLESS: Final = replace(UNPROTECTED, name="unprotected, on and on", ships=ASKS)

#: Whether guesses are asked about, and dice → a world.
MakeWorld = Callable[[bool, np.random.Generator], World]


def list_nulls(scenes: Sequence[Scene]) -> Iterator[tuple[str, str, MakeWorld]]:
    """Data, kind of null, and what makes a world of it."""
    for scene, (null, make) in product(scenes, NULLS.items()):
        yield f"{scene.pool.name}, {scene.measure}", null, partial(make, scene)
    for queries, skew in product(MADE_QUERIES, SKEWS):
        yield f"{MADE}, {queries} queries", skew, partial(draw_skewed, skew, queries)


def run_cell(
    data: str, null: str, proposer: str, make: MakeWorld, campaigns: int, asks: int
) -> CellResult:
    """Replay the campaigns of a cell; the same whenever it is run."""
    started = time.process_time()
    rules = [*all_rules(asks, SHIPS[proposer]), ENDLESS]
    first: dict[str, list[int]] = {rule.name: [] for rule in rules}
    counts = dict.fromkeys(first, 0)
    claims = []
    for number in range(campaigns):
        seed = [crc32(f"{data} {null} {proposer}".encode()), number]
        world = make(proposer == ADVERSARY, np.random.default_rng(seed))
        shipped = replay(world, PROPOSERS[proposer], rules, asks, seed)
        for rule, ships in zip(rules, shipped, strict=True):
            first[rule.name] += [ask for ask, _ in ships[:1]]
            counts[rule.name] += len(ships)
        last = shipped[-1][-1:]
        claims += [float(world.held_out.values[row].mean()) for _, row in last] or [0.0]
    return CellResult(
        data=data,
        null=null,
        proposer=proposer,
        ships=SHIPS[proposer],
        campaigns=campaigns,
        asks=asks,
        first={rule: tuple(numbers) for rule, numbers in first.items()},
        counts=counts,
        claimed=float(np.mean(claims)),
        seconds=time.process_time() - started,
    )
