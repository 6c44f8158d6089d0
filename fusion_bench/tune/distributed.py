"""Evaluation by worker processes, on this machine or on a Dask cluster.

A call names a dataset by its path, some of its queries and a system. The worker opens the dataset,
keeps it, and returns values per query, equal to those of one process to the last bit.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from fusion_bench.config.limits import MOST_WORKERS
from fusion_bench.config.parameters import Params
from fusion_bench.data.fingerprint import Fingerprint
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray, make_readonly
from fusion_bench.data.records import Query
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.evaluation.ranking.fitting import needs_fitting
from fusion_bench.experiment.system import System
from fusion_bench.tune.dask_executor import DaskExecutor, running_workers
from fusion_bench.tune.local_cluster import START_SECONDS, start_cluster
from fusion_bench.tune.search.database_address import show_address, show_reason
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.space.open_objective import ObjectivePaths
from fusion_bench.tune.worker_calls import (
    call_on_part,
    clear_caches,
    outline_objective,
    run_call,
)
from fusion_bench.util.optional_imports import import_optional
from fusion_bench.util.processes.worker_process import WorkerProcess

#: How often a call is sent before its broken process counts as an error.
ATTEMPTS: Final = 3
#: Prefix of an address that starts processes on this machine.
LOCAL: Final = "local:"
#: Each worker has some queries, and would learn from these alone.
TRAINED: Final = "what is trained learns from all queries: tune it in one process (--workers 1)"


class WorkerPool:
    """Executors of one worker each, so that a worker gets the same queries in every batch.

    Args:
        starters: Start one executor each; called again where one breaks.
    """

    def __init__(self, starters: Sequence[Callable[[], Executor]]) -> None:
        self._starters = starters
        self._executors: list[Executor] = []
        try:
            self._executors += (start() for start in starters)
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._executors)

    def run(self, function: Callable[..., Any], calls: Sequence[tuple[int, Any]]) -> list[Any]:
        """The results of calls, each a worker's number and an argument, in their order.

        Raises:
            FusionBenchError: A call refused its data, or its worker ended again and again.
        """
        results: dict[int, Any] = {}
        for _ in range(ATTEMPTS):
            pending = {i: call for i, call in enumerate(calls) if i not in results}
            results |= self._try_calls(function, pending)
            if len(results) == len(calls):
                return [results[i] for i in range(len(calls))]
            for worker in {calls[i][0] for i in pending if i not in results}:
                self._executors[worker].shutdown()
                self._executors[worker] = self._starters[worker]()
        raise FusionBenchError(
            f"workers: a process was killed {ATTEMPTS} times in a row (often for lack of memory: "
            "use fewer --workers, or a cluster with more memory)"
        )

    def close(self) -> None:
        """End the executors."""
        for executor in self._executors:
            executor.shutdown()

    def _try_calls(self, function: Callable[..., Any], calls: Mapping[int, Any]) -> dict[int, Any]:
        """The results of the calls whose executor did not break."""
        futures, results = {}, {}
        for i, (worker, argument) in calls.items():
            with contextlib.suppress(BrokenExecutor):  # broken since the last batch
                futures[i] = self._executors[worker].submit(run_call, function, argument)
        for i, future in futures.items():
            with contextlib.suppress(BrokenExecutor):
                results[i] = future.result()
        return results


@dataclass(frozen=True, eq=False)
class DistributedObjective(TuningObjective):
    """An objective whose trials are evaluated by workers.

    Attributes:
        pool: The W workers.
        parts: A dataset and rows of its queries, in query order; worker i gets i, i + W, ….
    """

    pool: WorkerPool = field(kw_only=True)
    parts: tuple[tuple[ObjectivePaths, IntArray], ...] = field(kw_only=True)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """Of the data; where ``runs`` has no candidates, of the folders' data."""
        whole = super().fingerprint
        if len(self.runs.documents):
            return whole
        for number, (paths, _) in enumerate(self.parts, 1):
            if paths.fingerprint is not None:
                whole |= paths.fingerprint.with_prefix(f"folder {number}")
        return whole

    def evaluate_params(self, trials: Sequence[Params]) -> FloatArray:
        """The measure of each trial on every query, shape (T, Q).

        Raises:
            ConfigError: A trial is trained, which needs all queries in one process.
        """
        if any(map(self._is_trained, trials)):
            raise ConfigError(TRAINED)
        values = np.hstack(self._call_workers(TuningObjective.evaluate_params, list(trials)))
        values[np.isnan(values).any(axis=1)] = np.nan  # a failure on some queries is one on all
        make_readonly(values)
        return values

    def evaluate_by_trial(self, system: System) -> FloatArray | None:
        """The measure of a system on each trial of its lists, (T, Q); None = there is one.

        Raises:
            ConfigError: The system is trained, or the folders have different numbers of trials.
        """
        if needs_fitting(system):
            raise ConfigError(TRAINED)
        parts = self._call_workers(TuningObjective.evaluate_by_trial, system)
        counts = sorted({1 if part is None else len(part) for part in parts})
        if len(counts) > 1:
            raise ConfigError(
                f"cluster: folders with {' and '.join(map(str, counts))} trials of a list: their "
                "values cannot be put together; give every folder the same number"
            )
        return None if counts == [1] else np.hstack(parts)

    def failure_reason(self, params: Params) -> str | None:
        """Why a trial cannot be computed; None = it can."""
        if self._is_trained(params):
            return TRAINED
        results = self._call_workers(TuningObjective.failure_reason, params)
        return next((reason for reason in results if reason is not None), None)

    def subset_queries(self, keep: BoolArray) -> TuningObjective:
        """The same on only the queries where ``keep``, shape (Q,), is true."""
        if keep.all():
            return self
        stops = np.cumsum([len(rows) for _, rows in self.parts])
        kept = zip(self.parts, np.split(keep, stops[:-1]), strict=True)
        parts = tuple((paths, rows[part]) for (paths, rows), part in kept)
        later = tuple(runs.subset(keep) for runs in self.later_trials)
        return replace(self, runs=self.runs.subset(keep), later_trials=later, parts=parts)

    def _is_trained(self, params: Params) -> bool:
        """Whether these values make a system that learns from all queries at once."""
        with contextlib.suppress(FusionBenchError):  # a value that is refused is none that learns
            return needs_fitting(self.build_system(params))
        return False

    def _call_workers(self, function: Callable[..., Any], argument: object) -> list[Any]:
        """What a method returns for each part that has queries."""
        calls = [
            (i % len(self.pool), (paths, rows, self.system, self.parameters, function, argument))
            for i, (paths, rows) in enumerate(self.parts)
            if len(rows)
        ]
        return self.pool.run(call_on_part, calls)


