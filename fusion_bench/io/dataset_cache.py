"""A folder of what was read or aligned before, by the hash of what it was made from.

A stamp remembers a file's size, inode and times beside a value that cost reading it. As in git's
index, a file whose size, inode, time of change and time of its inode's change are the same is taken
to be the same; a stamp made within :data:`MIN_AGE` of the last change is not trusted, because a
second change in the same tick of the clock could not be told from the first.

Beside them stands ``contents.json``: what was stored with them, and a checksum of each. A folder is
written under another name and moved into place. Opening it checks ``contents.json``, the version,
the byte order and the key; :func:`check_arrays` checks every byte.

Nothing in it is needed: whatever is missing, stale or damaged is made anew, and a folder that
cannot be written to is no error.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import sys
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench._version import __version__
from fusion_bench.data.read_options import GradeOptions, ReadOptions
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError
from fusion_bench.io.formats import find_distribution
from fusion_bench.io.raw_files import DEFAULT_LAYOUT, GZIP, FileLayout, format_suffix
from fusion_bench.util.files import make_draft, open_regular, remove_abandoned, replace_file

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
        if not self.verify:
            with suppress(OSError, ValueError, TypeError, AttributeError):  # no stamp, or broken
                state, known = _unseal(stamp)
                if state == before:
                    return str(known)
        value = read(path)
        times = (int(stamped) for _, *numbers in before for stamped in numbers[3:])
        last = max(times, default=0)  # an empty folder
        # Long enough ago, by a clock that is not behind the file's.
        is_old = last + self.min_age < time.time_ns()
        if value and is_old and _file_state(path) == before:
            with suppress(OSError):  # a folder that cannot be written to keeps nothing
                self.folder.mkdir(parents=True, exist_ok=True)
                replace_file(stamp, _seal([before, value]))
        return value


def _file_state(path: Path) -> State:
    """Name, device, inode, size and times of a file, or of each file in a folder."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    stats = [(file.name, file.stat()) for file in files]
    return [
        [name, stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
        for name, stat in stats
    ]


def _seal(data: object) -> bytes:
    """Data as JSON, with its checksum."""
    text = json.dumps(data)
    return json.dumps([zlib.crc32(text.encode()), text]).encode()


def _unseal(path: Path) -> Any:  # noqa: ANN401 - JSON
    """What was sealed into a file.

    Raises:
        ValueError: It does not agree with its checksum.
    """
    checksum, text = json.loads(path.read_bytes())
    if zlib.crc32(text.encode()) != checksum:
        raise ValueError(f"{path.name} does not agree with its checksum")
    return json.loads(text)


def _hash_contents(path: Path) -> str:
    """SHA-256 of a file's bytes; of a folder, of the names and bytes of its files.

    Raises:
        OSError: It cannot be read.
    """
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file())
        contents = [[file.name, _hash_contents(file)] for file in files]
        return hashlib.sha256(json.dumps(contents).encode()).hexdigest()
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


Array: TypeAlias = NDArray[np.generic]
CONTENTS: Final = "contents.json"
#: Bytes from which on a file is mapped; a smaller one is read, and keeps no file open.
LARGE_ARRAY: Final = 1 << 16


@dataclass(frozen=True, eq=False)
class StoredArrays:
    """The contents of a folder.

    Attributes:
        facts: Plain values that were stored beside the arrays.
        arrays: Read-only; nothing of a large one is read before it is looked at.
    """

    facts: Mapping[str, Any]
    arrays: Mapping[str, Array]


def write_arrays(
    folder: Path, key: str, facts: Mapping[str, Any], arrays: Mapping[str, Array]
) -> None:
    """Write arrays to a folder, all or none, in place of what is there.

    Args:
        folder: Its parent is there.
        key: What the contents were made from; :func:`open_arrays` asks for the same.
        facts: Plain values beside the arrays.
        arrays: Of numbers.

    Raises:
        OSError: It cannot be written.
    """
    with make_draft(folder.parent, is_folder=True) as draft:
        for name, array in arrays.items():
            np.save(draft / f"{name}.npy", np.ascontiguousarray(array), allow_pickle=False)
        hashes = {path.stem: _hash_contents(path) for path in draft.iterdir()}
        contents = {**_versions(), "key": key, "facts": dict(facts), "arrays": hashes}
        (draft / CONTENTS).write_bytes(_seal(contents))
        # Readers keep an older folder open: it is moved away, not overwritten.
        if folder.exists():
            with make_draft(folder.parent, is_folder=True) as old:
                os.replace(folder, old / folder.name)  # noqa: PTH105 - the call that promises to be atomic
        os.replace(draft, folder)  # noqa: PTH105


def _versions() -> dict[str, str]:
    return {"library": __version__, "byte_order": sys.byteorder}


def _read_contents(folder: Path, key: str) -> dict[str, Any]:
    contents: dict[str, Any] = _unseal(folder / CONTENTS)
    for name, needed in (_versions() | {"key": key}).items():
        if contents[name] != needed:
            raise ValueError(f"{name} is {contents[name]!r}, and {needed!r} is needed")
    return contents


def check_arrays(folder: Path, key: str) -> None:
    """Read every byte of what :func:`write_arrays` wrote.

    Raises:
        OSError: There is none, or it cannot be read.
        ValueError: It is not what was written.
    """
    for name, known in _read_contents(folder, key)["arrays"].items():
        if _hash_contents(folder / f"{name}.npy") != known:
            raise ValueError(f"array {name!r} does not agree with its checksum")


def open_arrays(folder: Path, key: str) -> StoredArrays:
    """Open what :func:`write_arrays` wrote and :func:`check_arrays` checked.

    Raises:
        OSError: There is none, or it cannot be read.
        ValueError: It is not what it should be; says why.
    """
    contents = _read_contents(folder, key)
    arrays: dict[str, Array] = {}
    for name in contents["arrays"]:
        path = folder / f"{name}.npy"
        is_large = path.stat().st_size >= LARGE_ARRAY
        array: Array = np.load(path, mmap_mode="r" if is_large else None, allow_pickle=False)
        arrays[name] = array.view(np.ndarray)
        arrays[name].setflags(write=False)
    return StoredArrays(contents["facts"], arrays)


log = logging.getLogger("fusion_bench.io")

#: Raised when the same files give other arrays than before.
FORMAT: Final = 8
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
        read_options: ReadOptions | GradeOptions | None,
        space: ScoreSpace | None,
        layout: FileLayout = DEFAULT_LAYOUT,
    ) -> str | None:
        """The key of what is read from a file; None where there is no file."""
        try:
            content = self.stamps.lookup(path, _hash_contents)
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
            is_needed = {key, *needed}
            entries = [
                (path.stat().st_mtime_ns, path, sum(each.stat().st_size for each in path.iterdir()))
                for path in self.folder.iterdir()
                if path.is_dir() and not path.name.startswith(".")
            ]
            kept = sum(used for _, path, used in entries if path.name in is_needed)
            limit = self.max_bytes
            if self.fits_data and size <= shutil.disk_usage(self.folder).free // 2:
                limit = max(limit, size + kept)
            if size + kept > limit:
                self._notify_limit(size + kept)
                return
            if limit > max(self.max_bytes, DEFAULT_BYTES):
                self._notify_limit(limit, is_kept=True)
            total = size + sum(used for _, _, used in entries)
            for _, path, used in sorted(entries):  # the oldest first
                if total > limit and path.name not in is_needed:
                    shutil.rmtree(path, ignore_errors=True)
                    total -= used
            write_arrays(self.folder / key, key, facts, arrays)
        except OSError:
            return

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
