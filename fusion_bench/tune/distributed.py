"""Evaluation by worker processes, on this machine or on a Dask cluster.

A call names a dataset by its path, some of its queries and a system. The worker opens the dataset,
keeps it, and returns values per query. They are joined in query order, equal to those of one
process to the last bit: a :class:`DistributedObjective` takes the place of any objective.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, ProcessPoolExecutor
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property, lru_cache, partial
from typing import Any, Final, NamedTuple

import numpy as np

from fusion_bench.config.parameters import Params
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ids import encode_ids
from fusion_bench.data.ordering import FloatArray, IntArray, make_readonly
from fusion_bench.data.records import Query
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.space.open_objective import ObjectivePaths
from fusion_bench.tune.validation.splits import BoolArray
from fusion_bench.util.optional_imports import import_optional

__all__ = [
    "DistributedObjective",
    "WorkerPool",
    "connect_cluster",
    "distribute_objective",
    "join_folders",
    "start_processes",
]

#: How often a call is sent before its broken process counts as an error.
ATTEMPTS: Final = 3
#: Prefix of an address that starts processes on this machine, such as ``local:4``.
LOCAL: Final = "local:"
#: What often ends a worker.
MEMORY: Final = "(often for lack of memory: use fewer --workers, or a cluster with more memory)"


class WorkerPool:
    """Executors of one worker each, so that a worker gets the same queries in every batch.

    Args:
        starters: Start one executor each; called again where one breaks.
        fatal: Other errors that mean lost workers.
    """

    def __init__(
        self, starters: Sequence[Callable[[], Executor]], fatal: tuple[type[Exception], ...] = ()
    ) -> None:
        self._starters, self._fatal = starters, fatal
        self._executors = [start() for start in starters]

    def __len__(self) -> int:
        return len(self._executors)

    def run(self, function: Callable[..., Any], calls: Sequence[tuple[int, Any]]) -> list[Any]:
        """The results of calls, each a worker's number and an argument, in their order.

        Raises:
            FusionBenchError: A call refused its data, or its worker ended again and again.
        """
        results: dict[int, Any] = {}
        for _ in range(ATTEMPTS):
            pending = [i for i in range(len(calls)) if i not in results]
            results |= self._attempt_calls(function, {i: calls[i] for i in pending})
            if len(results) == len(calls):
                return [results[i] for i in range(len(calls))]
            for worker in {calls[i][0] for i in pending if i not in results}:
                self._executors[worker].shutdown()
                self._executors[worker] = self._starters[worker]()
        raise FusionBenchError(f"workers: a process was killed {ATTEMPTS} times in a row {MEMORY}")

    def close(self) -> None:
        """End the executors."""
        for executor in self._executors:
            executor.shutdown()

    def _attempt_calls(
        self, function: Callable[..., Any], calls: Mapping[int, Any]
    ) -> dict[int, Any]:
        """The results of the calls whose executor did not break."""
        futures, results = {}, {}
        for i, (worker, argument) in calls.items():
            with contextlib.suppress(BrokenExecutor):  # broken since the last batch
                futures[i] = self._executors[worker].submit(_run_call, function, argument)
        for i, future in futures.items():
            with contextlib.suppress(BrokenExecutor):
                try:
                    results[i] = future.result()
                except self._fatal as error:
                    lost = f"cluster: workers are lost ({type(error).__name__}) {MEMORY}"
                    raise FusionBenchError(lost) from None
                if isinstance(results[i], FusionBenchError):
                    raise results[i]
        return results


class _Part(NamedTuple):
    """Queries of one dataset: their rows there, and their columns in the whole objective."""

    paths: ObjectivePaths
    rows: IntArray
    columns: IntArray


@dataclass(frozen=True, eq=False)
class DistributedObjective(TuningObjective):
    """An objective whose trials are evaluated by workers.

    Attributes:
        pool: The W workers.
        parts: The queries of each call; worker i evaluates the parts i, i + W, ….
    """

    pool: WorkerPool = field(kw_only=True)
    parts: tuple[_Part, ...] = field(kw_only=True)

    @cached_property
    def fingerprint(self) -> str:
        """Of the data; where ``runs`` has no candidates, of the folders' data."""
        folders = [part.paths.fingerprint for part in self.parts if not len(self.runs.documents)]
        whole = super().fingerprint
        return hashlib.sha256(repr((whole, folders)).encode()).hexdigest() if folders else whole

    def evaluate_params(self, trials: Sequence[Params]) -> FloatArray:
        """(T, Q), equal to the values of one process to the last bit."""
        values = np.empty((len(trials), len(self.runs.queries)))
        for part, result in self._call_workers(TuningObjective.evaluate_params, list(trials)):
            values[:, part.columns] = result
        values[np.isnan(values).any(axis=1)] = np.nan  # a failure on some queries is one on all
        make_readonly(values)
        return values

    def failure_reason(self, params: Params) -> str | None:
        """Why a trial cannot be computed; None = it can."""
        results = self._call_workers(TuningObjective.failure_reason, params)
        return next((reason for _, reason in results if reason is not None), None)

    def subset_queries(self, keep: BoolArray) -> TuningObjective:
        """The same on only the queries where ``keep``, shape (Q,), is true."""
        if keep.all():
            return self
        parts, column = [], np.cumsum(keep) - 1
        for part in self.parts:
            kept = keep[part.columns]
            parts.append(_Part(part.paths, part.rows[kept], column[part.columns[kept]]))
        return replace(self, runs=self.runs.subset(keep), parts=tuple(parts))

    def _call_workers(self, function: Callable[..., Any], argument: object) -> Iterator[Any]:
        """Each part that has queries, with what a method returns there."""
        parts = [(i % len(self.pool), part) for i, part in enumerate(self.parts) if len(part.rows)]
        details = (self.system, self.parameters, function, argument)
        calls = [(worker, (part.paths, part.rows, *details)) for worker, part in parts]
        return zip((part for _, part in parts), self.pool.run(_call_on_part, calls), strict=True)


