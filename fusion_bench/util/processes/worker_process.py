"""Processes that run calls for this one: the only place that starts and ends them.

A worker reads its calls from a pipe whose other end this process alone holds. However this process
ends, the system closes that end, and the worker ends with it.
"""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import IO, Any, Final, cast

from fusion_bench.errors import FusionBenchError
from fusion_bench.util.processes.worker_loop import receive_message, run_calls, send_message

#: What the new interpreter runs; it finds the same modules as this one.
START: Final = "import sys; sys.path[:] = {path!r}; from {module} import {name}; {name}()"


class WorkerProcess(Executor):
    """A process of its own that runs calls one after the other.

    Functions are found by their module's name, and arguments and results are pickled. Ctrl-C does
    not reach it, and what it prints goes to standard error.

    Raises:
        FusionBenchError: No process can be started.
    """

    def __init__(self) -> None:
        code = START.format(path=sys.path, module=run_calls.__module__, name=run_calls.__name__)
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "process_group": 0}
        try:
            self._process = subprocess.Popen([sys.executable, "-c", code], **pipes)  # noqa: S603
        except OSError as error:
            raise FusionBenchError(
                f"workers: a process cannot be started: {error.strerror}: use fewer --workers"
            ) from None
        self._calls = cast("IO[bytes]", self._process.stdin)
        self._answers = cast("IO[bytes]", self._process.stdout)
        self._thread = ThreadPoolExecutor(1)

    @property
    def process_id(self) -> int:
        """The number of the process."""
        return self._process.pid

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401
        """Send a call; its future raises BrokenExecutor where the process ends before it does."""
        if kwargs:
            raise TypeError("a call has no keyword arguments")
        return self._thread.submit(self._run_call, fn, args)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT
        """End the process at once; a call under way is given up."""
        self._process.kill()
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._process.wait()
        for pipe in (self._calls, self._answers):
            with contextlib.suppress(OSError):  # what was left in its buffer
                pipe.close()

    def _run_call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:  # noqa: ANN401
        call = pickle.dumps((function, arguments), pickle.HIGHEST_PROTOCOL)
        try:
            send_message(self._calls, call)
            answer = receive_message(self._answers)
        except (OSError, EOFError):
            raise BrokenProcessPool("a worker process ended") from None
        has_returned, result = pickle.loads(answer)  # noqa: S301 - from our process
        if has_returned:
            return result
        raise result
