"""The process of a command: exit codes, the form of errors, standard streams, memory.

With less, libraries of linear algebra end the process or wait without end as they are loaded.

A closed stream is taken for one that nobody reads: what is printed is dropped, and the exit code is
the command's. What standard error does not take is dropped, too. Where standard output does not
take a result, the error names it.
"""

from __future__ import annotations

import errno
import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from fusion_bench.errors import FusionBenchError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class ExitCode(IntEnum):
    """How a command ended."""

    DONE = 0
    REGRESSION = 1
    FAILED = 2
    INCONCLUSIVE = 3
    DEGRADED = 4
    INTERRUPTED = 130
    PIPE_CLOSED = 141
    TERMINATED = 143


MEANINGS = {
    ExitCode.DONE: "done or passed",
    ExitCode.REGRESSION: (
        "the gate found a drop, its self-test a wrong error rate, or lint a warning; a campaign "
        "keeps its baseline"
    ),
    ExitCode.FAILED: "could not do it",
    ExitCode.INCONCLUSIVE: (
        "inconclusive, or unjudged documents decide, and this blocks; a campaign is closed"
    ),
    ExitCode.DEGRADED: "done but degraded",
    ExitCode.INTERRUPTED: "interrupted",
    ExitCode.TERMINATED: "terminated",
}


#: The codes that any command may end with.
COMMON = frozenset({ExitCode.DONE, ExitCode.FAILED, ExitCode.INTERRUPTED, ExitCode.TERMINATED})


def describe_exit_codes(*special: ExitCode) -> str:
    """The codes of a command with their meanings, for its help.

    Args:
        special: Its codes beside those of every command; all by default.
    """
    codes = [code for code in MEANINGS if not special or code in COMMON.union(special)]
    listed = ", ".join(f"{code.value} {MEANINGS[code]}" for code in codes)
    return f"Exit codes: {listed}."


#: The end of what may be a place, with the number of its line.
PLACE_END: Final = re.compile(r"(?::(\d+))?: ")
#: How a message goes on after a path that is no regular file.
NOT_A_FILE: Final = ("no such file", "a folder, ", "a named pipe, ", "a socket, ", "a device, ")

_AS_JSON: ContextVar[bool] = ContextVar("errors as JSON", default=False)


class CommandInterruptedError(Exception):
    """Ctrl-C ended a command before it had a result."""


class ErrorRecord(NamedTuple):
    """What an error says, and where.

    Attributes:
        file: The file that is wrong, as the message names it; None = not known.
        line: Its line, from 1; None = not known.
        message: The rest of the message.
    """

    file: str | None
    line: int | None
    message: str


@contextmanager
def error_format(arguments: Sequence[str]) -> Iterator[bool]:
    """Print errors as JSON while the context lasts, if a command's arguments hold ``--json``.

    Yields:
        Whether they do.
    """
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    token = _AS_JSON.set("--json" in options)
    try:
        yield _AS_JSON.get()
    finally:
        _AS_JSON.reset(token)


def is_json_asked() -> bool:
    """Whether errors are printed as JSON."""
    return _AS_JSON.get()


def describe_os_error(error: OSError) -> str:
    """What the operating system refused, with the file first where it names one."""
    if error.filename is None or error.strerror is None:
        return error.strerror or str(error)
    return f"{error.filename}: {error.strerror}"


def locate_error(message: str) -> ErrorRecord:
    """Split ``file:line: message`` or ``file: message``; without a file, all is the message."""
    for n, end in enumerate(PLACE_END.finditer(message)):
        file, rest = message[: end.start()], message[end.end() :]
        if _is_file(file) or (n == 0 and rest.startswith(NOT_A_FILE)):
            return ErrorRecord(file, int(end[1]) if end[1] else None, rest)
    return ErrorRecord(None, None, message)


def _is_file(path: str) -> bool:
    try:
        place = Path(path)  # a folder may bear the name of a dataset, but hardly with a suffix
        return place.is_file() or bool(place.suffix and place.exists())
    except (OSError, ValueError):  # too long for a name, or with a null byte
        return False


#: Bytes of addresses that NumPy, SciPy and pyarrow need with two threads.
LEAST_ADDRESSES: Final = 480 << 20


def check_address_limit() -> None:
    """Refuse to start where ``ulimit -v`` allows too little.

    Raises:
        FusionBenchError: It does.
    """
    try:
        import resource
    except ImportError:  # not on Windows, which has no such limit
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_ADDRESSES:
        raise FusionBenchError(
            f"not enough memory: the process may have {limit >> 20} MiB of addresses (ulimit -v), "
            f"and needs {LEAST_ADDRESSES >> 20} MiB: raise the limit"
        )


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether too little memory is behind an error; libraries in C++ have errors of their own."""
    while error is not None:
        if isinstance(error, MemoryError) or "std::bad_alloc" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


#: What an error calls the stream, as it would name a file.
STDOUT_NAME = "standard output"


class _OutputFile(io.FileIO):
    """Standard output; an error names it."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write bytes, and return how many; raises OSError."""
        try:
            return super().write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, STDOUT_NAME) from None


class _ErrorFile(io.FileIO):
    """Standard error; what it does not take is dropped."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write bytes, and return how many there were."""
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def mend_streams() -> None:
    """Replace the standard streams of the process by such as can be closed or full.

    Streams that somebody else has put in their place stay, but for their treatment of characters
    that they cannot encode: those are replaced.
    """
    for number in (0, 1, 2):  # what is opened next must not become a standard stream
        _fill_descriptor(number)
    sys.stdout = _mend_stream(sys.stdout, sys.__stdout__, _OutputFile, 1)
    sys.stderr = _mend_stream(sys.stderr, sys.__stderr__, _ErrorFile, 2)


def drop_output() -> None:
    """Drop what standard output has not taken, so that flushing it at exit does not fail."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def is_reader_gone(error: BaseException | None) -> bool:
    """Whether an error says that nobody reads standard output any more."""
    return (
        isinstance(error, OSError) and error.errno == errno.EPIPE and error.filename == STDOUT_NAME
    )


def _fill_descriptor(number: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, os.O_RDWR)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)


def _mend_stream(
    stream: TextIO | None, original: TextIO | None, kind: type[io.FileIO], number: int
) -> TextIO:
    if stream is None:  # Python found it closed
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - until the process ends
    if isinstance(stream, io.TextIOWrapper):
        if stream is original:
            stream.flush()
            raw = kind(number, "w", closefd=False)
            return io.TextIOWrapper(
                io.BufferedWriter(raw),
                encoding=stream.encoding,
                errors="replace",
                line_buffering=stream.line_buffering,
            )
        stream.reconfigure(errors="replace")
    return stream