def distribute_objective(
    objective: TuningObjective, paths: ObjectivePaths, pool: WorkerPool
) -> DistributedObjective:
    """An objective whose trials are evaluated by workers, each on as many queries."""
    paths = replace(paths, fingerprint=objective.fingerprint)
    rows = np.array_split(np.arange(len(objective.runs.queries)), len(pool))
    return _attach_workers(objective, pool, [_Part(paths, part, part) for part in rows])


def join_folders(
    folders: Sequence[ObjectivePaths], pool: WorkerPool
) -> tuple[DistributedObjective, dict[str, Query]]:
    """One objective on the queries of several datasets, whose candidates stay on the workers.

    Returns:
        The objective, whose ``runs`` have the queries of each folder in turn but no candidates, and
        what is known of the queries.

    Raises:
        ConfigError: No folder, or two that share a query or differ in their runs.
        FusionBenchError: A worker cannot read a folder.
    """
    outlines = pool.run(
        _outline_objective, [(i % len(pool), paths) for i, paths in enumerate(folders)]
    )
    if len({repr((objective.system, objective.parameters)) for objective, _, _ in outlines}) != 1:
        raise ConfigError("cluster: give at least one folder of queries, and all the same runs")
    names = ("queries", "types", "confidences", "groups")
    joined: Any = {
        n: sum((getattr(objective.runs, n) for objective, _, _ in outlines), ()) for n in names
    }
    if len(set(joined["queries"])) < len(joined["queries"]):
        raise ConfigError("cluster: a query is in two folders: put each query into one")
    offsets = np.zeros(len(joined["queries"]) + 1, dtype=np.int64)
    runs = replace(outlines[0][0].runs, **joined, offsets=offsets, ideal_offsets=offsets)
    parts: list[_Part] = []
    for objective, paths, _ in outlines:
        rows = np.arange(len(objective.runs.queries))
        parts.append(_Part(paths, rows, rows + sum(len(part.rows) for part in parts)))
    joint = _attach_workers(replace(outlines[0][0], runs=runs), pool, parts)
    return joint, {name: query for *_, known in outlines for name, query in known.items()}