def distribute_objective(
    objective: TuningObjective, paths: ObjectivePaths, pool: WorkerPool
) -> DistributedObjective:
    """An objective whose trials are evaluated by workers, each on as many queries."""
    paths = replace(paths, fingerprint=objective.fingerprint)
    rows = np.array_split(np.arange(len(objective.runs.queries)), len(pool))
    values: Any = {item.name: getattr(objective, item.name) for item in fields(TuningObjective)}
    return DistributedObjective(**values, pool=pool, parts=tuple((paths, part) for part in rows))


def join_folders(
    folders: Sequence[ObjectivePaths], pool: WorkerPool
) -> tuple[DistributedObjective, dict[str, Query]]:
    """One objective on the queries of several datasets, whose candidates stay on the workers.

    Returns:
        The objective, with the queries of each folder in turn, and what is known of them.

    Raises:
        ConfigError: No folder, or two that share a query or differ in their runs.
        FusionBenchError: A worker cannot read a folder.
    """
    calls = [(i % len(pool), paths) for i, paths in enumerate(folders)]
    outlines = pool.run(outline_objective, calls)
    if len({repr((outline.system, outline.parameters)) for outline, _, _ in outlines}) != 1:
        raise ConfigError("cluster: give at least one folder of queries, and all the same runs")
    joined: Any = {
        name: sum((getattr(outline.runs, name) for outline, _, _ in outlines), ())
        for name in ("queries", "types", "confidences", "groups", "words", "records")
    }
    if len(set(joined["queries"])) < len(joined["queries"]):
        raise ConfigError("cluster: a query is in two folders: put each query into one")
    offsets = np.zeros(len(joined["queries"]) + 1, dtype=np.int64)
    first, paths, _ = outlines[0]
    empty = {"offsets": offsets, "ideal_offsets": offsets, "switches": ()}  # workers have them
    runs = replace(first.runs, **joined, **empty)
    parts = tuple((paths, np.arange(len(outline.runs.queries))) for outline, paths, _ in outlines)
    joint = replace(distribute_objective(first, paths, pool), runs=runs, parts=parts)
    return joint, {name: query for *_, known in outlines for name, query in known.items()}


@contextlib.contextmanager
def start_processes(count: int) -> Iterator[WorkerPool]:
    """Worker processes on this machine."""
    with contextlib.closing(WorkerPool([WorkerProcess] * count)) as pool:
        yield pool


@contextlib.contextmanager
def connect_cluster(address: str, *, timeout: float = 10.0) -> Iterator[WorkerPool]:
    """The workers of the Dask cluster at an address; ``local:N`` = N processes started here.

    Raises:
        ConfigError: No cluster answers there, or it has no worker.
        MissingExtraError: Dask's scheduler is not installed.
    """
    distributed = import_optional("distributed", extra="cluster", purpose="--cluster")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with contextlib.ExitStack() as stack:
        target: Any = address
        workers = 1
        if address.startswith(LOCAL):
            workers, timeout = _read_count(address), START_SECONDS
            target = stack.enter_context(start_cluster(workers))
        try:
            client = stack.enter_context(distributed.Client(target, timeout=timeout))
            client.wait_for_workers(workers, timeout=timeout)
        except (OSError, ValueError, TypeError, KeyError, ImportError) as error:
            reason = (str(error) or type(error).__name__).strip().splitlines()[0].rstrip(".")
            raise ConfigError(
                f"cluster {show_address(address)}: {show_reason(address, reason)} (an address "
                f"reads tcp://host:8786, as 'dask scheduler' prints it; {LOCAL}4 starts four "
                "processes here)"
            ) from None
        client.run(clear_caches)
        stack.callback(lambda: client.status == "running" and client.run(clear_caches))
        addresses: list[str | None] = [*running_workers(client)]
        start = partial(DaskExecutor, client, addresses)
        yield WorkerPool([partial(start, number) for number in range(len(addresses))])


def _read_count(address: str) -> int:
    """How many processes ``local:N`` asks for."""
    count = address.removeprefix(LOCAL)
    is_short = count.isdecimal() and len(count) <= len(str(MOST_WORKERS))
    if is_short and 0 < int(count) <= MOST_WORKERS:
        return int(count)
    raise ConfigError(
        f"cluster {address:.60}: say how many processes, at most {MOST_WORKERS:,}, such as {LOCAL}4"
    )
