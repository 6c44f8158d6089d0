"""Parquet tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fusion_bench.errors import DataError
from fusion_bench.io.file_layout import ColumnNames
from fusion_bench.io.formats._base import register_format
from fusion_bench.io.formats._column_names import find_columns
from fusion_bench.io.raw_table import Kind, RawTable


@register_format("parquet", ".parquet")
def read_table(path: Path, kind: Kind, *, has_ranks: bool, columns: ColumnNames) -> RawTable:
    """Read a Parquet table with columns such as query, document, score."""
    import pyarrow.parquet

    try:
        if path.is_dir():  # pyarrow would read every file in it
            raise DataError(f"{path}: a folder, and a file is needed")
        table = pyarrow.parquet.read_table(path)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file: check the path") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not a Parquet table: {error}") from None
    names = find_columns(table.column_names, kind, str(path), columns)
    column: dict[str, list[Any]] = {
        role: table.column(name).to_pylist() for role, name in names.items()
    }
    for role in ("query", "document"):
        if None in column[role]:
            raise DataError(f"{path}:{column[role].index(None) + 1}: the {role} id is null")
    return RawTable(
        queries=[str(query) for query in column["query"]],
        documents=[str(document) for document in column["document"]],
        values=column.get("value"),
        ranks=column.get("rank") if has_ranks or "value" not in column else None,
        lines=range(1, table.num_rows + 1),
    )
