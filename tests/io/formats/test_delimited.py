"""Comma- and tab-separated tables."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fusion_bench.data.read_options import ReadOptions
from fusion_bench.errors import DataError
from fusion_bench.io.load_records import load_qrels, load_run

BEIR = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td3\t1\n"
GRADES = {"q1": {"d1": 2, "d2": 0}, "q2": {"d3": 1}}


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    "content",
    [
        BEIR,
        BEIR.replace("\n", "\r\n"),
        "\ufeff" + BEIR,
        BEIR.rstrip("\n"),
        "\n" + BEIR.replace("\n", "\n\n"),
        BEIR.replace("\n", "\n   \n"),
        BEIR.replace("\t", " \t "),
        BEIR.upper().replace("Q1", "q1").replace("Q2", "q2").replace("\tD", "\td"),
        'query-id\tcorpus-id\tscore\n"q1"\t"d1"\t2\nq1\td2\t0\nq2\td3\t1\n',
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_qrels_of_beir(content: str, zipped: bool, tmp_path: Path) -> None:
    data = gzip.compress(content.encode()) if zipped else content.encode()
    assert load_qrels(written(tmp_path / "test.tsv", data)).to_dict() == GRADES


@pytest.mark.parametrize("name", ["run.csv", "run.CSV", "run.v1.csv.gz", "run.tsv.csv"])
def test_a_run_as_csv_with_its_columns_in_any_order(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / name, 'score,rank,docno,qid\n0.5,2,"d,1",q1\n0.75,1,d2,q1\n')
    assert load_run(path).to_dict() == {"q1": {"d2": 0.75, "d,1": 0.5}}
    assert load_run(path, read_options=ReadOptions(rank_from="column")).ranks.tolist() == [1, 2]


def test_a_header_of_as_many_columns_as_trec_has_is_a_header(tmp_path: Path) -> None:
    path = written(tmp_path / "q.csv", "docno,iteration,rel,qid\nd1,0,3,q1\n")
    assert load_qrels(path).to_dict() == {"q1": {"d1": 3}}


def test_without_a_header_the_columns_are_those_of_trec(tmp_path: Path) -> None:
    path = written(tmp_path / "q.tsv", "query-1\t0\td1\t1\nquery-1\t0\td2\t0\n")
    assert load_qrels(path).to_dict() == {"query-1": {"d1": 1, "d2": 0}}
    run = written(tmp_path / "r.tsv", "q1\tQ0\td1\t1\t0.5\ttag\n")
    assert load_run(run).to_dict() == {"q1": {"d1": 0.5}}


def test_a_run_without_ranks_has_no_column_to_take_them_from(tmp_path: Path) -> None:
    path = written(tmp_path / "r.tsv", "qid\tdocid\tscore\nq1\td1\t1\n")
    with pytest.raises(DataError, match=r"r\.tsv: rank_from: column was asked for, but there is"):
        load_run(path, read_options=ReadOptions(rank_from="column"))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            "qid,text,rel\nq1,a,1\n",
            r":1: no column for the document \(found: qid, text, rel; allow",
        ),
        ("qid,docid,rel,rel\nq1,a,1,1\n", ":1: two columns are named 'rel': keep one"),
        ("qid,docid,rel\n\nq1,a,1\nq1,b\n", ":4: 2 columns, and the header names 3: qid, docid"),
        ("qid,docid,rel\nq1,a,1\nq1,b,x\n", ":3: grade 'x' is not a whole number"),
        ("qid,docid,rel\nq1,a,1\nq1,a,1\n", ":3: document 'a' stands twice for query 'q1'"),
        ("qid,docid,rel\nq1,,1\n", ":2: empty document id"),
        ("qid,docid,rel\n", ": the file is empty"),
        ("", ": the file is empty"),
        ('qid,docid,rel\nq1,"a,1\nq1,b,1\n', ":2: not a table of cells: unexpected end of data"),
        ('qid,docid,rel\nq1,"a,1\nq1,"b,1\n', ":2: not a table of cells: "),
        ('qid,docid,rel\nq1,"a\nb",1\n', ":2: a quoted cell runs on to line 3"),
        ("qid,docid,rel\nq1,a\rb,1\n", ":2: not a table of cells"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(content: str, problem: str, tmp_path: Path) -> None:
    path = written(tmp_path / "q.csv", content)
    with pytest.raises(DataError, match=rf"q\.csv{problem}"):
        load_qrels(path)
