"""Evaluation by worker processes, on this machine or on a Dask cluster.

A call names a dataset by its path, some of its queries and a system. The worker opens the dataset,
keeps it, and returns values per query, equal to those of one process to the last bit.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from fusion_bench.config.models import MOST_WORKERS
from fusion_bench.config.own_methods import list_own
from fusion_bench.config.parameters import Params
from fusion_bench.data.grouped_rows import encode_ids
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray, make_readonly
from fusion_bench.data.records import Query
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.experiment.system import System
from fusion_bench.io.fingerprints import Fingerprint
from fusion_bench.ranking.plain_systems import needs_fitting
from fusion_bench.tune.objective import ObjectivePaths, TuningObjective
from fusion_bench.tune.options import TuneOptions
from fusion_bench.util.api_keys import SecretMatcher
from fusion_bench.util.optional_imports import import_optional
from fusion_bench.util.worker_processes import WorkerProcess

#: How often a call asks the scheduler whether its worker is still there.
CHECK_SECONDS: Final = 1.0
#: How long a cluster may be without any worker.
RETURN_SECONDS: Final = 300.0


class DaskExecutor(Executor):
    """Sends calls to one worker; when it leaves the cluster, they raise BrokenExecutor.

    A call is for this worker alone. One that Dask may send to others too waits for ever if no
    worker is there for a moment: Dask keeps it for a worker of the same address.

    Args:
        client: Of the cluster.
        addresses: The worker of each executor; None = it left. All executors share this list.
        number: Which of them this executor is.
        return_seconds: How long the cluster may be without any worker.
    """

    def __init__(
        self,
        client: Any,  # noqa: ANN401
        addresses: list[str | None],
        number: int,
        return_seconds: float = RETURN_SECONDS,
    ) -> None:
        self._client, self._addresses, self._number = client, addresses, number
        self._return_seconds = return_seconds

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401
        """Send a call.

        Raises:
            FusionBenchError: No worker is left, and none comes back; or the scheduler is lost.
        """
        try:
            address = self._choose_worker()
            call = self._client.submit(fn, *args, **kwargs, pure=False, workers=[address])
        except OSError as error:
            raise _describe_loss(error) from None
        loop = self._client.loop.asyncio_loop
        return asyncio.run_coroutine_threadsafe(_follow_call(self._client, call), loop)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT
        """Give the worker up; the next executor of this number chooses another one."""
        self._addresses[self._number] = None

    def _choose_worker(self) -> str:
        """Choose the worker: the last one, or the least used if it left or a new one is free."""
        address = self._addresses[self._number]
        if address is not None and (
            self._addresses.count(address) == 1
            or len(self._client.nthreads()) <= len(set(self._addresses) - {None})
        ):
            return address
        self._addresses[self._number] = None
        end = time.monotonic() + self._return_seconds
        while not (running := running_workers(self._client)):
            if time.monotonic() > end:
                raise FusionBenchError(
                    f"cluster: no worker for {self._return_seconds:g} seconds: start workers"
                )
            time.sleep(CHECK_SECONDS / 5)
        address = min(running, key=lambda name: (self._addresses.count(name), name))
        self._addresses[self._number] = address
        return address


def running_workers(client: Any) -> list[str]:  # noqa: ANN401
    """The addresses of the workers that take calls, in order."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    return sorted(name for name, worker in workers.items() if worker["status"] == "running")


async def _follow_call(client: Any, call: Any) -> object:  # noqa: ANN401
    """A call's result, however long it takes on a worker that is there."""
    distributed = import_optional("distributed", extra="cluster", purpose="--cluster")
    result = asyncio.ensure_future(client.gather(call, asynchronous=True))
    try:
        while not (await asyncio.wait([result], timeout=CHECK_SECONDS))[0]:
            states = await client.scheduler.get_task_status(keys=[call.key])
            if states[call.key] == "no-worker":
                # An error that nobody looks at is printed by asyncio.
                result.add_done_callback(lambda done: done.cancelled() or done.exception())
                break
        else:
            return await result
    except distributed.KilledWorker:
        pass
    except (CancelledError, OSError) as error:
        raise _describe_loss(error) from None
    raise BrokenExecutor


