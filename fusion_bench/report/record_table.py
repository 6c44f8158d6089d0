"""A table of plain records: one row a record, one column a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fusion_bench.report.page import Column, Row, Table


def make_record_table(title: str, records: Sequence[Mapping[str, object]]) -> Table:
    """A table whose columns are the keys of the first record.

    Args:
        title: Its heading.
        records: At least one, all with the same keys. Columns of numbers are aligned right.
    """
    columns = []
    for key in records[0]:
        values = [record[key] for record in records]
        is_number = all(value is None or isinstance(value, int | float) for value in values)
        columns.append(Column(key.replace("_", " "), is_text=not is_number))
    rows = (Row(tuple(map(format_cell, record.values()))) for record in records)
    return Table(title, tuple(columns), tuple(rows))


def format_cell(value: object) -> str:
    """Four significant digits, thousands set apart in counts; ``none`` for nothing, or none."""
    if isinstance(value, Mapping):
        value = [
            f"{key} ({format_cell(item)})"
            if isinstance(item, Mapping)
            else f"{key}: {format_cell(item)}"
            for key, item in value.items()
        ]
    if isinstance(value, list | tuple):
        return ", ".join(map(format_cell, value)) or "none"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
