"""The live order of a query is the order that ``eval`` measures, on every collection there is.

``python -m benchmarks.live_replay`` compares every query; here each system answers a few.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from benchmarks.live_replay import Replay, list_replays
from fusion_bench import read_experiment
from fusion_bench.ranking.plain_systems import needs_fitting

ROOT = Path(__file__).parents[2]
SYSTEMS = dict(list_replays(ROOT))
#: The systems of a collection are dealt into so many tests.
PARTS = 5


@cache
def replay_of(path: Path) -> Replay:
    return Replay.load(path)


def test_every_collection_with_an_experiment_is_replayed() -> None:
    named = {
        name
        for path in (ROOT / "experiments").glob("*.yaml")
        for name in read_experiment(path)[0].dataset_names
    }
    shipped = {path.parent.name for path in (ROOT / "datasets").glob("*/dataset.yaml")}
    assert {path.parent.name for path in SYSTEMS} == named & shipped >= {"attack"}


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("path", SYSTEMS, ids=lambda path: path.parent.name)
def test_the_live_order_is_that_of_eval(path: Path, part: int) -> None:
    replay = replay_of(path)
    systems = [system for system in SYSTEMS[path] if not needs_fitting(system)]
    every = len(replay.runs.queries) // 3
    different = {}
    for number, system in enumerate(systems[part::PARTS], start=part):
        compared, names = replay.find_differences(system, every=every, first=7 * number % every)
        assert compared >= 3
        if names:
            different[system.name] = names
    assert different == {}


@pytest.mark.parametrize("name", ["map_fuse", "regression"])
def test_trained_parts_are_out_of_fold_in_both(name: str) -> None:
    path = ROOT / "datasets/attack/dataset.yaml"
    replay = replay_of(path)
    [system] = [system for system in SYSTEMS[path] if system.name == name]
    assert needs_fitting(system)
    few = replay.runs.subset(np.arange(len(replay.runs.queries)) < 120)
    assert replay.find_differences(system, every=40, fit_to=few) == (80, [])
