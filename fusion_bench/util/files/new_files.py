"""Files that are written together: where one cannot be, those before it are removed again."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def remove_on_failure() -> Iterator[list[Path]]:
    """A list of new files and folders, removed again where the context fails.

    The caller adds each path before it writes there, and none that held something before.
    """
    paths: list[Path] = []
    try:
        yield paths
    except BaseException:
        for path in paths:
            with contextlib.suppress(OSError):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
        raise
