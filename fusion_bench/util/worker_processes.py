"""Processes that run calls for this one: the only place that starts or ends them.

A worker reads its calls from a pipe whose other end this process alone holds. However this process
ends, the system closes that end, and the worker ends with it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from queue import SimpleQueue
from typing import IO, Any, Final, cast

from fusion_bench.errors import FusionBenchError

#: Bytes that say how long the message behind them is.
LENGTH_BYTES: Final = 8
#: ``PR_SET_PDEATHSIG`` of Linux: the signal that a process gets when its parent ends.
PARENT_DEATH_SIGNAL: Final = 1


def send_message(pipe: IO[bytes], data: bytes) -> None:
    """Write one message; raises OSError where nobody reads."""
    pipe.write(len(data).to_bytes(LENGTH_BYTES) + data)
    pipe.flush()


def receive_message(pipe: IO[bytes]) -> bytes:
    """Read one message.

    Raises:
        EOFError: The other process has ended.
    """
    length = int.from_bytes(_read_exactly(pipe, LENGTH_BYTES))
    return _read_exactly(pipe, length)


def run_calls() -> None:
    """Run the calls that standard input brings, and answer each on what was standard output.

    A call is a pickled function and its arguments; an answer is whether it returned, with the value
    or the exception. This process ends when its standard input does.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # Leave the pipes to the messages: nothing to read, and output goes to standard error.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # standard error is closed
        os.dup2(nothing, 1)
    waiting: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive_calls, args=(calls, waiting), daemon=True).start()
    if sys.platform == "linux":  # end also where a computation lets no other thread run
        import ctypes

        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    while True:
        answer = _answer_call(waiting.get())
        try:
            send_message(answers, answer)
        except OSError:
            os._exit(1)


def _receive_calls(calls: IO[bytes], waiting: SimpleQueue[bytes]) -> None:
    try:
        while True:
            waiting.put(receive_message(calls))
    finally:
        os._exit(0)  # the parent has ended, or wants no more


def _answer_call(call: bytes) -> bytes:
    try:
        function, arguments = pickle.loads(call)  # noqa: S301 - from the parent
        return pickle.dumps((True, function(*arguments)), pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # noqa: BLE001 - the parent decides
        error.add_note("".join(traceback.format_exception(error)))
        try:
            answer = pickle.dumps((False, error))
            pickle.loads(answer)  # noqa: S301 - some exceptions can be pickled and not read back
        except Exception:  # noqa: BLE001 - whatever its class does
            answer = pickle.dumps((False, RuntimeError("\n".join(error.__notes__))))
        return answer


def _read_exactly(pipe: IO[bytes], count: int) -> bytes:
    data = pipe.read(count)
    if len(data) < count:
        raise EOFError
    return data


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