@contextlib.contextmanager
def start_processes(count: int) -> Iterator[WorkerPool]:
    """Worker processes on this machine."""
    # Forking a process that has threads (a progress bar's) can lock up the child.
    has_server = "forkserver" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if has_server else "spawn")
    context.set_forkserver_preload([__name__])
    start = partial(ProcessPoolExecutor, 1, mp_context=context, initializer=_prepare_process)
    pool = WorkerPool([start] * count)
    try:
        yield pool
    finally:
        pool.close()


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
        target = stack.enter_context(_cluster_target(distributed, address))
        try:
            client = stack.enter_context(distributed.Client(target, timeout=timeout))
            client.wait_for_workers(1, timeout=timeout)
        except (OSError, ValueError, TypeError, KeyError, ImportError) as error:
            reason = (str(error) or type(error).__name__).strip().splitlines()[0].rstrip(".")
            raise ConfigError(
                f"cluster {address}: {reason} (an address reads tcp://host:8786, as 'dask "
                f"scheduler' prints it; {LOCAL}4 starts four processes here)"
            ) from None
        client.run(_clear_caches)
        stack.callback(lambda: client.status == "running" and client.run(_clear_caches))
        # The calls of a dead worker go to another one.
        start = partial(client.get_executor, pure=False, allow_other_workers=True)
        workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
        fatal = (distributed.KilledWorker, CancelledError, OSError)
        yield WorkerPool([partial(start, workers=[name]) for name in workers], fatal)


def _cluster_target(distributed: Any, address: str) -> Any:  # noqa: ANN401 - it has no types
    """A context with what a client connects to."""
    if not address.startswith(LOCAL):
        return contextlib.nullcontext(address)
    count = address.removeprefix(LOCAL)
    if not count.isdecimal() or not int(count):
        raise ConfigError(f"cluster {address}: say how many processes, such as {LOCAL}4")
    options = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
    return distributed.LocalCluster(n_workers=int(count), threads_per_worker=1, **options)


def _attach_workers(
    objective: TuningObjective, pool: WorkerPool, parts: Sequence[_Part]
) -> DistributedObjective:
    values: Any = {item.name: getattr(objective, item.name) for item in fields(TuningObjective)}
    return DistributedObjective(**values, pool=pool, parts=tuple(parts))


# What follows runs in the workers.
_lock = threading.Lock()  # a Dask worker may have several threads


def _prepare_process() -> None:
    """Leave Ctrl-C to the parent process, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _run_call(function: Callable[..., Any], argument: Any) -> Any:  # noqa: ANN401
    """A function's result, or its error in a form that every process can read."""
    try:
        with _lock:
            return function(argument)
    except FusionBenchError as error:
        return FusionBenchError(str(error))


@cache
def _open_objective(paths: ObjectivePaths) -> tuple[TuningObjective, Mapping[str, Query]]:
    return paths.open()


@lru_cache(maxsize=32)  # the folds of a search and some types, or some folders
def _select_runs(paths: ObjectivePaths, rows: bytes) -> AlignedRuns:
    objective, _ = _open_objective(paths)
    keep = np.zeros(len(objective.runs.queries), dtype=bool)
    keep[np.frombuffer(rows, dtype=np.int64)] = True
    return objective.subset_queries(keep).runs


def _clear_caches() -> None:
    _open_objective.cache_clear()
    _select_runs.cache_clear()


def _call_on_part(call: tuple[Any, ...]) -> object:
    """What a method returns on some queries of an objective, for a system and its space."""
    paths, rows, system, parameters, function, argument = call
    whole, _ = _open_objective(paths)
    runs = _select_runs(paths, rows.tobytes())
    return function(replace(whole, system=system, parameters=parameters, runs=runs), argument)


def _outline_objective(
    paths: ObjectivePaths,
) -> tuple[TuningObjective, ObjectivePaths, dict[str, Query]]:
    """An objective without candidates, its paths and fingerprint, and what is known of queries."""
    objective, known = _open_objective(paths)
    runs = objective.runs
    values: Any = {item.name: getattr(runs, item.name) for item in fields(runs)}
    empty: Any = {k: a[..., :0] for k, a in values.items() if isinstance(a, np.ndarray)}
    outline = replace(runs, **empty, vocabulary=encode_ids([]).vocabulary)
    judged = {query: known[query] for query in runs.queries if query in known}
    paths = replace(paths, fingerprint=objective.fingerprint)
    return replace(objective, runs=outline, qrels=None), paths, judged
