"""One process at a time where a file of a folder is read, changed and written again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fusion_bench.errors import FusionBenchError
from fusion_bench.util.files.file_locks import has_locks, take_lock
from fusion_bench.util.os_errors import explain_error


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which is made if need be.

    It ends with the process, however that ends, and leaves no file. Without ``fcntl``, which only
    POSIX systems have, there is no lock.

    Raises:
        FusionBenchError: The folder cannot be made, opened or locked.
    """
    handle = _wait_for_lock(folder)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _wait_for_lock(folder: Path) -> int | None:
    """The descriptor that holds the lock; None on a system without locks."""
    try:
        while True:
            folder.mkdir(parents=True, exist_ok=True)
            if not has_locks():
                return None
            handle = take_lock(folder, wait=True)
            if handle is not None:  # or the folder was deleted meanwhile
                return handle
    except OSError as error:
        raise FusionBenchError(f"{folder}: cannot be used: {explain_error(error)}") from error
