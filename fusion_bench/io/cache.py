"""A folder of what was read and aligned before, by the hash of what it was made from.

Nothing in it is needed: whatever is missing, stale or damaged is made anew, and a folder that
cannot be written to is no error.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fusion_bench.data.records import Reading, ScoreSpace
from fusion_bench.io._raw_table import suffix_of
from fusion_bench.io.array_file import Array, Stored, open_stored, put
from fusion_bench.io.file_stamps import Seals, content_hash

__all__ = ["FOLDER", "Cache", "cache_for"]

#: Raised when the same files give other arrays than before.
FORMAT = 1
FOLDER = ".fusion_bench_cache"
#: Bytes of input below which reading costs less than looking.
FLOOR = 1 << 20
#: Bytes that the folder may hold; the oldest entries go first.
MOST = 4 << 30


class Cache:
    """Entries in one folder.

    Attributes:
        folder: Where they are.
        seals: What is known of files that did not change.
    """

    def __init__(self, folder: Path, *, verify: bool = False) -> None:
        self.folder = folder
        self.seals = Seals(folder, always=verify)

    def key_of_file(
        self, path: Path, kind: str, reading: Reading | None, space: ScoreSpace | None
    ) -> str | None:
        """The key of what is read from a file; None where there is no file."""
        try:
            content = self.seals.value(path, content_hash)
        except OSError:
            return None  # reading it says why
        options = None if reading is None else asdict(reading)
        return key_of(kind, suffix_of(path), content, options, space)

    def get(self, key: str) -> Stored | None:
        """The entry, checked; None where there is none to be trusted."""
        path = self._path(key)
        try:
            intact = self.seals.value(path, lambda file: _intact(file, key))
        except OSError:
            return None
        return open_stored(path, key) if intact else None

    def keep(self, key: str, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Store an entry, if that is possible."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            ignore = self.folder / ".gitignore"
            if not ignore.exists():
                ignore.write_text("# Made by fusion-bench; may be deleted at any time.\n*\n")
            put(self._path(key), key, facts, arrays)
            _prune(self.folder.glob("*.bin"), keep=self._path(key))
        except OSError:
            return

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.bin"


def key_of(*parts: object) -> str:
    """One name for what these plain values decide."""
    return hashlib.sha256(json.dumps([FORMAT, *parts]).encode()).hexdigest()


def _intact(path: Path, key: str) -> str:
    """``intact``, or nothing."""
    stored = open_stored(path, key)
    if stored is None or not stored.intact():
        return ""
    with path.open("rb") as file:
        os.fsync(file.fileno())  # what is vouched for must outlive a power cut
    return "intact"


def _prune(entries: Iterable[Path], keep: Path) -> None:
    """Delete the oldest entries until the rest is small enough."""
    known = [(path.stat(), path) for path in entries]
    total = sum(stat.st_size for stat, _ in known)
    for stat, path in sorted(known, key=lambda entry: entry[0].st_mtime_ns):
        if total <= MOST:
            return
        if path != keep:
            path.unlink(missing_ok=True)
            total -= stat.st_size


def cache_for(folder: Path, files: Iterable[Path]) -> Cache | None:
    """The cache of a dataset; None where it is switched off or not worth it.

    ``FUSION_BENCH_CACHE`` is ``0`` for none, or another folder; with
    ``FUSION_BENCH_CACHE_VERIFY=1`` every file and entry is read in full each time.

    Args:
        folder: The dataset's own.
        files: What would be read.
    """
    given = os.environ.get("FUSION_BENCH_CACHE", "")
    try:
        size = sum(path.stat().st_size for path in files)
    except OSError:
        return None  # reading says what is wrong
    if given == "0" or size < FLOOR:
        return None
    verify = os.environ.get("FUSION_BENCH_CACHE_VERIFY", "") == "1"
    return Cache(Path(given) if given else folder / FOLDER, verify=verify)
