"""Files written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from fusion_bench.errors import ConfigError, FusionBenchError


def require_folder(folder: Path) -> Path:
    """The folder itself, checked before the work begins.

    Raises:
        ConfigError: A file is in the way.
    """
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            raise ConfigError(f"--out {folder}: {path} is a file: name a folder")
    return folder


def write_atomic(path: Path, data: bytes) -> Path:
    """Write a file under another name and move it into place; its folder is made if need be.

    Raises:
        FusionBenchError: The place cannot be written to.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return replace_file(path, data)
    except OSError as error:
        raise FusionBenchError(f"{path}: cannot be written: {error.strerror or error}") from error


def replace_file(path: Path, data: bytes) -> Path:
    """The same, for callers with their own words: raises OSError."""
    with open_atomic(path) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return path


@contextmanager
def open_atomic(path: Path) -> Iterator[IO[bytes]]:
    """A file under another name, moved into place when all went well; raises OSError."""
    draft = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with draft.open("xb") as file:
            yield file
        os.replace(draft, path)  # noqa: PTH105 - the call that promises to be atomic
    finally:
        draft.unlink(missing_ok=True)
