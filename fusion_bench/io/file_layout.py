"""How a file writes what it holds: its format and the names of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

from fusion_bench.config.fields.column_names import COLUMN_NAMES
from fusion_bench.errors import UnknownNameError

#: What a column holds (query, document, score, grade, rank) → its name in the file.
ColumnNames: TypeAlias = Mapping[str, str]
NO_COLUMNS: Final[ColumnNames] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class FileLayout:
    """What a ``dataset.yaml`` says of a file that its suffix and header do not say.

    Attributes:
        format: Name of the format; by default the suffix and the contents decide.
        columns: What a column holds → its name in the file; by default the usual names.
    """

    format: str | None = None
    columns: ColumnNames = field(default_factory=dict)

    def __post_init__(self) -> None:
        for role in self.columns:
            if role not in COLUMN_NAMES:
                raise UnknownNameError("column", role, COLUMN_NAMES, where="columns")

    @property
    def key(self) -> list[object]:
        """Plain values that tell one layout from another, for the key of a cache."""
        return [self.format, sorted(self.columns.items())]


#: The suffix names the format and the header the columns.
DEFAULT_LAYOUT: Final = FileLayout()
