"""Locks of files and folders, which the system releases when the process ends."""

from __future__ import annotations

import errno
import importlib.util
import os
from pathlib import Path


def has_locks() -> bool:
    """Whether this system has such locks, which only POSIX systems do."""
    return importlib.util.find_spec("fcntl") is not None


def take_lock(path: Path, *, wait: bool = False) -> int | None:
    """Take the lock of a file or folder that is there.

    Args:
        path: The file or folder.
        wait: Wait for another process that holds the lock.

    Returns:
        The descriptor that holds the lock until it is closed. None: another process holds the lock,
        or has deleted the file meanwhile.

    Raises:
        OSError: There is no such file, or its file system has no locks.
    """
    try:
        import fcntl  # POSIX only
    except ImportError:  # pragma: no cover
        raise OSError(errno.ENOLCK, "no locks on this system", str(path)) from None
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        is_there = _is_open_file(handle, path)
    except BlockingIOError:
        is_there = False
    except BaseException:
        os.close(handle)
        raise
    if is_there:
        return handle
    os.close(handle)
    return None


def _is_open_file(handle: int, path: Path) -> bool:
    """Whether a path still leads to the file that is open."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
