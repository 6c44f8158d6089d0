"""A judge's file: every judgment survives, and nothing that is wrong is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_bench.errors import DataError, FusionBenchError
from fusion_bench.io.load_records import load_qrels
from fusion_bench.judging.judge_files import JudgeFile, Judgment, judge_files, judge_path

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
    assert judge_path(tmp_path / "dataset.yaml", "ann") == path


def test_a_dataset_reads_it_as_qrels(tmp_path: Path) -> None:
    file = JudgeFile(tmp_path / "ann.csv", "ann")
    file.add(make("d1", 2, "a note"))
    file.add(make("=2+3", 0))
    assert load_qrels(file.path).to_dict() == {"q1": {"=2+3": 0, "d1": 2}}


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
        ("a,b\n", "ann.csv:1: a judge's file begins with query,document"),
        (f"{HEAD}q1,d1,1\n", "ann.csv:2: 3 cells, and 6 columns"),
        (f"{HEAD}q1,d1,x,ann,,\n", "ann.csv:2: grade 'x' is no whole number from 0"),
        (f"{HEAD}q1,d1,-1,ann,,\n", "ann.csv:2: grade '-1'"),
        (f"{HEAD}q1,d1,1,ann,,\nq1,d1,2,ann,,\n", "ann.csv:3: document 'd1' of query 'q1'"),
        (f'{HEAD}q1,"d1"x,1,ann,,\n', "ann.csv:2: not comma-separated values"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "ann.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as error:
        JudgeFile(path, "ann")
    assert message in str(error.value)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "ann.csv"
    path.write_bytes(HEAD.encode() + b"q1,\xff,1,ann,,\n")
    with pytest.raises(DataError, match="UTF-8 at byte 40"):
        JudgeFile(path, "ann")


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
