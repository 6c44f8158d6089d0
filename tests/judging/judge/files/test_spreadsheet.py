"""Spreadsheets: what goes out comes back, and what is wrong is refused with its line."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.errors import DataError
from fusion_bench.judging.judge_files import CHANGED, Judgment, SheetRules, read_sheet, render_sheet
from fusion_bench.judging.pools import PooledDocument

RULES = SheetRules("ann", 2, {"q1": {"d1", "d2", "=d3"}})
HEAD = "query,document,grade\n"
IDS = st.text("ab=+-@'\"; ,", min_size=1, max_size=6).filter(str.strip)


@pytest.fixture(scope="module")
def sheet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sheets") / "sheet.csv"


@settings(max_examples=60, deadline=None)
@given(query=IDS, document=IDS, note=st.text("a=+-@'", max_size=5), grade=st.integers(0, 2))
def test_ids_that_look_like_formulas_come_back(
    sheet: Path, query: str, document: str, note: str, grade: int
) -> None:
    row = PooledDocument(query, document, (1,))
    known = {row.pair: Judgment(query, document, grade, "ann", note)}
    text = render_sheet([row], {query: "=1+1"}, {document: "@SUM(1)"}, known)
    for cells in csv.reader(io.StringIO(text)):
        assert not any(cell[:1] in {"=", "+", "-", "@", "\t", "\r"} for cell in cells)
        assert not any(CHANGED.match(cell) and cell[0] != "'" for cell in cells)
    sheet.write_text(text, encoding="utf-8")
    (back,) = read_sheet(sheet, SheetRules("ann", 2, {query: {document}}))
    assert (back.pair, back.grade, back.note) == (row.pair, grade, note)


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("007", "'007"),
        ("12e5", "'12e5"),
        ("1.10", "'1.10"),
        ("2026-01-02", "'2026-01-02"),
        ("1234567890123456", "'1234567890123456"),
        ("'007", "''007"),
        ("123456789012345", "123456789012345"),
        ("0", "0"),
        ("7f", "7f"),
        ("12 monkeys", "12 monkeys"),
    ],
)
def test_ids_that_look_like_numbers_come_back(sheet: Path, name: str, cell: str) -> None:
    """A spreadsheet writes numbers and dates in its own way, and 15 digits of a number."""
    row = PooledDocument("q", name, (1,))
    text = render_sheet([row], {}, {}, {row.pair: Judgment("q", name, 1, "ann")})
    assert text.splitlines()[1] == f"q,,{cell},,1,"
    sheet.write_text(text, encoding="utf-8")
    (back,) = read_sheet(sheet, SheetRules("ann", 2, {"q": {name}}))
    assert back.document == name


def test_letters_beyond_ascii_are_marked_as_utf_8(sheet: Path) -> None:
    row = PooledDocument("q1", "d1", (1,))
    known = {row.pair: Judgment("q1", "d1", 1, "ann")}
    assert not render_sheet([row], {"q1": "naive"}, {}, known).startswith("\ufeff")
    text = render_sheet([row], {"q1": "naïve"}, {}, known)
    assert text.startswith("\ufeffquery,")
    assert [each.grade for each in read(sheet, text)] == [1]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"PK\x03\x04\x14\x00", "sheet.csv: a workbook, and no CSV: save it as 'CSV UTF-8'"),
        ("query,document,grade\né,d1,1\n".encode("cp1252"), "sheet.csv:2: not UTF-8 text"),
        ("query,document,grade\n".encode("utf-16"), "saves it as 'CSV UTF-8'"),
    ],
)
def test_what_a_spreadsheet_saves_in_another_form(sheet: Path, data: bytes, message: str) -> None:
    sheet.write_bytes(data)
    with pytest.raises(DataError) as error:
        read_sheet(sheet, RULES)
    assert message in str(error.value)


def read(path: Path, text: str) -> list[Judgment]:
    path.write_text(text, encoding="utf-8")
    return read_sheet(path, RULES)


def test_rows_without_a_grade_are_not_judged(sheet: Path) -> None:
    text = "Query;Grade;Document;note\nq1;2.0;d1; a  b\nq1;;d2;\n\nq1;0;'=d3;\n"
    assert [(each.document, each.grade, each.note) for each in read(sheet, text)] == [
        ("d1", 2, "a b"),
        ("=d3", 0, ""),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query,document\nq1,d1\n", "sheet.csv:1: no column 'grade'"),
        ("", "sheet.csv"),
        (f"{HEAD}q1,d1,3\n", "sheet.csv:2: grade '3' is no whole number from 0 to 2"),
        (f"{HEAD}q1,d1,1.5\n", "sheet.csv:2: grade '1.5'"),
        (f"{HEAD}q1,d1,-1\n", "sheet.csv:2: grade '-1'"),
        (f"{HEAD}q1,d1,yes\n", "sheet.csv:2: grade 'yes'"),
        (f"{HEAD}q1,d2,\nq9,d1,1\n", "sheet.csv:3: unknown query 'q9'"),
        (f"{HEAD}q1,d9,1\n", "sheet.csv:2: no list returns document 'd9' for query 'q1'"),
        (f"{HEAD}q1,d1,1\n\nq1,d1,1\n", "sheet.csv:4: document 'd1' of query 'q1' is judged twice"),
        (f"{HEAD.strip()},Grade\nq1,d1,1,2\n", "sheet.csv:1: column 'grade' stands twice"),
        (f"{HEAD}q1,d1\n", "sheet.csv:2: 2 cells, and the header has 3"),
        (f'{HEAD}q1,"d1,1\n', "sheet.csv:2: not a table of cells"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(sheet: Path, text: str, message: str) -> None:
    with pytest.raises(DataError) as error:
        read(sheet, text)
    assert message in str(error.value)
