"""Whether errors are printed as JSON, and the file and line that a message names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final, NamedTuple

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
