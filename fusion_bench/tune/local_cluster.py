"""A Dask cluster on this machine: the scheduler in this process, each worker in one of its own.

Dask's own processes print warnings when their parent is killed, and some outlive it for seconds.
Those of :mod:`fusion_bench.util.processes` end with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Final

from fusion_bench.errors import FusionBenchError
from fusion_bench.util.optional_imports import import_optional
from fusion_bench.util.processes.worker_process import WorkerProcess

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
