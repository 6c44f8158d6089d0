"""RankLib's training data as judgments."""

from pathlib import Path

import pytest

from fusion_bench.errors import DataError
from fusion_bench.io.load_records import load_qrels, load_run
from tests.io.files import written

GRADES = {"q1": {"d1": 2, "d2": 1, "d3": 0}, "q2": {"d4": 2}}
LINES = (
    "# qid:q1: red shoes\n2 qid:q1 1:0.3 2:-1e-3 # d1 red shoes\n1 qid:q1 1:0.2 2:0 # d2\n\n"
    "0\tqid:q1\t1:0\t2:0\t# d3\n2 qid:q2 # d4\n"
)


@pytest.mark.parametrize("name", ["a.txt", "a.ranklib", "a.letor", "a.dat"])
def test_grades_queries_and_the_first_word_of_comments(name: str, tmp_path: Path) -> None:
    assert load_qrels(written(tmp_path / name, LINES)).to_dict() == GRADES


def test_ids_as_letor_writes_them(tmp_path: Path) -> None:
    text = "2 qid:10 1:0.1 2:0.2 #docid = GX000-00 inc = 1 prob = 0.08\n"
    assert load_qrels(written(tmp_path / "a.txt", text)).to_dict() == {"10": {"GX000-00": 2}}


@pytest.mark.parametrize(
    "line", ["1 qid:q1 1:0.5", "1 qid:q1 1:0.5 #", "q1 0 d1 1", "1 qid:q1 d1 # d1", "x qid:q1 # d1"]
)
def test_a_line_without_a_document_or_of_another_format(line: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", f"1 qid:q1 1:0.5 # d0\n{line}\n")
    with pytest.raises(DataError, match=r"a\.txt:2: a line"):
        load_qrels(path)


def test_judgments_are_no_run(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="ranked list"):
        load_run(written(tmp_path / "a.txt", LINES))


def test_a_trec_file_stays_one(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", "1 qid:q1 d1 1\n")
    assert load_qrels(path).to_dict() == {"1": {"d1": 1}}
