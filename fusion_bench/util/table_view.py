"""How an object with rows shows itself: one line, a short HTML table, a data frame."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

from fusion_bench.util.formatting import escape_control_chars

if TYPE_CHECKING:
    import pandas as pd

#: Name → values of one column; all columns are equally long.
Columns: TypeAlias = Mapping[str, Sequence[Any]]

#: Rows that a notebook shows.
SHOWN_ROWS = 10


class TableView:
    """Short texts and data frames of whatever can name its rows; a mixin."""

    @abstractmethod
    def _summary(self) -> str:
        """What it is, in at most three short lines."""

    @abstractmethod
    def _table_columns(self, limit: int | None = None) -> Columns:
        """Its rows by columns; only the first ``limit``."""

    def __repr__(self) -> str:
        return "\n".join(map(escape_control_chars, self._summary().splitlines()))

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: the summary and the first rows."""
        return format_html(repr(self), self._table_columns(SHOWN_ROWS + 1))

    def to_pandas(self) -> pd.DataFrame:
        """Its rows as a data frame."""
        return make_frame(self._table_columns())


def list_columns(record: type, rows: Sequence[Any]) -> Columns:
    """The fields of records as columns, one row a record.

    Args:
        record: Their dataclass.
        rows: The records.
    """
    names = (field.name for field in fields(record))
    return {name: [getattr(row, name) for row in rows] for name in names}


def make_frame(columns: Columns) -> pd.DataFrame:
    """The columns as a data frame."""
    import pandas as pd  # takes longer to import than most evaluations take

    return pd.DataFrame({name: _gap_keeping(list(values)) for name, values in columns.items()})


def _gap_keeping(values: list[Any]) -> Any:  # noqa: ANN401 - a list or an array of pandas
    """Whole numbers with gaps stay whole numbers; anything else as it is."""
    import pandas as pd

    types = set(map(type, values))
    return pd.array(values, dtype="Int64") if types == {int, type(None)} else values


def format_html(summary: str, columns: Columns) -> str:
    """A summary above a table, every text escaped; rows beyond the first few become an ellipsis."""
    rows = list(zip(*columns.values(), strict=True))
    lines = [f"<p>{'<br>'.join(escape(line) for line in summary.splitlines())}</p>"]
    if rows:
        head = "".join(f"<th>{escape(escape_control_chars(name))}</th>" for name in columns)
        lines += ["<table>", f"<thead><tr>{head}</tr></thead>", "<tbody>"]
        lines += [_format_row(row) for row in rows[:SHOWN_ROWS]]
        if len(rows) > SHOWN_ROWS:
            lines.append(_format_row(["…"] * len(columns)))
        lines += ["</tbody>", "</table>"]
    return "\n".join(lines)


def _format_row(row: Sequence[Any]) -> str:
    return f"<tr>{''.join(f'<td>{escape(_format_cell(cell))}</td>' for cell in row)}</tr>"


def _format_cell(cell: object) -> str:
    if cell is None:
        return ""
    return f"{cell:.4f}" if isinstance(cell, float) else escape_control_chars(str(cell))
