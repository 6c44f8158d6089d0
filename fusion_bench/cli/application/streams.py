"""Standard streams that may be closed, full, or without a reader.

A closed stream is taken for one that nobody reads: what is printed is dropped, and the exit code is
the command's. What standard error does not take is dropped, too. Where standard output does not
take a result, the error names it.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

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
