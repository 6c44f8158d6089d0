"""A judge's file, a spreadsheet, one grade of several: what goes out comes back, and what is wrong
is refused with its line.
"""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.data.qrels import Qrels
from fusion_bench.errors import DataError, FusionBenchError
from fusion_bench.io.load_records import load_qrels
from fusion_bench.judging.judge_files import (
    CHANGED,
    JudgeFile,
    Judgment,
    judge_files,
    merge_qrels,
    read_sheet,
    render_sheet,
)
from fusion_bench.judging.judge_work import COMBINE, combine_grades
from fusion_bench.judging.options import CombineName
from fusion_bench.judging.pools import PooledDocument

HEAD = "query,document,grade,judge,note,time\n"


def make(document: str, grade: int = 1, note: str = "") -> Judgment:
    return Judgment("q1", document, grade, "ann", note, "2026-01-01T00:00:00+00:00")


def test_each_judgment_is_there_after_the_call_and_when_read_again(tmp_path: Path) -> None:
    path = tmp_path / "judgments/ann.csv"
    file = JudgeFile(path, "ann")
    file.add(make("d1", 2, 'says "no", twice'))
    file.add(make("d,2", 0))
    assert JudgeFile(path, "ann").judgments == file.judgments
    file.add(make("d1", 0))
    file.remove(("q1", "d,2"))
    again = JudgeFile(path, "ann")
    assert [each.cells[:3] for each in again.judgments.values()] == [("q1", "d1", "0")]
    assert judge_files(tmp_path / "dataset.yaml") == {"ann": path}


def test_a_dataset_reads_it_as_qrels_and_no_other_bytes(tmp_path: Path) -> None:
    file = JudgeFile(tmp_path / "ann.csv", "ann")
    file.add(make("d1", 2, "a note"))
    file.add(make("=2+3", 0))
    assert load_qrels(file.path).to_dict() == {"q1": {"=2+3": 0, "d1": 2}}
    path = tmp_path / "ann.csv"
    path.write_bytes(HEAD.encode() + b"q1,\xff,1,ann,,\n")
    with pytest.raises(DataError, match="not UTF-8 text"):
        JudgeFile(path, "ann")


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_line_that_was_cut_off_is_dropped(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "ann.csv"
    file = JudgeFile(path, "ann")
    file.add(make("d1"))
    whole = path.read_bytes()
    file.add(make("d2"))
    path.write_bytes(path.read_bytes()[:-cut])
    assert [*JudgeFile(path, "ann").judgments] == [("q1", "d1")]
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n", "ann.csv:1: a judge"),
        (f"{HEAD}q1,d1,1\n", "ann.csv:2: 3 cells"),
        (f"{HEAD}q1,d1,x,ann,,\n", "ann.csv:2: grade 'x'"),
        (f"{HEAD}q1,d1,-1,ann,,\n", "ann.csv:2: grade '-1'"),
        (f"{HEAD}q1,d1,1,ann,,\nq1,d1,2,ann,,\n", "ann.csv:3: document 'd1'"),
        (f'{HEAD}q1,"d1"x,1,ann,,\n', "ann.csv:2:"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "ann.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as error:
        JudgeFile(path, "ann")
    assert message in str(error.value)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "ann.csv"
    first, second = JudgeFile(path, "ann"), JudgeFile(path, "ann")
    with first.lock():
        first.add(make("d1"))
        first.add(make("d1", 0))  # written anew: the lock must outlive the file
        with pytest.raises(FusionBenchError, match="judge 'ann'"), second.lock():
            pass
        with JudgeFile(tmp_path / "bob.csv", "bob").lock():
            pass
    with second.lock():
        pass
    assert sorted(each.name for each in tmp_path.iterdir()) == ["ann.csv", "bob.csv"]


RULES: tuple[str, int, dict[str, set[str]]] = ("ann", 2, {"q1": {"d1", "d2", "=d3"}})
SHEET_HEAD = "query,document,grade\n"
IDS = st.text("ab=+-@'\"; ,", min_size=1, max_size=6).filter(str.strip)


@pytest.fixture(scope="module")
def sheet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sheets") / "sheet.csv"


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
    (back,) = read_sheet(sheet, "ann", 2, {query: {document}})
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
    (back,) = read_sheet(sheet, "ann", 2, {"q": {name}})
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
        (b"PK\x03\x04\x14\x00", "sheet.csv: a workbook"),
        ("query,document,grade\né,d1,1\n".encode("cp1252"), "sheet.csv:2:"),
    ],
)
def test_what_a_spreadsheet_saves_in_another_form(sheet: Path, data: bytes, message: str) -> None:
    sheet.write_bytes(data)
    with pytest.raises(DataError) as error:
        read_sheet(sheet, *RULES)
    assert message in str(error.value)


