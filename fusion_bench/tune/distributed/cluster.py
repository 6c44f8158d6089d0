"""Data that outgrows one machine's memory: each worker of a Dask cluster keeps some queries.

A measure's mean is a sum over queries, so queries can be spread: every shard is loaded once, where
it stays; parameters go out, one sum a trial comes back. A worker that dies takes its shards with
it, and the scheduler has them loaded again elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fusion_bench.config.parameters import Params
from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.experiment.tune_settings import SearchSettings
from fusion_bench.tune.search.search import (
    SearchResult,
    TrialCallback,
    run_trials,
    search_fingerprint,
)
from fusion_bench.tune.search.trial_log import TrialLog
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.space.open_problem import create_objective, load_tuning_dataset
from fusion_bench.tune.validation.splits import split_queries

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["DatasetShard", "Loader", "Shards", "Sums", "mean_of", "sharded_search"]

#: Makes one shard's problem, on the worker that will keep it.
Loader = Callable[[], TuningObjective]


@dataclass(frozen=True)
class DatasetShard:
    """A dataset folder that holds some of the queries, as every worker sees it.

    Attributes:
        experiment: The experiment's file, with a ``tune:``.
        dataset: The shard's ``dataset.yaml``; its name counts for nothing.
    """

    experiment: Path
    dataset: Path

    def __call__(self) -> TuningObjective:
        """The problem on the shard's tuning queries.

        Raises:
            ConfigError: The experiment has no ``tune:``.
        """
        experiment, source = read_experiment(self.experiment)
        tuning = experiment.tune
        if tuning is None:
            raise ConfigError(f"{self.experiment}: has no 'tune': say what to tune")
        dataset = load_tuning_dataset(experiment, source, tuning, self.dataset)
        problem = create_objective(experiment, source, tuning, dataset)
        split = split_queries(
            problem.runs, dataset.queries, split_seed=tuning.split_seed, held_out=tuning.held_out
        )
        return problem.subset_queries(split.tune)


class Sums(NamedTuple):
    """(T,) sums over a shard's queries, and how many they are."""

    totals: FloatArray
    queries: int


class Shards:
    """Problems on a cluster, evaluated together.

    Args:
        client: Of the cluster.
        loaders: One a shard; they run on the workers and must give the same problem each time.

    Raises:
        ConfigError: No shard.
    """

    def __init__(self, client: Client, loaders: Sequence[Loader]) -> None:
        if not loaders:
            raise ConfigError("cluster: no shard to load: give at least one")
        self._client = client
        workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
        self._shards: list[Future[TuningObjective]] = [
            client.submit(
                _loaded,
                loader,
                pure=False,
                # Spread evenly, but not lost with their worker.
                workers=[workers[i % len(workers)]] if workers else None,
                allow_other_workers=True,
            )
            for i, loader in enumerate(loaders)
        ]

    def values(self, trials: Sequence[Params]) -> FloatArray:
        """(T, 1): the mean of each trial over the queries of all shards."""
        return mean_of(self.each(_summed, [list(trials)] * len(self._shards)))

    def head(self) -> TuningObjective:
        """The problem on one query: its space, default and suggestions, without the data."""
        problem: TuningObjective = self._client.submit(_head, self._shards[0], pure=False).result()
        return problem

    def identity(self, settings: SearchSettings) -> str:
        """As :func:`fusion_bench.tune.search.search.identity`, of all shards in their order."""
        parts = self.each(search_fingerprint, [settings] * len(self._shards))
        return hashlib.sha256("".join(parts).encode()).hexdigest()

    def each(self, function: Callable[..., Any], arguments: Sequence[object]) -> list[Any]:
        """What a function makes of each shard's problem and the shard's own argument.

        Raises:
            FusionBenchError: A shard ends its worker again and again, or the cluster is gone.
        """
        from distributed import KilledWorker

        try:
            futures = [
                self._client.submit(function, shard, argument, pure=False)
                for shard, argument in zip(self._shards, arguments, strict=True)
            ]
            found: list[Any] = self._client.gather(futures)  # type: ignore[no-untyped-call]
        except KilledWorker:
            raise FusionBenchError(
                "cluster: a part of the queries ended several workers, often for want of memory: "
                "use more workers, or larger ones"
            ) from None
        except (OSError, CancelledError) as error:
            raise FusionBenchError(f"cluster: the connection is lost: {error}") from None
        return found


def mean_of(parts: Sequence[Sums]) -> FloatArray:
    """(T, 1): the mean over the queries of all parts."""
    totals = np.add.reduce([sums.totals for sums in parts])
    return np.asarray(totals / sum(sums.queries for sums in parts))[:, None]


def sharded_search(
    client: Client,
    loaders: Sequence[Loader],
    settings: SearchSettings,
    *,
    log: Path | None = None,
    on_trial: TrialCallback | None = None,
) -> SearchResult:
    """Search where the queries are spread over a cluster; exact lines need them in one place.

    Args:
        client: Of the cluster.
        loaders: One a shard.
        settings: How.
        log: As for :func:`fusion_bench.tune.search.search.search`.
        on_trial: As there.

    Raises:
        ConfigError: As there; and where no shard is given.
    """
    shards = Shards(client, loaders)
    record = TrialLog(log, shards.identity(settings)) if log is not None else None
    return run_trials(shards.head(), settings, shards.values, log=record, on_trial=on_trial)


def _loaded(loader: Loader) -> TuningObjective:
    return loader()


def _summed(problem: TuningObjective, trials: Sequence[Params]) -> Sums:
    return Sums(problem.evaluate_params(trials).sum(axis=1), len(problem.runs.queries))


def _head(problem: TuningObjective) -> TuningObjective:
    first = np.zeros(len(problem.runs.queries), dtype=bool)
    first[0] = True
    head = problem.subset_queries(first)
    return replace(head, qrels=None, runs=replace(head.runs, vocabulary=(), _memo={}))
