"""A folder of what was read and aligned before, by the hash of what it was made from.

Nothing in it is needed: whatever is missing, stale or damaged is made anew, and a folder that
cannot be written to is no error.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.rows.read_options import ReadOptions
from fusion_bench.errors import ConfigError
from fusion_bench.io.cache.array_folder import (
    Array,
    StoredArrays,
    check_arrays,
    open_arrays,
    write_arrays,
)
from fusion_bench.io.cache.file_stamps import FileStamps, hash_contents
from fusion_bench.io.file_bytes import GZIP, format_suffix
from fusion_bench.io.file_layout import DEFAULT_LAYOUT, FileLayout
from fusion_bench.io.formats import find_distribution
from fusion_bench.util.files.drafts import remove_abandoned
from fusion_bench.util.files.regular_files import open_regular

log = logging.getLogger("fusion_bench.io")

#: Raised when the same files give other arrays than before.
FORMAT: Final = 7
FOLDER: Final = ".fusion_bench_cache"
#: Bytes of input below which reading costs less than looking.
MIN_INPUT: Final = 1 << 20
#: Bytes that stand before an array in its file, and say of it in the contents, about.
HEADER: Final = 256
#: By default the cache keeps entries that are not in use up to so many times the bytes of the text.
MAX_RATIO: Final = 3
#: The environment variable that sets how many GB it may hold instead.
LIMIT: Final = "FUSION_BENCH_CACHE_GB"
#: And so many bytes.
DEFAULT_BYTES: Final = 10**9
#: Names the limit that was said to be too small, so that it is said once.
NOTICE: Final = "limit.txt"


class Cache:
    """Entries in one folder, each a folder of arrays.

    Attributes:
        folder: Where they are.
        stamps: What is known of files that did not change.
        max_bytes: What it may hold.
        fits_data: What is used together may go beyond that, up to half of what is free on the disk:
            how large the arrays of many lists are is known once they are joined.
    """

    def __init__(
        self,
        folder: Path,
        *,
        max_bytes: int,
        stamps: FileStamps | None = None,
        fits_data: bool = False,
    ) -> None:
        self.folder, self.max_bytes, self.fits_data = folder, max_bytes, fits_data
        self.stamps = stamps or FileStamps(folder)

    def file_key(
        self,
        path: Path,
        kind: str,
        read_options: ReadOptions | None,
        space: ScoreSpace | None,
        layout: FileLayout = DEFAULT_LAYOUT,
    ) -> str | None:
        """The key of what is read from a file; None where there is no file."""
        try:
            content = self.stamps.lookup(path, hash_contents)
        except OSError:
            return None  # reading it says why
        options = None if read_options is None else asdict(read_options)
        reader = find_distribution(path, layout)
        suffix = format_suffix(path)
        return hash_key(kind, suffix, reader, content, options, space, layout.key)

    def load(self, key: str) -> StoredArrays | None:
        """The entry, checked; None where there is none to be trusted."""
        path = self.folder / key
        try:
            self.stamps.lookup(path, lambda folder: _check_entry(folder, key))
            return open_arrays(path, key)
        except (OSError, ValueError, TypeError, KeyError):
            return None  # whatever is wrong with it, it is made anew

    def store(
        self,
        key: str,
        facts: Mapping[str, Any],
        arrays: Mapping[str, Array],
        needed: Collection[str] = (),
    ) -> None:
        """Keep an entry, if that is possible and there is room.

        Args:
            key: Its name.
            facts: Plain values.
            arrays: What it holds.
            needed: Keys of the entries that are used together with it.
        """
        size = len(json.dumps(facts)) + sum(array.nbytes + HEADER for array in arrays.values())
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            ignore = self.folder / ".gitignore"
            if not ignore.exists():
                ignore.write_text("# Made by fusion-bench; may be deleted at any time.\n*\n")
            remove_abandoned(self.folder)
            if self._make_room(size, {key, *needed}):
                write_arrays(self.folder / key, key, facts, arrays)
        except OSError:
            return

    def _make_room(self, size: int, needed: Collection[str]) -> bool:
        """Delete the oldest entries that are not needed; False where that is not enough."""
        entries = [
            (path.stat().st_mtime_ns, path, _folder_size(path))
            for path in self.folder.iterdir()
            if path.is_dir() and not path.name.startswith(".")
        ]
        kept = sum(used for _, path, used in entries if path.name in needed)
        limit = self.max_bytes
        if self.fits_data and size <= shutil.disk_usage(self.folder).free // 2:
            limit = max(limit, size + kept)
        if size + kept > limit:
            self._notify_limit(size + kept)
            return False
        if limit > max(self.max_bytes, DEFAULT_BYTES):
            self._notify_limit(limit, is_kept=True)
        total = size + sum(used for _, _, used in entries)
        for _, path, used in sorted(entries):
            if total > limit and path.name not in needed:
                shutil.rmtree(path, ignore_errors=True)
                total -= used
        return True

    def _notify_limit(self, size: int, *, is_kept: bool = False) -> None:
        """Say once that the data are large: kept all the same, or not for want of room."""
        notice = self.folder / NOTICE
        state = f"{self.max_bytes}, {'kept' if is_kept else 'not kept'}"
        if notice.exists() and notice.read_text() == state:
            return
        notice.write_text(state)
        needed, gigabytes = f"{self.folder}: the cache needs {size / 1e9:.3g} GB", size // 10**9 + 1
        if is_kept:
            log.warning("%s: %s=1 limits it, and the data are read again each time", needed, LIMIT)
            return
        log.warning(
            "%s, more than its limit or half of what is free, so this dataset is read again each "
            "time: make room, or set %s=%d",
            needed,
            LIMIT,
            gigabytes,
        )


def hash_key(*parts: object) -> str:
    """A name for what these plain values decide."""
    return hashlib.sha256(json.dumps([FORMAT, *parts]).encode()).hexdigest()


def _check_entry(folder: Path, key: str) -> str:
    """``intact``; raises OSError or ValueError where it is not."""
    check_arrays(folder, key)
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())  # what is vouched for must outlive a power cut
    return "intact"


def _folder_size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def open_cache(folder: Path, files: Iterable[Path]) -> Cache | None:
    """The cache of a dataset; None where it is switched off or not worth it.

    ``FUSION_BENCH_CACHE`` is ``0`` for none, or another folder, which small datasets use too.
    ``FUSION_BENCH_CACHE_GB`` is how much it may hold. With ``FUSION_BENCH_CACHE_VERIFY=1`` every
    file and entry is read in full each time.

    Args:
        folder: The dataset's own.
        files: What the dataset consists of.

    Raises:
        ConfigError: The limit is not a number above 0.
    """
    given = os.environ.get("FUSION_BENCH_CACHE", "")
    limit = _limit_bytes()
    try:
        size = sum(_text_size(path) for path in files)
    except OSError:
        return None  # reading says what is wrong
    if given == "0" or (not given and size < MIN_INPUT):
        return None
    place = Path(given) if given else folder / FOLDER
    verify = os.environ.get("FUSION_BENCH_CACHE_VERIFY", "") == "1"
    stamps = FileStamps(place, verify=verify)
    usual = min(DEFAULT_BYTES, MAX_RATIO * size)
    return Cache(
        place,
        max_bytes=usual if limit is None else limit,
        stamps=stamps,
        fits_data=limit is None,
    )


def _limit_bytes() -> int | None:
    """The limit that the environment sets; None = none."""
    text = os.environ.get(LIMIT)
    if not text:
        return None
    try:
        limit = float(text)
    except ValueError:
        limit = 0
    if not 0 < limit < float("inf"):
        raise ConfigError(f"{LIMIT}: {text!r} is not a number above 0")
    return int(limit * 1e9)


def _text_size(path: Path) -> int:
    """Bytes of the text of a file or folder; a gzip file ends with those of its last part."""
    if path.is_dir():
        return sum(_text_size(file) for file in path.iterdir() if file.is_file())
    with open_regular(path) as file:
        if file.read(len(GZIP)) != GZIP:
            return path.stat().st_size
        file.seek(-4, os.SEEK_END)
        return int.from_bytes(file.read(4), "little")
