"""No row of a text file is lost, and no list is turned round, without a word."""

from pathlib import Path

import pytest

from fusion_bench.errors import DataError
from fusion_bench.io.formats import text_tables
from fusion_bench.io.load_records import load_qrels, load_run
from fusion_bench.io.raw_files import FileLayout
from tests.io.files import written

#: Third columns that are no ranks from 1 to n; they may be scores.
THIRD_COLUMNS = [
    "3 2 2 1",
    "5 5 1",
    "1 40 900",
    "3 1 6",
    "1 2 1 3",
    "1 1",
    "1.0 12.0 7.0",
    "1e0 2e0",
    "1.0 2.0",
    "+1 2",
    "0 1",
    "2 3",
    "2 1 -1",
]


@pytest.mark.parametrize("limit", [1, 1 << 20])
@pytest.mark.parametrize("name", ["run.txt", "run.csv", "run"])
@pytest.mark.parametrize("third", THIRD_COLUMNS)
def test_three_columns_are_ranks_only_from_1_to_n(
    third: str, name: str, limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_tables, "LARGE_FILE", limit)
    numbers = third.split()
    rows = [f"q1 d{at} {number}\n" for at, number in enumerate(numbers)]
    text = "".join([*rows, "q2 d1 1\n"]).replace(" ", "," if name == "run.csv" else " ")
    path = written(tmp_path / name, text)
    with pytest.raises(DataError, match="third column of "):
        load_run(path)
    scores = load_run(path, layout=FileLayout(columns={"score": "3"})).to_dict()["q1"]
    assert scores == {f"d{at}": float(number) for at, number in enumerate(numbers)}


FIRST, SECOND = "q1 Q0 d1 1 2.5 t", "q1 Q0 d2 2 1.5 t"


@pytest.mark.parametrize("limit", [1, 1 << 20])
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"{FIRST}\r{SECOND}\r", ":1: a line"),
        (f"{FIRST}\n{FIRST}\r{SECOND}\n", ":2: a line"),
        *(
            (f"{FIRST}\n{FIRST}{mark}{SECOND}\n", rf":2: holds the character U\+{ord(mark):04X}")
            for mark in "\u2028\u2029\x85\v\f\x1c\x1d\x1e\x1f\0\ufeff"
        ),
        (f"{FIRST}\n{FIRST}{SECOND}\n", ":2: two rows"),
        (f"{FIRST}\n{FIRST}7{SECOND}\n".replace("t", "7"), ":2: (two rows|11 columns)"),
        (f"{FIRST}\n{FIRST} q1 Q0 d2 2 1.5\n", ":2: two rows"),
        (f"{FIRST}\n\ufeff{SECOND}\n", r":2: .*U\+FEFF"),
        (f"{FIRST}\n{SECOND}\n".replace("d", "d\xa0"), r":1: .*U\+00A0"),
        (f"{FIRST}\n{SECOND}\n".replace("q", "q\u3000"), r":1: .*U\+3000"),
        (f"{FIRST}\nq1 Q0 my doc 1 3.5\n", ":2: rank 'doc'"),
        ("q1 Q0 a 1 1 3.5\nq1 Q0 b 2 2 2.5\n", ": the scores are 1, 2, …, n"),
        ("q1 Q0 a 9 1 t\nq1 Q0 b 4 2 t\n", ": the scores are .*rank=5 --run-columns score=4"),
        ("q1 Q0 a 9.5 1 t\nq1 Q0 b 4 2 t\n", ":1: rank .*rank=5 --run-columns score=4"),
    ],
)
def test_a_file_that_would_lose_a_row_is_refused(
    text: str, problem: str, limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_tables, "LARGE_FILE", limit)
    path = written(tmp_path / "a.trec", text)
    with pytest.raises(DataError, match=rf"a\.trec{problem}"):
        load_run(path)


@pytest.mark.parametrize("limit", [1, 1 << 20])
@pytest.mark.parametrize("tag", ["7", "t", "run 2"])
def test_scores_may_count_down_to_1(
    tag: str, limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_tables, "LARGE_FILE", limit)
    path = written(tmp_path / "a.trec", f"q1 Q0 d1 1 2 {tag}\nq1 Q0 d2 2 1 {tag}\n")
    assert load_run(path).to_dict() == {"q1": {"d1": 2.0, "d2": 1.0}}


def test_columns_of_a_file_without_header_go_by_number(tmp_path: Path) -> None:
    path = written(tmp_path / "a.trec", "q1 Q0 d1 1 0.5\nq1 Q0 d2 2 0.25\n")
    numbers = {"query": "1", "document": "3", "score": "5"}
    read = load_run(path, layout=FileLayout(columns=numbers))
    assert read.to_dict() == {"q1": {"d1": 0.5, "d2": 0.25}}
    for wrong in ({"score": "6"}, {"query": "1", "score": "5"}):
        with pytest.raises(DataError, match=r"a\.trec:1: columns"):
            load_run(path, layout=FileLayout(columns=wrong))


def test_a_number_never_skips_a_header(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "query,document,score\nq1,d1,1\n")
    with pytest.raises(DataError, match=r"a\.csv:1: columns\.score: .*'3'"):
        load_run(path, layout=FileLayout(columns={"score": "3"}))
    path = written(path, "query,document,3\nq1,d1,1\n")
    assert load_run(path, layout=FileLayout(columns={"score": "3"})).to_dict() == {
        "q1": {"d1": 1.0}
    }


@pytest.mark.parametrize(
    ("header", "role"),
    [
        ("query,document,grade,Grade", "grade"),
        ("query,document,relevance,label", "grade"),
        ("query,Query,document,grade", "query"),
        ("qid,doc_id,docno,grade", "document"),
    ],
)
def test_two_columns_of_one_role_agree_or_are_refused(
    header: str, role: str, tmp_path: Path
) -> None:
    names = header.split(",")
    path = written(tmp_path / "q.csv", f"{header}\n1,1,1,1\n")
    assert load_qrels(path).to_dict() == {"1": {"1": 1}}
    path = written(path, f"{header}\n1,2,3,4\n")
    with pytest.raises(DataError, match=f":1: two columns .* {role}, ") as caught:
        load_qrels(path)
    name = str(caught.value).split(f"--qrels-columns {role}=")[1].rstrip(")")
    read = load_qrels(path, layout=FileLayout(columns={role: name})).to_dict()
    assert str(names.index(name) + 1) in str(read)


def test_terriers_own_number_is_not_the_document(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "qid,docid,docno,rank,score\n1,50,d51,0,3.5\n")
    assert load_run(path).to_dict() == {"1": {"d51": 3.5}}
    assert (
        "'docno'" in text_tables.read_delimited(path, "run", has_ranks=False, columns={}).notes[0]
    )


def test_a_byte_order_mark_inside_a_table_is_refused(tmp_path: Path) -> None:
    text = "\ufeffquery,document,grade\nq1,d1,1\n"
    path = written(tmp_path / "q.csv", text + "\ufeffq2,d1,1\n")
    with pytest.raises(DataError, match=r"q\.csv:3: .* U\+FEFF"):
        load_qrels(path)
