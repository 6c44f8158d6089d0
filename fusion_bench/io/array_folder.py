"""Arrays in a folder, one ``.npy`` file each, mapped into memory when they are read back.

Beside them stands ``contents.json``: what was stored with them, and a checksum of each. A folder is
written under another name and moved into place. What is opened is believed only as far as it was
checked: always the checksum of ``contents.json``, the version, byte order and key it names, and the
type and shape of each array; every byte by :meth:`StoredArrays.check_intact`.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench._version import __version__

Array: TypeAlias = NDArray[np.generic]
CONTENTS: Final = "contents.json"
#: Folders that are being written end so.
UNFINISHED: Final = ".part"
#: Seconds after which nobody is writing an unfinished folder any more.
ABANDONED: Final = 3600
#: Kinds of numbers that a folder may hold.
DTYPES: Final = {"int64", "float64", "uint8", "bool"}
#: Bytes from which on a file is mapped; a smaller one is read, and keeps no file open.
LARGE_ARRAY: Final = 1 << 16


@dataclass(frozen=True, eq=False)
class StoredArrays:
    """The contents of a folder.

    Attributes:
        facts: Plain values that were stored beside the arrays.
        arrays: Read-only; nothing of a large one is read before it is looked at.
        checksums: CRC-32 of each array.
    """

    facts: Mapping[str, Any]
    arrays: Mapping[str, Array]
    checksums: Mapping[str, int]

    def check_intact(self) -> None:
        """Read every byte.

        Raises:
            ValueError: One is not what was written.
        """
        for name, array in self.arrays.items():
            if _checksum(array) != self.checksums[name]:
                raise ValueError(f"array {name!r} does not agree with its checksum")


def _checksum(array: Array) -> int:
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def write_arrays(
    folder: Path, key: str, facts: Mapping[str, Any], arrays: Mapping[str, Array]
) -> None:
    """Write arrays to a folder, all or none, in place of what is there.

    Args:
        folder: Its parent is there.
        key: What the contents were made from; :func:`open_arrays` asks for the same.
        facts: Plain values beside the arrays.
        arrays: Of the kinds in :data:`DTYPES`.

    Raises:
        OSError: It cannot be written.
    """
    draft = folder.with_name(f".{secrets.token_hex(8)}{UNFINISHED}")
    try:
        draft.mkdir()
        contents = {
            **_versions(),
            "key": key,
            "facts": dict(facts),
            "arrays": {
                name: _save_array(draft / f"{name}.npy", array) for name, array in arrays.items()
            },
        }
        text = json.dumps(contents)
        (draft / CONTENTS).write_text(json.dumps([zlib.crc32(text.encode()), text]))
        _replace_folder(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _save_array(path: Path, array: Array) -> list[Any]:
    """Type, shape and checksum of an array, and the checksum of its file's header."""
    np.save(path, np.ascontiguousarray(array), allow_pickle=False)
    return [
        array.dtype.name,
        list(array.shape),
        _checksum(array),
        _header_checksum(path, array.nbytes),
    ]


def _header_checksum(path: Path, array_bytes: int) -> int:
    """The checksum of what stands before an array in its file."""
    size = path.stat().st_size - array_bytes
    with path.open("rb") as file:
        return zlib.crc32(file.read(max(size, 0)))


def _replace_folder(draft: Path, folder: Path) -> None:
    """Move a folder to where another may be, which its readers keep open."""
    if folder.exists():
        old = folder.with_name(f".{secrets.token_hex(8)}{UNFINISHED}")
        try:
            os.replace(folder, old)  # noqa: PTH105 - the call that promises to be atomic
        finally:
            shutil.rmtree(old, ignore_errors=True)
    os.replace(draft, folder)  # noqa: PTH105


def _versions() -> dict[str, str]:
    return {"library": __version__, "byte_order": sys.byteorder}


def open_arrays(folder: Path, key: str) -> StoredArrays:
    """Open what :func:`write_arrays` wrote.

    Raises:
        OSError: There is none, or it cannot be read.
        ValueError: It is not what it should be; says why.
    """
    checksum, text = json.loads((folder / CONTENTS).read_bytes())
    if zlib.crc32(text.encode()) != checksum:
        raise ValueError(f"{CONTENTS} does not agree with its checksum")
    contents: dict[str, Any] = json.loads(text)
    for name, needed in (_versions() | {"key": key}).items():
        if contents[name] != needed:
            raise ValueError(f"{name} is {contents[name]!r}, and {needed!r} is needed")
    described = contents["arrays"]
    arrays = {
        name: _open_array(folder / f"{name}.npy", *known) for name, known in described.items()
    }
    checksums = {name: known[2] for name, known in described.items()}
    return StoredArrays(contents["facts"], arrays, checksums)


def is_array_folder(folder: Path) -> bool:
    """Whether a folder looks like one that :func:`write_arrays` wrote."""
    return (folder / CONTENTS).is_file()


def _open_array(path: Path, dtype: str, shape: list[int], _: int, header: int) -> Array:
    if dtype not in DTYPES:
        raise ValueError(f"{path.name} is of type {dtype!r}")
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if _header_checksum(path, size) != header:
        raise ValueError(f"{path.name} is not {dtype} of shape {shape}")
    is_large = size >= LARGE_ARRAY
    array: Array = np.load(path, mmap_mode="r" if is_large else None, allow_pickle=False)
    array = array.view(np.ndarray)
    array.setflags(write=False)
    return array


def remove_leftovers(parent: Path) -> None:
    """Delete the unfinished folders and files that killed processes left behind.

    Raises:
        OSError: The folder cannot be read.
    """
    for path in parent.glob(f".*{UNFINISHED}"):
        if path.stat().st_mtime + ABANDONED < time.time():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
