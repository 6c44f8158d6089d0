"""One process at a time where a file of a folder is read, changed and written again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fusion_bench.errors import FusionBenchError


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which is made if need be.

    It ends with the process, however that ends, and leaves no file. Without ``fcntl``, which only
    POSIX systems have, there is no lock.

    Raises:
        FusionBenchError: The folder cannot be made or opened.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        import fcntl  # POSIX only

        handle = os.open(folder, os.O_RDONLY)
    except ImportError:  # pragma: no cover
        yield
        return
    except OSError as error:
        raise FusionBenchError(f"{folder}: cannot be used: {error.strerror or error}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
