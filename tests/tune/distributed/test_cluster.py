from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from distributed import Client, LocalCluster

from fusion_bench.errors import ConfigError
from fusion_bench.experiment.tune_settings import SearchSettings
from fusion_bench.tune.distributed import cluster
from fusion_bench.tune.distributed.cluster import DatasetShard, Shards, sharded_search
from fusion_bench.tune.search.search import run_search
from fusion_bench.tune.space.objective import TuningObjective
from tests import tiny
from tests.tune.cases import aligned
from tests.tune.problems import BLEND, problem, system

DEFAULT = system({"method": "rrf_v2"}, BLEND)
QUERIES, SHARDS = 30, 3
SETTINGS = SearchSettings(trials=12, batch=4)


def whole() -> TuningObjective:
    return problem(DEFAULT, runs=aligned(QUERIES))


@dataclass(frozen=True)
class Part:
    """Every third query."""

    number: int

    def __call__(self) -> TuningObjective:
        return whole().subset_queries(np.arange(QUERIES) % SHARDS == self.number)


LOADERS = [Part(i) for i in range(SHARDS)]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Two worker processes of our own."""
    local = LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    )
    with local, Client(local) as client:  # type: ignore[no-untyped-call]
        yield client


def test_spread_queries_give_the_same_means(client: Client) -> None:
    one = whole()
    trials = [one.default_params, *one.preset_params]
    found = Shards(client, LOADERS).values(trials)
    assert found.shape == (len(trials), 1)
    assert found[:, 0] == pytest.approx(one.evaluate_params(trials).mean(axis=1), abs=1e-12)


def test_a_search_goes_the_same_way_and_survives_a_worker_that_is_killed(
    client: Client, tmp_path: Path
) -> None:
    victims = iter([next(iter(client.run(os.getpid).values()))])

    def kill(*_: object) -> None:
        for pid in victims:
            os.kill(pid, signal.SIGKILL)

    study = sharded_search(client, LOADERS, SETTINGS, log=tmp_path / "log", on_trial=kill)
    plain = run_search(whole(), np.ones(QUERIES, dtype=bool), SETTINGS)
    assert [t.params for t in study.trials] == [t.params for t in plain.trials]
    values = [t.value for t in plain.trials]
    assert [t.value for t in study.trials] == pytest.approx(values, abs=1e-12)
    again = sharded_search(client, LOADERS, SETTINGS, log=tmp_path / "log")
    assert again.trials == study.trials
    with pytest.raises(ConfigError, match="belongs to another search"):
        sharded_search(client, LOADERS[:2], SETTINGS, log=tmp_path / "log")


def test_a_folder_of_queries_is_a_shard(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    tiny.edit(root, tiny.EXPERIMENT, "systems:", "tune: {system: two}\nsystems:")
    shard = DatasetShard(root / tiny.EXPERIMENT, root / tiny.DATASET)()
    assert shard.runs.queries == ("q3",)  # the dev split is tuned on
    tiny.edit(root, tiny.EXPERIMENT, "tune: {system: two}\n", "")
    with pytest.raises(ConfigError, match="has no 'tune'"):
        DatasetShard(root / tiny.EXPERIMENT, root / tiny.DATASET)()


def test_no_shard_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no shard to load"):
        Shards(None, [])  # type: ignore[arg-type]


def test_what_runs_on_a_worker() -> None:
    part = cluster._loaded(Part(1))
    sums = cluster._summed(part, [part.default_params])
    assert sums.queries == QUERIES // SHARDS
    assert sums.totals == pytest.approx(part.evaluate_params([part.default_params]).sum(axis=1))
    head = cluster._head(part)
    assert head.runs.queries == part.runs.queries[:1]
    assert head.default_params == part.default_params
