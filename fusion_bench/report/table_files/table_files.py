"""One file for each table of a page, in each format that was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusion_bench.report.file_names import make_safe_name
from fusion_bench.report.page import Page, Table
from fusion_bench.report.table_files.comma_separated import render_csv
from fusion_bench.report.table_files.latex import render_latex

#: Format → ending of its files.
ENDINGS = {"latex": "tex", "csv": "csv"}


def render_tables(page: Page, stem: str, formats: Sequence[str]) -> dict[str, str]:
    """The files of all tables of a page, folded sections included.

    Args:
        page: Of any command.
        stem: What the file names begin with, such as ``report``.
        formats: ``latex``, ``csv`` or both; a format that stands twice counts once.

    Returns:
        File name → text; the names are numbered in the order of the page.
    """
    tables = list(_list_tables(page))
    width = max(2, len(str(len(tables))))
    files: dict[str, str] = {}
    for i, (section, table) in enumerate(tables, 1):
        name = f"{stem}-{i:0{width}}-{make_safe_name(table.title)}"
        if "latex" in formats:
            caption = f"{table.title} ({section})" if section else table.title
            files[f"{name}.{ENDINGS['latex']}"] = render_latex(table, caption, label=name)
        if "csv" in formats:
            files[f"{name}.{ENDINGS['csv']}"] = render_csv(table)
    return files


def _list_tables(page: Page) -> Iterator[tuple[str, Table]]:
    """Each table below the title of its section."""
    for section in page.sections:
        for table in section.tables:
            yield section.title, table