def _describe_loss(error: Exception) -> FusionBenchError:
    """A lost scheduler as an error of one line."""
    return FusionBenchError(f"cluster: {' '.join(str(error).split()) or type(error).__name__}")


#: An address that can be read in one way only. A raw ``@``, ``/`` or ``?`` in a password makes
#: what follows look like a host, a database or an option.
_ADDRESS: Final = re.compile(
    r"(?P<scheme>[a-z][a-z0-9_]*(?:\+[a-z0-9_]+)?)://"
    r"(?:(?P<login>[^@/?#\s]*)@)?"
    r"(?P<place>(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[A-Za-z0-9._ -]*)?)"
    r"(?:\?(?P<options>[^@]*))?"
)
#: Options whose value is no secret.
_OPEN_OPTIONS: Final = {"user", "host", "port", "dbname", "sslmode", "connect_timeout"}
_FILE: Final = re.compile(r"(?P<scheme>sqlite(?:\+pysqlite)?):///(?P<place>[^?]*)(?:\?.*)?")
_SCHEME: Final = re.compile(r"[a-z][a-z0-9_]{0,20}(?:\+[a-z0-9_]{1,20})?(?=://)")
NOT_SHOWN: Final = "(the message is not shown: it may hold the password)"


def show_address(url: str) -> str:
    """Scheme, host, port and database of an address; the scheme alone where it can be misread.

    A word without a scheme may be the password itself, and is not shown.
    """
    file = _FILE.fullmatch(url)
    if file is not None:
        return f"{file['scheme']}:///{file['place']}"
    address = _ADDRESS.fullmatch(url)
    if address is not None:
        return f"{address['scheme']}://{address['place']}"
    scheme = _SCHEME.match(url)
    return "(not shown)" if scheme is None else f"{scheme[0]}://…"


def find_database_file(url: str) -> Path | None:
    """The file of an SQLite address; None = another database, one in memory, or a URI."""
    file = _FILE.fullmatch(url)
    place = "" if file is None else file["place"]
    is_path = bool(place) and place != ":memory:" and not place.startswith("file:")
    return Path(place) if is_path else None


def show_reason(url: str, reason: str) -> str:
    """The first line of a driver's message, unless it may show a part of the password."""
    reason = reason.replace(url, show_address(url))
    if _FILE.fullmatch(url):
        return reason
    address = _ADDRESS.fullmatch(url)
    if address is None and re.search("[@?]", url):
        return NOT_SHOWN
    secrets = {url}
    if address is not None:
        _, _, password = (address["login"] or "").partition(":")
        pairs = [part.partition("=") for part in re.split("[&;]", address["options"] or "")]
        secrets = {
            password,
            *(value or name for name, _, value in pairs if name not in _OPEN_OPTIONS),
        }
    forms = {form for secret in secrets for form in (secret, urllib.parse.unquote_plus(secret))}
    is_shown = any(SecretMatcher(form).is_shown_in(reason) for form in forms if form)
    return NOT_SHOWN if is_shown else reason


_lock = threading.Lock()  # a Dask worker may have several threads
_open_objective = cache(ObjectivePaths.open)


def run_call(function: Callable[..., Any], argument: Any) -> Any:  # noqa: ANN401
    """A function's result, or its error in a form that every process can read."""
    try:
        with _lock:
            return function(argument)
    except FusionBenchError as error:
        raise FusionBenchError(str(error)) from None


@lru_cache(maxsize=32)  # the folds of a search and some types, or some folders
def _select_queries(paths: ObjectivePaths, rows: bytes) -> TuningObjective:
    objective, _ = _open_objective(paths)
    keep = np.isin(np.arange(len(objective.runs.queries)), np.frombuffer(rows, dtype=np.int64))
    return objective.subset_queries(keep)


def clear_caches() -> None:
    """Forget the datasets that are open."""
    _open_objective.cache_clear()
    _select_queries.cache_clear()


def call_on_part(call: tuple[Any, ...]) -> object:
    """Call a method of an objective on some of its queries, with another system and space."""
    paths, rows, system, parameters, function, argument = call
    part = _select_queries(paths, rows.tobytes())
    return function(replace(part, system=system, parameters=parameters), argument)


