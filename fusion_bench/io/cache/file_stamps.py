"""What is known of a file as long as nothing has happened to it.

A stamp remembers a file's size, inode and times beside a value that cost reading it. As in git's
index, a file whose size, inode, time of change and time of its inode's change are the same is taken
to be the same; a stamp made within :data:`MIN_AGE` of the last change is not trusted, because a
second change in the same tick of the clock could not be told from the first.
"""

from __future__ import annotations

import hashlib
import json
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from fusion_bench.util.files.atomic_files import replace_file
from fusion_bench.util.files.regular_files import open_regular

#: Nanoseconds. Coarser than the clock of any file system in use (FAT: two seconds).
MIN_AGE = 3_000_000_000
State = list[list[int | str]]


class FileStamps:
    """The stamps kept in one folder, each in a file of its own.

    Attributes:
        folder: Where they are.
        verify: Trust none: read every time.
        min_age: Nanoseconds since the last change before a stamp is kept.
    """

    def __init__(self, folder: Path, *, verify: bool = False, min_age: int = MIN_AGE) -> None:
        self.folder, self.verify, self.min_age = folder, verify, min_age

    def lookup(self, path: Path, read: Callable[[Path], str]) -> str:
        """What ``read`` says of a file or folder, or said when it was last as it is now.

        Raises:
            OSError: There is no such file.
        """
        before = _file_state(path)
        stamp = self.folder / f"{hashlib.sha256(str(path.absolute()).encode()).hexdigest()}.stamp"
        known = None if self.verify else _read_stamp(stamp)
        if known is not None and known[0] == before:
            return known[1]
        value = read(path)
        if value and _file_state(path) == before and self._is_old(before):
            self._write_stamp(stamp, before, value)
        return value

    def _is_old(self, state: State) -> bool:
        """Whether the last change is long enough ago, by a clock that is not behind the file's."""
        times = (int(time) for _, *numbers in state for time in numbers[3:])
        last = max(times, default=0)  # an empty folder
        return last + self.min_age < time.time_ns()

    def _write_stamp(self, stamp: Path, state: State, value: str) -> None:
        text = json.dumps([state, value])
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            replace_file(stamp, json.dumps([zlib.crc32(text.encode()), text]).encode())
        except OSError:
            return  # a folder that cannot be written to keeps nothing


def _file_state(path: Path) -> State:
    """Name, device, inode, size and times of a file, or of each file in a folder."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    stats = [(file.name, file.stat()) for file in files]
    return [
        [name, stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
        for name, stat in stats
    ]


def _read_stamp(stamp: Path) -> tuple[State, str] | None:
    try:
        checksum, text = json.loads(stamp.read_bytes())
        state, value = json.loads(text)
        return (state, value) if zlib.crc32(text.encode()) == checksum else None
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def hash_contents(path: Path) -> str:
    """SHA-256 of a file's bytes; of a folder, of the names and bytes of its files.

    Raises:
        OSError: It cannot be read.
    """
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file())
        contents = [[file.name, hash_contents(file)] for file in files]
        return hashlib.sha256(json.dumps(contents).encode()).hexdigest()
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
