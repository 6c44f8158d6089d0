"""Reading of regular files: what else may bear a name is refused, and never waited for.

Opening a named pipe waits until somebody writes into it, and a device may have no end.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path
from typing import IO, Final

#: Kind of what is no regular file, by a test of its mode.
KINDS: Final = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class IrregularFileError(OSError):
    """What bears the name of a file is none; the message says what it is."""

    def __str__(self) -> str:
        return str(self.strerror)


def check_regular(path: Path) -> None:
    """Refuse what is neither a regular file nor a folder; what does not exist passes.

    Raises:
        IrregularFileError: It is a named pipe, a socket or a device.
        OSError: It cannot be asked.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    for is_kind, name in KINDS:
        if is_kind(mode):
            raise IrregularFileError(errno.EINVAL, f"{name}, and a file is needed", str(path))


def open_regular(path: Path) -> io.BufferedReader:
    """Open a regular file for reading.

    Raises:
        IrregularFileError: It is none.
        OSError: It cannot be opened.
    """
    check_regular(path)
    if path.is_dir():
        raise IrregularFileError(errno.EISDIR, "a folder, and a file is needed", str(path))
    return open(path, "rb", opener=_open_without_waiting)


def open_regular_text(path: Path) -> IO[str]:
    r"""The same for text in UTF-8; line ends of any system are read as ``\n``."""
    return io.TextIOWrapper(open_regular(path), encoding="utf-8")


def read_regular(path: Path) -> bytes:
    """The bytes of a regular file; raises OSError."""
    with open_regular(path) as file:
        return file.read()


def read_regular_text(path: Path) -> str:
    """The text of a regular file in UTF-8; raises OSError or UnicodeDecodeError."""
    with open_regular_text(path) as file:
        return file.read()


def _open_without_waiting(path: str, flags: int) -> int:
    """Whatever has taken the file's place since it was checked is not waited for."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
