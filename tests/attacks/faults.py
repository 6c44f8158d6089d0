"""What can befall a process: limits, and calls of the operating system that fail.

A :class:`~tests.attacks.fork_server.ForkServer` calls these by name in the process of the command.
Python announces each file that it opens, renames or removes to an audit hook; there a call fails
or the process dies.
"""

import errno
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Audit events that change a disk, but for ``open``, which only may.
CHANGES = frozenset({"os.rename", "os.mkdir", "os.remove", "os.rmdir", "sqlite3.connect"})
#: Those that a full disk refuses.
REFUSED = frozenset({"open", "os.mkdir", "sqlite3.connect"})


def limit_file_size(size: int) -> None:
    """Let each write beyond a size in bytes fail, as on a device that is full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def limit_open_files(number: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, number))


def fail_at_change(number: int, marker: str, name: str = "ENOSPC") -> None:
    """Let a change of the disk fail, and everything after it that a full disk refuses.

    Args:
        number: Changes that go well before.
        marker: File that is made when the first one fails.
        name: Name of the error's number.
    """
    code = getattr(errno, name)

    def fail(event: str, count: int, path: object) -> None:
        if count == number:
            Path(marker).touch()
        if count == number or event in REFUSED:
            raise OSError(code, os.strerror(code), path if isinstance(path, str) else None)

    _at_changes(number, fail)


def refuse_changes(part: str, name: str = "EROFS") -> None:
    """Let every change fail of a file or folder whose path holds some text: it is read-only.

    Args:
        part: The text.
        name: Name of the error's number.
    """
    code = getattr(errno, name)

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        paths = [str(each) for each in arguments if isinstance(each, str | Path)]
        if _is_change(event, arguments) and any(part in path for path in paths):
            raise OSError(code, os.strerror(code), paths[-1])

    sys.addaudithook(refuse)


def die_at_change(number: int) -> None:
    """Kill the process at a change of the disk, after so many others."""
    _at_changes(number, lambda _event, _count, _path: os.kill(os.getpid(), signal.SIGKILL))


def _at_changes(number: int, act: Callable[[str, int, object], None]) -> None:
    """Call a function before each change of the disk from one on: event, number, path."""
    count, is_acting = 0, False

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count, is_acting
        if is_acting or not _is_change(event, arguments):
            return
        if count >= number:
            is_acting = True
            try:
                act(event, count, arguments[0])
            finally:
                is_acting = False
                count += 1
        else:
            count += 1

    sys.addaudithook(hook)


def _is_change(event: str, arguments: tuple[Any, ...]) -> bool:
    if event != "open":
        return event in CHANGES
    path, _mode, flags = arguments
    is_file = isinstance(path, str) and not path.startswith(("/dev/", "/proc/"))
    return is_file and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
