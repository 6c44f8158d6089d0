"""What a worker process runs: calls that come through a pipe, until the pipe ends."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import traceback
from queue import SimpleQueue
from typing import IO, Final

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
    _redirect_standard_streams()
    waiting: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive_calls, args=(calls, waiting), daemon=True).start()
    _end_with_parent()
    while True:
        answer = _answer_call(waiting.get())
        try:
            send_message(answers, answer)
        except OSError:
            os._exit(1)


def _end_with_parent() -> None:
    """On Linux, end also where a computation lets no other thread run."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _redirect_standard_streams() -> None:
    """Leave the pipes to the messages: nothing to read, and output goes to standard error."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # standard error is closed
        os.dup2(nothing, 1)


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
        return _pickle_error(error)


def _pickle_error(error: Exception) -> bytes:
    try:
        data = pickle.dumps((False, error))
        pickle.loads(data)  # noqa: S301 - some exceptions can be pickled and not read back
    except Exception:  # noqa: BLE001 - whatever its class does
        return pickle.dumps((False, RuntimeError("\n".join(error.__notes__))))
    return data


def _read_exactly(pipe: IO[bytes], count: int) -> bytes:
    data = pipe.read(count)
    if len(data) < count:
        raise EOFError
    return data
