"""One module a file format: it names its suffixes and reads a table. No list names the formats.

A module has ``SUFFIXES`` and ``read_table(path, kind, *, has_ranks)``, which returns a
:class:`~fusion_bench.io.raw_table.RawTable`.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path
from types import ModuleType

from fusion_bench.errors import DataError, UnknownNameError
from fusion_bench.io.file_bytes import format_suffix
from fusion_bench.io.raw_table import Kind, RawTable

__all__ = ["GROUP", "formats_by_suffix", "read_raw_table"]

#: Entry points of other distributions that read a format.
GROUP = "fusion_bench.formats"


@cache
def formats_by_suffix() -> dict[str, ModuleType]:
    """The module that reads each suffix, ``.gz`` apart."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    modules = [
        importlib.import_module(f"{__name__}.{name}") for name in names if not name.startswith("_")
    ]
    return {suffix: module for module in modules for suffix in module.SUFFIXES}


def read_raw_table(path: Path, kind: Kind, *, has_ranks: bool = False) -> RawTable:
    """Read a run or qrels file in the format that its suffix names.

    Args:
        path: The file.
        kind: What it holds.
        has_ranks: Whether the rank column is needed.

    Raises:
        DataError: No such file, an unknown suffix, an empty file, or a malformed line.
    """
    suffix, formats = format_suffix(path), formats_by_suffix()
    if suffix not in formats:
        if path.is_dir():
            raise DataError(f"{path}: a folder, and a file is needed")
        raise UnknownNameError("file suffix", suffix, formats, where=str(path))
    table: RawTable = formats[suffix].read_table(path, kind, has_ranks=has_ranks)
    if len(table.queries) == 0:
        raise DataError(f"{path}: the file is empty: at least one row is needed")
    return table