def test_unicode_text_of_a_spreadsheet_is_read(sheet: Path) -> None:
    sheet.write_bytes("query,document,grade\nq1,d1,1\n".encode("utf-16"))
    assert [(each.document, each.grade) for each in read_sheet(sheet, *RULES)] == [("d1", 1)]


def read(path: Path, text: str) -> list[Judgment]:
    path.write_text(text, encoding="utf-8")
    return read_sheet(path, *RULES)


def test_rows_without_a_grade_are_not_judged(sheet: Path) -> None:
    text = "Query;Grade;Document;note\nq1;2.0;d1; a  b\nq1;;d2;\n\nq1;0;'=d3;\n"
    assert [(each.document, each.grade, each.note) for each in read(sheet, text)] == [
        ("d1", 2, "a b"),
        ("=d3", 0, ""),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query,document\nq1,d1\n", "sheet.csv:1:"),
        ("", "sheet.csv"),
        (f"{SHEET_HEAD}q1,d1,3\n", "sheet.csv:2: grade '3'"),
        (f"{SHEET_HEAD}q1,d1,1.5\n", "sheet.csv:2: grade '1.5'"),
        (f"{SHEET_HEAD}q1,d1,-1\n", "sheet.csv:2: grade '-1'"),
        (f"{SHEET_HEAD}q1,d1,yes\n", "sheet.csv:2: grade"),
        (f"{SHEET_HEAD}q1,d2,\nq9,d1,1\n", "sheet.csv:3: unknown"),
        (f"{SHEET_HEAD}q1,d9,1\n", "document 'd9' for"),
        (
            f"{SHEET_HEAD}q1,d1,1\n\nq1,d1,1\n",
            "sheet.csv:4: document 'd1'",
        ),
        (f"{SHEET_HEAD.strip()},Grade\nq1,d1,1,2\n", "sheet.csv:1: column"),
        (f"{SHEET_HEAD}q1,d1\n", "sheet.csv:2: 2 cells"),
        (f'{SHEET_HEAD}q1,"d1,1\n', "sheet.csv:2:"),
    ],
)
def test_what_is_wrong_in_a_sheet_is_named(sheet: Path, text: str, message: str) -> None:
    with pytest.raises(DataError) as error:
        read(sheet, text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("how", "grades", "expected"),
    [
        ("majority", [2, 0, 2], 2),
        ("majority", [0, 2], 0),
        ("majority", [3, 1, 3, 1, 0], 1),
        ("mean", [0, 1], 0),
        ("mean", [0, 1, 1], 1),
        ("mean", [3, 3, 1], 2),
        ("mean", [2], 2),
        ("first", [1, 3, 3], 1),
    ],
)
def test_one_grade_of_several(how: CombineName, grades: Sequence[int], expected: int) -> None:
    assert COMBINE[how](grades) == expected


def test_grades_of_several_are_combined_and_join_the_judgments() -> None:
    judges = {
        "bob": [Judgment("q", "a", 2, "bob"), Judgment("q", "b", 1, "bob")],
        "ann": [Judgment("q", d, 0, "ann") for d in "a"] + [Judgment("q", "b", 1, "ann")],
        "eve": [Judgment("q", "c", 1, "eve")],
    }
    grades, several, disagreements = combine_grades(judges, "first")
    assert grades == {("q", "a"): 0, ("q", "b"): 1, ("q", "c"): 1}
    assert (several, disagreements) == (2, 1)
    before = Qrels.from_dict({"q": {"a": 1, "b": 1}}).add_queries(["unjudged"])
    merged = merge_qrels(before, {("q", "a"): 0, ("q", "b"): 1, ("p", "c"): 2})
    assert merged.queries == ("p", "q", "unjudged")
    judged = {query: row for query, row in merged.to_dict().items() if row}
    assert judged == {"q": {"a": 0, "b": 1}, "p": {"c": 2}}
