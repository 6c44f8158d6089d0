"""File formats: one module each; the suffix of a file chooses its format."""

from __future__ import annotations

from pathlib import Path

from fusion_bench.config.plugins import distribution_of
from fusion_bench.errors import DataError, UnknownNameError
from fusion_bench.io.file_bytes import format_suffix
from fusion_bench.io.formats._base import FORMATS, Format, register_format
from fusion_bench.io.raw_table import Kind, RawTable

__all__ = ["Format", "find_distribution", "read_raw_table", "register_format"]


def read_raw_table(path: Path, kind: Kind, *, has_ranks: bool = False) -> RawTable:
    """Read a run or qrels file in the format that its suffix names.

    Args:
        path: The file.
        kind: What it holds.
        has_ranks: Whether the rank column is needed.

    Raises:
        DataError: No such file, an unknown suffix, an empty file, or a malformed line.
    """
    suffix = format_suffix(path)
    file_format = _find_format(suffix)
    if file_format is None:
        if path.is_dir():
            raise DataError(f"{path}: a folder, and a file is needed")
        suffixes = {known for other in FORMATS.load_all().values() for known in other.suffixes}
        raise UnknownNameError("file suffix", suffix, suffixes, where=str(path))
    table = file_format.read_table(path, kind, has_ranks=has_ranks)
    if len(table.queries) == 0:
        raise DataError(f"{path}: the file is empty: at least one row is needed")
    return table


def find_distribution(path: Path) -> str | None:
    """``name==version`` of the distribution that reads a file; None = this one, or none."""
    return distribution_of(_find_format(format_suffix(path)))


def _find_format(suffix: str) -> Format | None:
    """The format of a suffix; a built-in one wins over one of another distribution."""
    for load_formats in (FORMATS.load_built_in, FORMATS.load_all):
        for file_format in load_formats().values():
            if suffix in file_format.suffixes:
                return file_format
    return None
