"""One file of a ``dataset.yaml``: its path, format and columns."""

from __future__ import annotations

from pydantic import field_validator, model_validator

from fusion_bench.config.models import StrictModel
from fusion_bench.errors import ConfigError
from fusion_bench.io.file_layout import FileLayout
from fusion_bench.io.formats import check_format


class FileColumns(StrictModel):
    """A file's own names of its columns, where they are not the usual ones."""

    query: str | None = None
    document: str | None = None

    @model_validator(mode="after")
    def _refuse_repeats(self) -> FileColumns:
        names = [name for _, name in self if name is not None]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{name!r} is named twice: each column holds one thing")
        return self


class FileSpec(StrictModel):
    """One file of a ``dataset.yaml``: its path, format and columns.

    The path of a list may be a pattern: its files are the list's trials, in the order of names.
    """

    path: str
    format: str | None = None
    columns: FileColumns | None = None

    @field_validator("format")
    @classmethod
    def _check_format(cls, value: str | None) -> str | None:
        try:
            return None if value is None else check_format(value)
        except ConfigError as error:
            raise ValueError(str(error)) from None

    @property
    def layout(self) -> FileLayout:
        """How the file is read."""
        columns = {role: name for role, name in self.columns or () if name is not None}
        return FileLayout(self.format, columns)
