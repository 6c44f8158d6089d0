"""One process at a time where a file of a folder is read, changed and written again."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fusion_bench.errors import FusionBenchError
from fusion_bench.util.files.file_locks import has_locks, take_lock
from fusion_bench.util.os_errors import explain_error

log = logging.getLogger("fusion_bench")


@contextmanager
def lock_folder(folder: Path, conflict: str | None = None) -> Iterator[None]:
    """Hold the lock of a folder, which is made if need be.

    It ends with the process, however that ends, and leaves no file. Without ``fcntl``, which only
    POSIX systems have, there is no lock.

    Args:
        folder: The folder.
        conflict: Why another process may hold the lock for long: said before waiting for it.

    Raises:
        FusionBenchError: The folder cannot be made, opened or locked.
    """
    handle = _wait_for_lock(folder, conflict)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _wait_for_lock(folder: Path, conflict: str | None) -> int | None:
    """The descriptor that holds the lock; None on a system without locks."""
    waits = conflict is None
    try:
        while True:
            folder.mkdir(parents=True, exist_ok=True)
            if not has_locks():
                return None
            handle = take_lock(folder, wait=waits)
            if handle is not None:
                return handle
            if not waits:  # else the folder was deleted meanwhile
                log.warning("%s: %s: waiting for its end", folder, conflict)
            waits = True
    except OSError as error:
        raise FusionBenchError(f"{folder}: cannot be used: {explain_error(error)}") from error
