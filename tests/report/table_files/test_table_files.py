"""The files: one a table and a format, under names that any file system takes."""

from __future__ import annotations

import re

from fusion_bench.report.page import Page, Section, Table
from fusion_bench.report.table import render_tables
from tests.report.cases import HOSTILE, example_page


def test_one_file_for_each_table_and_format() -> None:
    page = example_page("a/b")
    names = ["gate-01-Table-a-b", "gate-02-Table-a-b"]
    assert list(render_tables(page, "gate", ["latex"])) == [f"{name}.tex" for name in names]
    assert list(render_tables(page, "gate", ["csv", "csv"])) == [f"{name}.csv" for name in names]
    assert len(render_tables(page, "gate", ["latex", "csv"])) == 4
    assert render_tables(page, "gate", []) == {}


def test_a_caption_names_the_section() -> None:
    page = Page("P", (Section("attack", parts=(Table("Means", (), ()),)),))
    (text,) = render_tables(page, "report", ["latex"]).values()
    assert r"\caption{Means (attack)}" in text
    assert r"\label{tab:report-01-Means}" in text


def test_hostile_names_stay_in_the_folder_and_sort_in_order() -> None:
    tables = tuple(Table(f"../{HOSTILE}\0", (), ()) for _ in range(120))
    names = list(render_tables(Page("P", (Section(parts=tables),)), "report", ["csv"]))
    assert names == sorted(set(names))
    assert all(re.fullmatch(r"report-\d{3}-red-x-red-b\.csv", name) for name in names)
