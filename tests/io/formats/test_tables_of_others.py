"""Tables as spreadsheets, R, pandas and older programs write them."""

from pathlib import Path

import pandas as pd
import pytest

from fusion_bench.data.qrels import Qrels
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.run import Run
from fusion_bench.errors import DataError
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.formats import read_raw_table
from fusion_bench.io.load_records import load_qrels, load_run
from fusion_bench.io.raw_files import FileLayout

ROWS = [("q1", "d1", 3.5), ("q1", "d2", 2.0), ("q2", "d3", 1.25)]
EXPECTED = {"q1": ["d1", "d2"], "q2": ["d3"]}


def order_of(run: Run) -> dict[str, list[str]]:
    return {query: list(documents) for query, documents in run.to_dict().items()}


def table_of(header: str, separator: str = ",", sign: int = 1) -> str:
    rows = [separator.join((query, document, str(sign * score))) for query, document, score in ROWS]
    return "\n".join([header, *rows]) + "\n"


@pytest.mark.parametrize(
    "text",
    [
        table_of("Query ID,Doc ID,Score"),
        table_of("query.id,doc.id,score"),
        table_of("Query-Id,Document Id,Relevance Score"),
        table_of("qid,docno,Distance (L2)", sign=-1),
        table_of("qid,docno,euclidean distance", sign=-1),
        "sep=,\r\n" + table_of("qid,docno,score").replace("\n", "\r\n"),
        "sep=;\n" + table_of("qid;docno;score", ";").replace(".", ","),
        table_of('"qid"  "docno" "score"', "   "),
        "qid Q0 docno rank score tag\nq1 Q0 d1 1 3.5 t\nq1 Q0 d2 2 2 t\nq2 Q0 d3 1 1.25 t\n",
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".txt", ".tsv"])
def test_headers_of_other_programs_are_read(tmp_path: Path, text: str, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_text(text, newline="")
    assert order_of(load_run(path, name="a")) == EXPECTED


def test_two_spellings_of_one_name_are_refused_if_their_values_differ(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("qid,doc_id,Doc ID,score\nq1,d1,d2,1\n")
    with pytest.raises(DataError, match="'doc_id' and"):
        load_run(path, name="a")


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.bm25", "a.csv"])
def test_an_encoding_reaches_every_reader(tmp_path: Path, name: str) -> None:
    rows = {
        "a.jsonl": '{"qid": "q", "hits": [{"id": "dé", "score": 2}, {"id": "d", "score": 1}]}',
        "a.json": '{"q1": {"dé": 2, "d": 1}}',
        "a.bm25": "q1 Q0 dé 1 2 t\nq1 Q0 d 2 1 t\n",
        "a.csv": "qid,docno,score\nq1,dé,2\nq1,d,1\n",
    }
    path = tmp_path / name
    path.write_bytes(rows[name].encode("cp1252"))
    table = read_raw_table(path, "run", layout=FileLayout(encoding="cp1252"))
    assert list(table.documents) == ["dé", "d"]  # type: ignore[arg-type]


def test_a_table_of_cr_alone_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(table_of("qid,docno,score").replace("\n", "\r"), newline="")
    with pytest.raises(DataError, match="ends to LF"):
        load_run(path, name="a")


def test_the_index_of_pandas_is_no_grade(tmp_path: Path) -> None:
    frame = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["d1", "d3"]}, index=[4, 7])
    frame.to_parquet(tmp_path / "a.parquet")
    frame.reset_index().rename(columns={"index": "Unnamed: 0"}).to_csv(
        tmp_path / "a.csv", index=False
    )
    for name in ("a.parquet", "a.csv"):
        assert load_qrels(tmp_path / name).to_dict() == {"q1": {"d1": 1}, "q2": {"d3": 1}}


@pytest.mark.parametrize("name", ["distance", "_distance", "rank"])
def test_a_frame_of_distances_or_ranks_has_the_smallest_first(name: str) -> None:
    frame = pd.DataFrame({"qid": ["q1", "q1"], "docno": ["far", "near"], name: [2, 1]})
    assert order_of(Run.from_pandas(frame)) == {"q1": ["near", "far"]}
    records = frame.to_dict("records")
    assert order_of(Run.from_dict(records)) == {"q1": ["near", "far"]}
    given = Run.from_pandas(frame, read_options=ReadOptions(order="higher"))
    assert order_of(given) == {"q1": ["far", "near"]}


def test_a_frame_with_scores_keeps_them_beside_distances() -> None:
    frame = pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "distance": [1, 2], "score": [1, 2]})
    assert order_of(Run.from_pandas(frame)) == {"q1": ["b", "a"]}
    with pytest.raises(DataError, match="for the grade"):
        Qrels.from_pandas(frame.drop(columns=["score"]))


def test_a_number_of_a_column_needs_no_quotes(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("q1 d1 5\nq1 d2 5\n")
    (tmp_path / "q.qrels").write_text("q1 0 d1 1\n")
    path = tmp_path / "dataset.yaml"
    path.write_text("name: a\nqrels: q.qrels\nruns: {a: {path: a.run, columns: {score: 3}}}\n")
    assert load_dataset(path).runs["a"].to_dict() == {"q1": {"d2": 5.0, "d1": 5.0}}
