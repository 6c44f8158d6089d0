"""What is known of a file as long as nothing has happened to it.

A seal remembers a file's size, inode and times beside a value that cost reading it. As in git's
index, a file whose size, inode, time of change and time of its inode's change are the same is taken
to be the same; a seal made within :data:`RACY` of the last change is not trusted, because a second
change in the same tick of the clock could not be told from the first.
"""

from __future__ import annotations

import hashlib
import json
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from fusion_bench.util.atomic_files import open_atomic

__all__ = ["Seals", "content_hash"]

#: Nanoseconds. Coarser than the clock of any file system in use (FAT: two seconds).
RACY = 3_000_000_000


class Seals:
    """The seals kept in one folder, each in a file of its own.

    Attributes:
        folder: Where they are.
        always: Trust none: read every time.
    """

    def __init__(self, folder: Path, *, always: bool = False) -> None:
        self.folder, self.always = folder, always

    def value(self, path: Path, read: Callable[[Path], str]) -> str:
        """What ``read`` says of the file, or said when the file was last as it is now.

        Raises:
            OSError: There is no such file.
        """
        before = _state(path)
        seal = self.folder / f"{hashlib.sha256(str(path.absolute()).encode()).hexdigest()}.seal"
        known = None if self.always else _opened(seal)
        if known is not None and known[0] == before:
            return known[1]
        value = read(path)
        if value and _state(path) == before and _settled(before):
            self._keep(seal, before, value)
        return value

    def _keep(self, seal: Path, state: list[int], value: str) -> None:
        text = json.dumps([state, value])
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with open_atomic(seal) as file:
                file.write(json.dumps([zlib.crc32(text.encode()), text]).encode())
        except OSError:
            return  # a folder that cannot be written to keeps nothing


def _state(path: Path) -> list[int]:
    stat = path.stat()
    return [stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]


def _settled(state: list[int]) -> bool:
    """Whether the last change is long enough ago, by a clock that is not behind the file's."""
    return max(state[3:]) + RACY < time.time_ns()


def _opened(seal: Path) -> tuple[list[int], str] | None:
    try:
        checksum, text = json.loads(seal.read_bytes())
        state, value = json.loads(text)
        return (state, value) if zlib.crc32(text.encode()) == checksum else None
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def content_hash(path: Path) -> str:
    """SHA-256 of a file's bytes.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
