"""The bytes of a file, plain or gzip, by its first bytes and not by its name."""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from io import BufferedReader
from pathlib import Path

from fusion_bench.errors import DataError
from fusion_bench.util.files.regular_files import IrregularFileError, open_regular

#: The first bytes of a gzip file.
GZIP = b"\x1f\x8b"
#: Most bytes that any gzip file may stand for, and how many times its own size it may stand for
#: beyond them. Lists of ranks and texts pack to between a third and a twentieth.
MOST_UNPACKED = 1 << 28
MOST_RATIO = 100


def format_suffix(path: Path) -> str:
    """The suffix that names the format, in small letters; ``.gz`` names none."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return suffixes[-1] if suffixes else ""


def strip_suffixes(path: Path) -> str:
    """The file's name without ``.gz`` and the suffix of its format."""
    name = path.name
    for suffix in reversed(path.suffixes):
        if suffix.lower() in {".gz", format_suffix(path)}:
            name = name.removesuffix(suffix)
    return name


def read_head(path: Path, size: int = 1 << 16) -> str:
    """The whole lines among a file's first bytes, unpacked; empty where there are none.

    A file that cannot be read or decoded has none: reading all of it says why.
    """
    try:
        with open_regular(path) as file:
            is_packed = file.peek(len(GZIP))[: len(GZIP)] == GZIP
            data = gzip.GzipFile(fileobj=file).read(size) if is_packed else file.read(size)
        if len(data) == size:
            data = data[: data.rfind(b"\n") + 1]
        return data.decode("utf-8-sig")
    except (OSError, EOFError, ValueError, zlib.error):
        return ""


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        DataError: It cannot be opened, unpacked or decoded.
    """
    return decode_text(path, read_bytes(path))


def decode_text(path: Path, data: bytes) -> str:
    """The text that a file's bytes are.

    Raises:
        DataError: They are not UTF-8.
    """
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        at = error.start - data.rfind(b"\n", 0, error.start)
        raise DataError(
            f"{path}:{line}: not UTF-8 text (byte {at} of the line): a plain or gzip text file is "
            "needed"
        ) from None


def read_bytes(path: Path, *, most_unpacked: int = MOST_UNPACKED) -> bytes:
    """The bytes of a file, unpacked where its first ones say gzip.

    Args:
        path: The file.
        most_unpacked: Bytes that any gzip file may stand for; a larger file may stand for
            ``MOST_RATIO`` times its own size.

    Raises:
        DataError: It cannot be opened or unpacked, or unpacks to too much.
    """
    try:
        with open_regular(path) as file:
            is_packed = file.peek(len(GZIP))[: len(GZIP)] == GZIP
            return _unpack(path, file, most_unpacked) if is_packed else file.read()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file: check the path") from None
    except IrregularFileError as error:
        raise DataError(f"{path}: {error}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file ({error}): copy it again") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a path with a null byte
        raise DataError(f"{path}: cannot be read: {error}") from None


def _unpack(path: Path, file: BufferedReader, most_unpacked: int) -> bytes:
    """The bytes that a gzip file stands for, which are no more than a list may be."""
    most = max(most_unpacked, MOST_RATIO * os.fstat(file.fileno()).st_size)
    data = gzip.GzipFile(fileobj=file).read(most + 1)
    if len(data) > most:
        raise DataError(
            f"{path}: unpacks to more than {most:,} bytes, over {MOST_RATIO} times its size: "
            "is it the right file? If so, unpack it with gunzip"
        )
    return data
