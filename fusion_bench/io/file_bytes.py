"""The bytes of a file, plain or gzip, by its first bytes and not by its name."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from fusion_bench.errors import DataError

#: The first bytes of a gzip file.
GZIP = b"\x1f\x8b"


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
        with path.open("rb") as file:
            is_packed = file.read(len(GZIP)) == GZIP
        with gzip.open(path) if is_packed else path.open("rb") as opened:
            data = opened.read(size)
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
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: not UTF-8 text (byte {error.start}): a plain or gzip text file is needed"
        ) from None


def read_bytes(path: Path) -> bytes:
    """The bytes of a file, unpacked where its first ones say gzip.

    Raises:
        DataError: It cannot be opened or unpacked.
    """
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data.startswith(GZIP) else data
    except FileNotFoundError:
        raise DataError(f"{path}: no such file: check the path") from None
    except IsADirectoryError:
        raise DataError(f"{path}: a folder, and a file is needed") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file ({error}): copy it again") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null byte
        raise DataError(f"{path}: cannot be read: {error}") from None