def outline_objective(
    paths: ObjectivePaths,
) -> tuple[TuningObjective, ObjectivePaths, Mapping[str, Query]]:
    """An objective without candidates, its paths and fingerprint, and what is known of queries."""
    objective, known = _open_objective(paths)
    runs = objective.runs
    values = ((item.name, getattr(runs, item.name)) for item in fields(runs))
    empty: Any = {name: value[..., :0] for name, value in values if isinstance(value, np.ndarray)}
    outline = replace(runs, **empty, vocabulary=encode_ids([]).vocabulary, qrels=None, later=())
    paths = replace(paths, fingerprint=objective.fingerprint)
    return replace(objective, runs=outline), paths, known


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
            futures = {}
            for i, (worker, argument) in pending.items():
                with contextlib.suppress(BrokenExecutor):  # broken since the last batch
                    futures[i] = self._executors[worker].submit(run_call, function, argument)
            for i, future in futures.items():
                with contextlib.suppress(BrokenExecutor):
                    results[i] = future.result()
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
        """Fingerprint of the data; if ``runs`` has no candidates, of the data in the folders."""
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

    def evaluate_by_repeat(self, system: System) -> FloatArray | None:
        """The measure of a system on each repeat of its lists, (T, Q); None = there is one.

        Raises:
            ConfigError: The system is trained, or the folders have different numbers of repeats.
        """
        if needs_fitting(system):
            raise ConfigError(TRAINED)
        parts = self._call_workers(TuningObjective.evaluate_by_repeat, system)
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
        """The objective on the queries where ``keep``, shape (Q,), is true."""
        if keep.all():
            return self
        stops = np.cumsum([len(rows) for _, rows in self.parts])
        kept = zip(self.parts, np.split(keep, stops[:-1]), strict=True)
        parts = tuple((paths, rows[part]) for (paths, rows), part in kept)
        return replace(self, runs=self.runs.subset(keep), parts=parts)

    def _is_trained(self, params: Params) -> bool:
        """Whether these values make a system that learns from all queries at once."""
        with contextlib.suppress(FusionBenchError):  # a value that is refused is none that learns
            return needs_fitting(self.build_system(params))
        return False

    def _call_workers(self, function: Callable[..., Any], argument: object) -> list[Any]:
        """Call a method on each part that has queries; returns one result a part."""
        calls = [
            (i % len(self.pool), (paths, rows, self.system, self.parameters, function, argument))
            for i, (paths, rows) in enumerate(self.parts)
            if len(rows)
        ]
        return self.pool.run(call_on_part, calls)


def distribute_objective(
    objective: TuningObjective, paths: ObjectivePaths, pool: WorkerPool
) -> DistributedObjective:
    """An objective whose trials are evaluated by workers, each on as many queries.

    Raises:
        ConfigError: A method is the user's own, which workers do not have.
    """
    configs = (objective.system.model_dump(), objective.measure.model_dump())
    if any(any(list_own(config)) for config in configs):
        raise ConfigError("own methods run in one process: tune them with --workers 1")
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
        for name in ("queries", "types", "confidences", "groups", "records")
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
    if address.startswith(LOCAL):
        count = address.removeprefix(LOCAL)
        is_short = count.isdecimal() and len(count) <= len(str(MOST_WORKERS))
        if not is_short or not 0 < int(count) <= MOST_WORKERS:
            raise ConfigError(
                f"cluster {address:.60}: state the number of processes, up to {MOST_WORKERS:,}, "
                f"such as {LOCAL}4"
            )
        with start_processes(int(count)) as pool:
            yield pool
        return
    distributed = import_optional("distributed", extra="cluster", purpose="--cluster")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with contextlib.ExitStack() as stack:
        try:
            client = stack.enter_context(distributed.Client(address, timeout=timeout))
            client.wait_for_workers(1, timeout=timeout)
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


@contextlib.contextmanager
def open_workers(
    objective: TuningObjective, paths: ObjectivePaths, options: TuneOptions
) -> Iterator[TuningObjective]:
    """The objective, evaluated as options say: here, by worker processes, or on a cluster."""
    if options.workers == 1 and options.cluster is None:
        yield objective
        return
    processes = start_processes(options.workers)
    with processes if options.cluster is None else connect_cluster(options.cluster) as pool:
        yield distribute_objective(objective, paths, pool)
