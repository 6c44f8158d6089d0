"""What every file format is, and the registry of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fusion_bench.config.registry import Registry
from fusion_bench.errors import ConfigError
from fusion_bench.io.file_layout import ColumnNames
from fusion_bench.io.raw_table import Kind, RawTable


class TableReader(Protocol):
    """Reads one file; its errors name file and line."""

    def __call__(
        self, path: Path, kind: Kind, *, has_ranks: bool, columns: ColumnNames
    ) -> RawTable:
        """The rows of a file.

        Args:
            path: The file.
            kind: What it holds.
            has_ranks: Whether to read its rank column, if it has one.
            columns: What a column holds → its name in this file; empty = the usual names.
        """


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes:
        suffixes: What files of the format end with, small letters, ``.gz`` apart: ``(".trec",)``.
        read_table: Reads a file.
    """

    suffixes: tuple[str, ...]
    read_table: TableReader


class _FormatRegistry(Registry[Format]):
    def _check_plugin(self, plugin: Any, name: str) -> None:  # noqa: ANN401 - anybody's object
        if not isinstance(plugin, Format):
            raise ConfigError(f"{name!r} is no {self.kind}: make it a Format")


FORMATS = _FormatRegistry("file format", "fusion_bench.io.formats", "fusion_bench.formats")


def register_format(name: str, *suffixes: str) -> Callable[[TableReader], TableReader]:
    """Decorator: register the reader of the files that end with these suffixes."""

    def register(read_table: TableReader) -> TableReader:
        FORMATS.add_plugin(name, Format(suffixes, read_table))
        return read_table

    return register
