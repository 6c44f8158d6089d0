"""A whole tuning run with its trials evaluated on a cluster: split, folds and types included.

The machine that asks reads the dataset, splits, follows exact lines and judges; every trial of
every search is evaluated where the queries are. Each worker reads the same files and keeps its
share of the queries; parameters and a mask go out, one sum a trial comes back.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from fusion_bench.config.parameters import Parameter, Params
from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.experiment.system import System
from fusion_bench.experiment.tune_settings import SearchSettings, TuneSettings
from fusion_bench.tune.distributed.cluster import Shards, Sums, mean_of
from fusion_bench.tune.search.processes import Evaluate, dealt
from fusion_bench.tune.search.search import search_fingerprint
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.space.open_problem import create_objective, load_tuning_dataset
from fusion_bench.tune.validation.splits import BoolArray
from fusion_bench.util.optional_imports import import_optional

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Part", "Spread", "connected"]

#: Starts workers on this machine: ``local:4``.
LOCAL: Final = "local:"
#: Seconds to wait for a scheduler, and for its first worker.
PATIENCE: Final = 10
#: Selections of queries that a worker remembers: the folds of one search, and some types.
KEPT: Final = 8


@dataclass(frozen=True)
class Part:
    """Some neighbouring queries of a dataset, as every worker reads them.

    Attributes:
        experiment: The experiment's file.
        dataset: The ``dataset.yaml``.
        tuning: As the experiment and the command line say.
        v2_enabled: As ``RAG_FUSION_V2_ENABLED`` says.
        number: Which part, from 0.
        parts: How many there are at most.
    """

    experiment: Path
    dataset: Path
    tuning: TuneSettings
    v2_enabled: bool
    number: int
    parts: int

    def __call__(self) -> TuningObjective:
        """The problem on these queries."""
        experiment, source = read_experiment(self.experiment, v2_enabled=self.v2_enabled)
        dataset = load_tuning_dataset(experiment, source, self.tuning, self.dataset)
        whole = create_objective(experiment, source, self.tuning, dataset)
        keep = np.zeros(len(whole.runs.queries), dtype=bool)
        keep[dealt(whole, self.parts)[self.number]] = True
        part = whole.subset_queries(keep)
        # What was derived from all queries must not keep them in memory.
        return replace(part, runs=replace(part.runs, _memo={}))


class _Asked(NamedTuple):
    """What is evaluated on one part: a system with its space, which queries, and trials."""

    system: System
    parameters: tuple[Parameter, ...]
    keep: BoolArray
    trials: list[Params]


class Spread:
    """A problem's queries on the workers of a cluster.

    Args:
        client: Of the cluster.
        problem: On all queries, as it is here.
        part: Any part of it; the others follow from it.

    Raises:
        ConfigError: The workers do not read what is read here.
    """

    def __init__(self, client: Client, problem: TuningObjective, part: Part) -> None:
        workers = len(client.scheduler_info(n_workers=-1)["workers"])
        self._parts = dealt(problem, workers)
        loaders = [replace(part, number=i, parts=workers) for i in range(len(self._parts))]
        self._shards = Shards(client, loaders)
        settings = SearchSettings()
        theirs = self._shards.each(search_fingerprint, [settings] * len(loaders))
        for mine, other in zip(self._parts, theirs, strict=True):
            keep = np.zeros(len(problem.runs.queries), dtype=bool)
            keep[mine] = True
            if search_fingerprint(problem.subset_queries(keep), settings) != other:
                raise ConfigError(
                    f"cluster: a worker reads other data in {part.dataset} than this machine: give "
                    "all of them the same files under the same path"
                )

    def __call__(self, problem: TuningObjective, keep: BoolArray) -> Evaluate:
        """Evaluate the trials of a problem that differs in its system and space alone.

        Args:
            problem: What is searched.
            keep: Shape (Q,): on these queries.

        Returns:
            Trials → (T, 1): means, NaN for one that some query cannot be computed for.
        """
        masks = [keep[part] for part in self._parts]

        def values(trials: Sequence[Params]) -> FloatArray:
            asked = [_Asked(problem.system, problem.parameters, m, list(trials)) for m in masks]
            return mean_of(self._shards.each(_sums, asked))

        return values


def _sums(whole: TuningObjective, asked: _Asked) -> Sums:
    """On a worker: the sums over what is kept of its queries."""
    queries = int(asked.keep.sum())
    if not queries:
        return Sums(np.zeros(len(asked.trials)), 0)
    runs = whole.runs
    if queries < len(asked.keep):
        key = ("spread", asked.keep.tobytes())
        runs = runs.memo(key, lambda: whole.runs.subset(asked.keep), keep=KEPT)
    part = replace(whole, system=asked.system, parameters=asked.parameters, runs=runs)
    return Sums(part.evaluate_params(asked.trials).sum(axis=1), queries)


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of the cluster at an address; ``local:N`` = N processes of our own.

    Raises:
        ConfigError: No cluster answers there, it has no worker, or N is no number of processes.
        MissingExtraError: Dask's scheduler is not installed.
    """
    distributed = import_optional("distributed", extra="cluster", purpose="--cluster")
    with _cluster(distributed, address) as cluster:
        try:
            client = distributed.Client(cluster, timeout=PATIENCE)
        except (OSError, ValueError, TypeError, KeyError, ImportError) as error:
            raise _unreachable(address, str(error) or type(error).__name__) from None
        with client:
            try:
                client.wait_for_workers(1, timeout=PATIENCE)
            except TimeoutError:
                raise _unreachable(address, "it has no worker") from None
            yield client


@contextmanager
def _cluster(distributed: Any, address: str) -> Iterator[Any]:  # noqa: ANN401 - it has no types
    """What a client connects to."""
    if not address.startswith(LOCAL):
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        yield address
        return
    count = address.removeprefix(LOCAL)
    if not count.isdecimal() or not int(count):
        raise ConfigError(f"cluster {address}: say how many processes, such as {LOCAL}4")
    with distributed.LocalCluster(
        n_workers=int(count),
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    ) as cluster:
        yield cluster


def _unreachable(address: str, reason: str) -> ConfigError:
    first = reason.strip().splitlines()[0].rstrip(".")
    return ConfigError(
        f"cluster {address}: {first} (an address reads tcp://host:8786, as 'dask scheduler' prints "
        f"it; {LOCAL}4 starts four processes here)"
    )
