"""Parquet tables."""

from __future__ import annotations

from pathlib import Path

from fusion_bench.errors import DataError, MissingExtraError
from fusion_bench.io._column_names import find_columns
from fusion_bench.io._raw_table import Kind, Rows, reader


@reader(".parquet")
def read(path: Path, kind: Kind) -> Rows:
    """Read a Parquet table with columns such as query, document, score.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("pyarrow", extra="parquet", purpose=f"reading {path}") from None
    try:
        if path.is_dir():  # pyarrow would read every file in it
            raise DataError(f"{path}: a folder, and a file is needed")
        table = pq.read_table(path)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file: check the path") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not a Parquet table: {error}") from None
    names = find_columns(table.column_names, kind, str(path))
    column = {role: table.column(name).to_pylist() for role, name in names.items()}
    for role in ("query", "document"):
        if None in column[role]:
            raise DataError(f"{path}:{column[role].index(None) + 1}: the {role} id is null")
    return Rows(
        queries=[str(query) for query in column["query"]],
        documents=[str(document) for document in column["document"]],
        values=column["value"],
        ranks=(lambda: column["rank"]) if "rank" in column else None,
        lines=range(1, table.num_rows + 1),
    )
