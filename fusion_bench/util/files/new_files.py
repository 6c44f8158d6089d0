"""Files that are written together: all of them new, and where one fails none is left."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from fusion_bench.errors import ConfigError
from fusion_bench.util.files.atomic_files import require_folder


def require_free(folder: Path, names: Iterable[str], option: str = "--out") -> None:
    """Refuse a folder in which a file would be overwritten, before the work begins.

    Args:
        folder: Where to write.
        names: The files to be written.
        option: What names the folder, for messages.

    Raises:
        ConfigError: It is a file, or holds one of these.
    """
    require_folder(folder, option)
    for name in names:
        if (folder / name).exists():
            raise ConfigError(f"{option} {folder}: {folder / name} exists: name another folder")


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
