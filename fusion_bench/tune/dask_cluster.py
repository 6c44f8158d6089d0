"""Dask clusters: one on this machine, or an executor on one worker of any.

Dask's own processes print warnings when their parent is killed, and some outlive it for seconds.
Those of :mod:`fusion_bench.util.processes` end with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from typing import Any, Final

from fusion_bench.errors import FusionBenchError
from fusion_bench.util.optional_imports import import_optional
from fusion_bench.util.worker_processes import WorkerProcess

#: Seconds within which all workers join.
START_SECONDS: Final = 120.0


@contextlib.contextmanager
def start_cluster(count: int) -> Iterator[Any]:
    """A cluster of so many workers; a worker that is killed is replaced.

    Raises:
        FusionBenchError: No process can be started.
    """
    distributed = import_optional("distributed", extra="cluster", purpose="--cluster")
    options = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
    with (
        distributed.LocalCluster(n_workers=0, protocol="tcp://", **options) as cluster,
        contextlib.closing(_Workers(count, cluster.scheduler_address)),
    ):
        yield cluster


class _Workers:
    """The worker processes, started by a thread that lives as long as they do.

    On Linux a process ends with the thread that started it.

    Args:
        count: How many.
        address: Of the scheduler.
    """

    def __init__(self, count: int, address: str) -> None:
        self._address = address
        self._started: Future[None] = Future()
        self._closing: Future[None] = Future()
        self._thread = threading.Thread(target=self._replace_workers, args=[count], daemon=True)
        self._thread.start()
        self._started.result()

    def close(self) -> None:
        """End the processes."""
        self._closing.set_result(None)
        self._thread.join()

    def _replace_workers(self, count: int) -> None:
        """Start the workers, and another one for each that ends, until the cluster closes."""
        with contextlib.ExitStack() as stack:
            try:
                calls = [self._start_worker(stack) for _ in range(count)]
            except BaseException as error:  # noqa: BLE001 - raised where the thread was started
                self._started.set_exception(error)
                return
            self._started.set_result(None)
            while not self._closing.done():
                wait([*calls, self._closing], return_when=FIRST_COMPLETED)
                for call in [call for call in calls if call.done()]:
                    calls.remove(call)
                    if not self._closing.done():
                        with contextlib.suppress(FusionBenchError):  # the others go on
                            calls.append(self._start_worker(stack))

    def _start_worker(self, stack: contextlib.ExitStack) -> Future[None]:
        """Start a process; the future is done when its worker has ended."""
        process = stack.enter_context(WorkerProcess())
        return process.submit(run_worker, self._address)


def run_worker(address: str) -> None:
    """Be a worker of the scheduler at an address until it ends."""
    distributed = import_optional("distributed", extra="cluster", purpose="--cluster")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)

    async def work() -> None:
        # Memory is the machine's to limit: a worker that Dask pauses would answer no call.
        async with distributed.Worker(
            address, nthreads=1, memory_limit=0, dashboard=False
        ) as worker:
            await worker.finished()

    asyncio.run(work())


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
        """The same worker as before, or the least used one if it left or a new one is free."""
        address = self._addresses[self._number]
        if address is not None and (
            self._addresses.count(address) == 1
            or len(self._client.nthreads()) <= len(set(self._addresses) - {None})
        ):
            return address
        self._addresses[self._number] = None
        running = self._wait_for_workers()
        address = min(running, key=lambda name: (self._addresses.count(name), name))
        self._addresses[self._number] = address
        return address

    def _wait_for_workers(self) -> list[str]:
        """The workers that take calls, as soon as there is one."""
        end = time.monotonic() + self._return_seconds
        while not (running := running_workers(self._client)):
            if time.monotonic() > end:
                raise FusionBenchError(
                    f"cluster: no worker for {self._return_seconds:g} seconds: start workers"
                )
            time.sleep(CHECK_SECONDS / 5)
        return running


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
                result.add_done_callback(_ignore_outcome)
                break
        else:
            return await result
    except distributed.KilledWorker:
        pass
    except (CancelledError, OSError) as error:
        raise _describe_loss(error) from None
    raise BrokenExecutor


def _ignore_outcome(result: asyncio.Future[Any]) -> None:
    """Mark an error as seen; asyncio prints one that is not."""
    if not result.cancelled():
        result.exception()


def _describe_loss(error: Exception) -> FusionBenchError:
    """A lost scheduler as an error of one line."""
    return FusionBenchError(f"cluster: {' '.join(str(error).split()) or type(error).__name__}")
