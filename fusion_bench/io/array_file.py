"""Arrays in one file, to be mapped into memory: a checked header, then raw bytes.

Written whole or not at all. What is opened is believed only as far as it was checked: always the
header's checksum, the format, library, byte order and key it names, and the exact size; every byte
by :meth:`Stored.intact`.
"""

from __future__ import annotations

import json
import mmap
import struct
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fusion_bench._version import __version__
from fusion_bench.util.atomic_files import open_atomic

__all__ = ["Array", "Stored", "is_stored", "open_stored", "opened", "put"]

Array = NDArray[np.generic]
MAGIC = b"FUSIONB1"
#: Magic, length of the header, its CRC-32.
PREFIX = struct.Struct("<8sII")
#: Arrays begin at a multiple of it: a cache line.
ALIGNMENT = 64
#: Kinds of numbers that a file may hold.
DTYPES = {"int64", "float64", "uint64", "bool"}


@dataclass(frozen=True, eq=False)
class Stored:
    """An open file.

    Attributes:
        facts: What was stored beside the arrays.
        arrays: Read-only, mapped: nothing is read before it is looked at.
        checksums: CRC-32 of each array.
    """

    facts: Mapping[str, Any]
    arrays: Mapping[str, Array]
    checksums: Mapping[str, int]

    def intact(self) -> bool:
        """Whether every byte is what was written; reads all of them."""
        return all(
            zlib.crc32(_raw(array)) == self.checksums[name] for name, array in self.arrays.items()
        )


def _raw(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def put(path: Path, key: str, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write the arrays to ``path``, whole or not at all.

    Args:
        path: The file; its folder is there.
        key: What the contents were made from; :func:`open_stored` asks for the same.
        facts: Plain values beside the arrays.
        arrays: Of the kinds in :data:`DTYPES`.

    Raises:
        OSError: It cannot be written.
    """
    laid = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    header = {
        **_made_by(),
        "key": key,
        "facts": dict(facts),
        "arrays": {
            name: [array.dtype.name, list(array.shape), zlib.crc32(_raw(array))]
            for name, array in laid.items()
        },
    }
    text = json.dumps(header).encode()
    with open_atomic(path) as file:
        file.write(PREFIX.pack(MAGIC, len(text), zlib.crc32(text)) + text)
        for array in laid.values():
            file.write(b"\0" * (-file.tell() % ALIGNMENT))
            file.write(_raw(array))


def _made_by() -> dict[str, str]:
    return {"library": __version__, "byte_order": sys.byteorder}


def is_stored(path: Path) -> bool:
    """Whether a file begins as :func:`put` begins one.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def open_stored(path: Path, key: str) -> Stored | None:
    """Map a stored file; None where there is none or it is not what it should be."""
    try:
        return opened(path, key)
    except (OSError, ValueError):
        return None  # whatever is wrong with it, it is made anew


def opened(path: Path, key: str) -> Stored:
    """Map a stored file.

    Raises:
        OSError: There is none, or it cannot be read.
        ValueError: It is not what it should be; says why.
    """
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        return _decoded(mapped, _header(mapped, key))
    except (KeyError, TypeError, struct.error) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None


def _header(mapped: mmap.mmap, key: str) -> dict[str, Any]:
    """What the file says of itself, and where its arrays begin."""
    magic, length, checksum = PREFIX.unpack(mapped[: PREFIX.size])
    text = mapped[PREFIX.size : PREFIX.size + length]
    if magic != MAGIC or zlib.crc32(text) != checksum:
        raise ValueError("the header does not agree with its checksum")
    header: dict[str, Any] = json.loads(text)
    for name, own in (_made_by() | {"key": key}).items():
        if header[name] != own:
            raise ValueError(f"{name} is {header[name]!r}, and {own!r} is needed")
    return header | {"start": PREFIX.size + length}


def _decoded(mapped: mmap.mmap, header: Mapping[str, Any]) -> Stored:
    arrays, at = {}, header["start"]
    for name, (dtype, shape, _) in header["arrays"].items():
        if dtype not in DTYPES:
            raise ValueError(f"array {name!r} is of type {dtype!r}")
        at += -at % ALIGNMENT
        count = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(mapped, dtype, count, at).reshape(shape)
        at += arrays[name].nbytes
    if at != len(mapped):
        raise ValueError(f"{len(mapped)} bytes, and {at} are needed")
    checksums = {name: crc for name, (_, _, crc) in header["arrays"].items()}
    return Stored(header["facts"], arrays, checksums)
