"""Parquet tables, and what happens without the package that reads them."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.data.read_options import ReadOptions
from fusion_bench.errors import DataError
from fusion_bench.io.load_records import load_qrels, load_run


def table(path: Path, **columns: list[Any]) -> Path:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(columns), path)
    return path


def test_a_run(tmp_path: Path) -> None:
    path = table(
        tmp_path / "a.parquet",
        qid=["q1", "q1"],
        docno=["d1", "ü"],
        score=[0.5, 0.75],
        rank=[0, 1],
    )
    assert load_run(path).to_dict() == {"q1": {"ü": 0.75, "d1": 0.5}}
    assert load_run(path).name == "a"
    by_column = load_run(path, read_options=ReadOptions(rank_from="column"))
    assert by_column.ranks.tolist() == [1, 2]
    assert list(by_column.to_dict()["q1"]) == ["d1", "ü"]


def test_ids_that_are_numbers_and_grades_that_are_floats(tmp_path: Path) -> None:
    path = table(tmp_path / "q.parquet", query_id=[1, 1], doc_id=[10, 20], relevance=[2, 0])
    assert load_qrels(path).to_dict() == {"1": {"10": 2, "20": 0}}
    path = table(tmp_path / "q.parquet", qid=["q"], docid=["d"], rel=[2.0])
    assert load_qrels(path).to_dict() == {"q": {"d": 2}}


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"qid": ["q"], "rel": [1]}, ": no column"),
        ({"qid": ["q", None], "docid": ["d", "e"], "rel": [1, 1]}, ":2: the query id"),
        ({"qid": ["q", "q"], "docid": [None, "e"], "rel": [1, 1]}, ":1: the document id"),
        ({"qid": ["q", "q"], "docid": ["d", "e"], "rel": [1, 1.5]}, ":2: grade 1.5 "),
        ({"qid": ["q"], "docid": ["d"], "rel": [None]}, ": each grade is blank"),
        (
            {"qid": ["q"], "docid": ["d"], "doc_id": ["e"], "rel": [1]},
            ": two columns may hold the document, 'doc_id' and 'docid'",
        ),
        ({"qid": [], "docid": [], "rel": []}, ": the file"),
    ],
)
def test_what_is_wrong_is_said_with_its_record(
    columns: dict[str, list[Any]], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=rf"q\.parquet{problem}"):
        load_qrels(table(tmp_path / "q.parquet", **columns))


def test_names_of_columns_that_are_equal_or_no_utf8(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    columns = [pa.array(["q"]), pa.array(["d"]), pa.array([1]), pa.array([2])]
    path = tmp_path / "q.parquet"
    pq.write_table(pa.Table.from_arrays(columns, names=["qid", "docid", "rel", "rel"]), path)
    with pytest.raises(DataError, match=r"(two columns|Multiple)"):
        load_qrels(path)
    path = tmp_path / "a.parquet"
    rows = {"qid": ["q1"], "docno": ["d1"], "score": [0.5], "comment": ["x"]}
    pq.write_table(pa.table(rows), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"comment", b"commen\xff"))
    with pytest.raises(DataError, match=r"a\.parquet:.*UTF-8"):
        load_run(path)


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.parquet"
    path.write_text("q1 Q0 d1 1 1 t\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.parquet: .*Parquet table"):
        load_run(path)


@pytest.mark.parametrize("name", ["text", "whole", "dictionary", "large", "float32", "decimal"])
def test_columns_of_every_type_read_as_python_reads_them(name: str, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    queries, documents, scores = ["7", "7", "10"], ["3", "20", "3"], [0.5, 0.25, 2.0]
    types = {
        "text": (pa.string(), pa.float64()),
        "whole": (pa.int64(), pa.float64()),
        "dictionary": (pa.dictionary(pa.int32(), pa.string()), pa.float64()),
        "large": (pa.large_string(), pa.float64()),
        "float32": (pa.string(), pa.float32()),
        "decimal": (pa.string(), pa.decimal128(5, 2)),
    }
    ids, numbers = types[name]
    whole = ids == pa.int64()
    columns = {
        "query": pa.array([int(q) for q in queries] if whole else queries, ids),
        "document": pa.array([int(d) for d in documents] if whole else documents, ids),
        "score": pa.array(
            [Decimal(str(s)) for s in scores] if name == "decimal" else scores, numbers
        ),
    }
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path)
    assert load_run(path).to_dict() == {"7": {"3": 0.5, "20": 0.25}, "10": {"3": 2.0}}


def test_a_text_that_is_no_utf8_is_named_with_its_record(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    documents = pa.array([b"d", b"\xff"]).view(pa.string())
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"query": ["q", "q"], "document": documents, "score": [1.0, 2.0]}), path
    )
    with pytest.raises(DataError, match=r"a\.parquet:2:.*read:"):
        load_run(path)


def test_only_the_columns_that_are_needed_are_read(tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", query=["q"], document=["d"], score=[1.0], rank=[None])
    assert load_run(path).to_dict() == {"q": {"d": 1.0}}
