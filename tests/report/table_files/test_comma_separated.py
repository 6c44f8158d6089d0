"""CSV: a reader gets every cell back, and a spreadsheet nothing to compute."""

from __future__ import annotations

import csv
import io

import pytest

from fusion_bench.report.page import Column, Row, Table
from fusion_bench.report.table import render_csv
from tests.report.cases import HOSTILE


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


@pytest.mark.parametrize("name", [HOSTILE, 'a,"b"', "x;y", " a ", "é 中", "−1", "+0.5", "-.5", ""])
def test_a_reader_gets_the_cells_back(name: str) -> None:
    table = Table(name, (Column(name, is_text=True), Column("v")), (Row((name, "[-1, +1]")),))
    assert read(render_csv(table)) == [[name, "v"], [name, "[-1, +1]"]]


@pytest.mark.parametrize("name", ["=1+1", "@SUM(A1)", "+cmd", "-cmd", "  =1", "=HYPERLINK(1)"])
def test_no_text_is_a_formula(name: str) -> None:
    table = Table("T", (Column(name, is_text=True),), (Row((name,)),))
    assert read(render_csv(table)) == [[f"'{name}"], [f"'{name}"]]


def test_a_control_character_is_shown() -> None:
    table = Table("T", (Column("x", is_text=True),), (Row(("a\nb\0",)), Row(("\t=1",))))
    assert render_csv(table) == "x\na\\nb\\x00\n\\t=1\n"


def test_equal_headers_are_told_apart() -> None:
    columns: tuple[Column[object], ...] = tuple(
        Column(header) for header in ("mean", "interval", "difference", "interval")
    )
    text = render_csv(Table("T", columns, (Row(("1", "2", "3", "4")),)))
    assert read(text)[0] == ["mean", "interval of mean", "difference", "interval of difference"]
