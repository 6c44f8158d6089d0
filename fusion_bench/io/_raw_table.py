"""What every reader returns: columns, and the line that each row stood on."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import IntArray
from fusion_bench.errors import DataError, UnknownNameError

__all__ = [
    "Kind",
    "Rows",
    "decoded",
    "read_array",
    "read_data",
    "read_rows",
    "read_text",
    "reader",
    "suffix_of",
]

Kind: TypeAlias = Literal["run", "qrels"]


@dataclass(frozen=True)
class Rows:
    """One file's rows. Numbers are text until somebody parses them, unless they were plain.

    Attributes:
        queries: Query ids.
        documents: Document ids.
        values: Scores or grades, as text or numbers.
        ranks: Makes the rank column, if the file has one: few readings need it.
        lines: 1-based line (or record) of each row.
    """

    queries: Sequence[str]
    documents: Sequence[str]
    values: Sequence[str | float] | NDArray[np.number]
    ranks: Callable[[], Sequence[str | int] | IntArray] | None
    lines: Sequence[int]


#: The first bytes of a gzip file.
GZIP = b"\x1f\x8b"
Reader: TypeAlias = Callable[[Path, Kind], Rows]
_readers: dict[str, Reader] = {}


def reader(*suffixes: str) -> Callable[[Reader], Reader]:
    """Decorator: read files with these suffixes (``.gz`` apart) by this function."""

    def register(function: Reader) -> Reader:
        for suffix in suffixes:
            _readers[suffix] = function
        return function

    return register


def read_rows(path: Path, kind: Kind) -> Rows:
    """Read a run or qrels file in the format that its suffix names.

    Raises:
        DataError: No such file, an unknown suffix, an empty file, or a malformed line.
    """
    suffix = suffix_of(path)
    if suffix not in _readers:
        if path.is_dir():
            raise DataError(f"{path}: a folder, and a file is needed")
        raise UnknownNameError("file suffix", suffix, _readers, where=str(path))
    rows = _readers[suffix](path, kind)
    if len(rows.queries) == 0:
        raise DataError(f"{path}: the file is empty: at least one row is needed")
    return rows


def suffix_of(path: Path) -> str:
    """The suffix that names the format, in small letters; ``.gz`` names none."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return suffixes[-1] if suffixes else ""


def read_text(path: Path) -> str:
    """The text of a file, plain or gzip, by its first bytes and not by its name.

    Raises:
        DataError: It cannot be opened, unpacked or decoded.
    """
    return decoded(path, read_data(path))


def decoded(path: Path, data: bytes) -> str:
    """The text that a file's bytes are.

    Raises:
        DataError: They are none.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: not UTF-8 text (byte {error.start}): a plain or gzip text file is needed"
        ) from None


def read_data(path: Path) -> bytes:
    """The bytes of a file, unpacked where its first ones say gzip.

    Raises:
        DataError: It cannot be opened or unpacked.
    """
    with _opening(path):
        return _unpacked(path.read_bytes())


def read_array(path: Path) -> NDArray[np.uint8]:
    """The same in an array, whose memory is quicker to come by where it is large."""
    with _opening(path), path.open("rb", buffering=0) as file:
        data = np.empty(os.fstat(file.fileno()).st_size, dtype=np.uint8)
        size = file.readinto(data.data) or 0
        if rest := file.read():  # more than was asked for at once, or no ordinary file
            return np.frombuffer(_unpacked(data[:size].tobytes() + rest), dtype=np.uint8)
        data = data[:size]
        if bytes(data[:2]) == GZIP:
            data = np.frombuffer(_unpacked(data.tobytes()), dtype=np.uint8)
        return data


def _unpacked(data: bytes) -> bytes:
    return gzip.decompress(data) if data[:2] == GZIP else data


@contextmanager
def _opening(path: Path) -> Iterator[None]:
    """Say of each error what is wrong with the file."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: no such file: check the path") from None
    except IsADirectoryError:
        raise DataError(f"{path}: a folder, and a file is needed") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file ({error}): copy it again") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null byte
        raise DataError(f"{path}: cannot be read: {error}") from None
