"""Parquet tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fusion_bench.data.document_rows import ID_ROLES
from fusion_bench.errors import DataError
from fusion_bench.io.formats._base import (
    complete_table,
    find_columns,
    register_format,
    settle_rivals,
)
from fusion_bench.io.raw_files import ColumnNames, Kind, RawTable, tabulate
from fusion_bench.util.files import check_regular


@register_format("parquet", ".parquet")
def read_table(path: Path, kind: Kind, *, has_ranks: bool, columns: ColumnNames) -> RawTable:
    """Read a Parquet table with columns such as query, document, score."""
    import pyarrow.parquet

    from fusion_bench.io.arrow_text import tabulate_columns

    def attempt(others: ColumnNames) -> RawTable:
        return read_table(path, kind, has_ranks=has_ranks, columns=others)

    where = str(path)
    try:
        if path.is_dir():  # pyarrow would read every file in it
            raise DataError(f"{path}: a folder, and a file is needed")
        check_regular(path)
        # Not read_table: it imports pyarrow.dataset, which takes longer than a million rows.
        with pyarrow.parquet.ParquetFile(path) as file:
            present = file.schema_arrow.names
            names = find_columns(present, kind, where, columns, allows_pairs=True, attempt=attempt)
            notes = settle_rivals(
                present, names, kind, where, columns, lambda name: file.read([name]).column(0)
            )
            if not has_ranks and "value" in names:
                names.pop("rank", None)
            table = file.read(columns=sorted(names.values()), use_threads=False)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file: check the path") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: the name of a column is no UTF-8: {error}") from None
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())  # pyarrow writes several lines
        raise DataError(f"{path}: not a Parquet table: {reason}") from None
    arrays = {role: table.column(name) for role, name in names.items()}
    regular = tabulate_columns(arrays)
    if regular is not None:
        return complete_table(regular, kind, where, names, notes)
    column = {role: _list_values(array, role, path) for role, array in arrays.items()}
    raw = tabulate(column, range(1, table.num_rows + 1))
    plain = complete_table(raw, kind, where, names, notes)
    fields = zip(ID_ROLES, ("queries", "documents"), strict=True)
    ids: dict[str, Any] = {
        name: _list_ids(getattr(plain, name), plain.lines, role, path) for role, name in fields
    }
    return replace(plain, **ids)


def _list_values(column: Any, role: str, path: Path) -> list[Any]:  # noqa: ANN401 - a column of pyarrow, which has no types
    """The values of a column.

    Raises:
        DataError: A text is no UTF-8, or a value is beyond what Python has.
    """
    try:
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):  # ValueError: also no UTF-8
        for row, value in enumerate(column, start=1):
            try:
                value.as_py()
            except (ValueError, OverflowError) as error:
                raise DataError(f"{path}:{row}: the {role} cannot be read: {error}") from None
        raise
    return values


def _list_ids(
    values: Sequence[Any], lines: Sequence[int | str], role: str, path: Path
) -> list[str]:
    """Ids as text; a whole number stands for its digits.

    Raises:
        DataError: One is null, or neither text nor a whole number.
    """
    for row, value in zip(lines, values, strict=True):
        if not isinstance(value, str | int) or isinstance(value, bool):
            what = "null" if value is None else f"{value!r:.60}, neither text nor a whole number"
            raise DataError(f"{path}:{row}: the {role} id is {what}")
    return [str(value) for value in values]
