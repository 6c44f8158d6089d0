"""CSV: a reader gets every value back, and a spreadsheet nothing to compute."""

import csv
import io

import pytest

from fusion_bench.report.record_rows import csv_files, render_csv
from tests.report.cases import HOSTILE


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


@pytest.mark.parametrize("name", [HOSTILE, 'a,"b"', "x;y", " a ", "é 中", "−1", "+0.5", "-.5"])
def test_a_reader_gets_the_cells_back(name: str) -> None:
    assert read(render_csv([{name: name, "v": "[-1, +1]"}])) == [[name, "v"], [name, "[-1, +1]"]]


@pytest.mark.parametrize("name", ["=1+1", "@SUM(A1)", "+cmd", "-cmd", "  =1", "=HYPERLINK(1)"])
def test_no_text_is_a_formula(name: str) -> None:
    assert read(render_csv([{name: name}])) == [[f"'{name}"], [f"'{name}"]]


def test_control_characters_are_shown_and_numbers_whole() -> None:
    assert render_csv([{"x": "a\nb\0"}, {"x": "\t=1"}]) == "x\na\\nb\\x00\n\\t=1\n"
    rows: list[dict[str, object]] = [
        {"a": 1 / 3, "b": None, "c": None, "d": True},
        {"a": -2e-9, "b": 7, "c": None},
    ]
    assert read(render_csv(rows)) == [
        ["a", "b", "d"],
        ["0.3333333333333333", "", "true"],
        ["-2e-09", "7", ""],
    ]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (None, []),
        ("tables", ["r-by-type.csv"]),
        ("per-query", ["r-by-type.csv", "r-per-query.csv"]),
    ],
)
def test_one_file_for_each_table_with_rows(kind: str | None, names: list[str]) -> None:
    rows = {"by_type": [{"a": 1}], "values": [{"a": 1}], "lint": []}
    assert list(csv_files("r", rows, kind)) == names
