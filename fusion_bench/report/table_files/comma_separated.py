"""A table as comma-separated values, as RFC 4180 describes them, with line feeds."""

from __future__ import annotations

import csv
import io
import re

from fusion_bench.report.page import Table
from fusion_bench.report.text.table_layout import name_columns
from fusion_bench.util.formatting import escape_control_chars

#: A spreadsheet takes a cell that begins so for a formula; a number with a sign is none.
FORMULA = re.compile(r"[=@]|[+-](?![\d.])")


def render_csv(table: Table) -> str:
    """The header and the rows of a table, without its title and notes.

    Every value is written as it is shown. An apostrophe stands before a text that a spreadsheet
    would compute. Of equal headers each has the one before it: ``95 % interval of difference``.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_protect(header) for header in name_columns(table)])
    writer.writerows([_protect(cell) for cell in row.cells] for row in table.rows)
    return text.getvalue()


def _protect(cell: str) -> str:
    escaped = escape_control_chars(cell)
    return f"'{escaped}" if FORMULA.match(escaped.lstrip()) else escaped
