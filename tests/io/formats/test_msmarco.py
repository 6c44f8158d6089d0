"""MS MARCO runs: a query, a document and a rank a line, and no scores."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_bench.data.read_options import ReadOptions
from fusion_bench.errors import DataError
from fusion_bench.io.formats import text_tables
from fusion_bench.io.load_records import load_qrels, load_run
from fusion_bench.io.raw_files import FileLayout
from tests.io.files import written

RUN = "1\t700\t1\n1\t900\t2\n2\t700\t1\n2\t5\t4\n"
FOUND = {"1": {"700": 2.0, "900": 1.0}, "2": {"700": 2.0, "5": 1.0}}


@pytest.mark.parametrize("name", ["run.tsv", "run.trec", "run.txt", "run", "run.dev.small"])
@pytest.mark.parametrize("separator", ["\t", " "])
def test_a_run_of_three_columns(name: str, separator: str, tmp_path: Path) -> None:
    if name.endswith(".tsv") and separator == " ":
        name = "run.msmarco"
    path = written(tmp_path / name, RUN.replace("\t", separator))
    assert load_run(path).to_dict() == FOUND
    assert load_run(path, layout=FileLayout(format="msmarco")).to_dict() == FOUND
    by_column = load_run(path, read_options=ReadOptions(rank_from="column"))
    assert by_column.ranks.tolist() == [1, 2, 1, 4]


def test_a_large_run_is_read_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_tables, "LARGE_FILE", 1)
    for name, separator in (("run.txt", "\t"), ("run.txt", " "), ("run.tsv", "\t")):
        path = written(tmp_path / name, RUN.replace("\t", separator))
        assert load_run(path).to_dict() == FOUND
    path = written(tmp_path / "run.txt", RUN.replace("1\t700\t1", "1\t700\t3"))
    with pytest.raises(DataError, match=r"run\.txt:1:.*'1'.*1"):
        load_run(path)


def test_its_qrels_are_those_of_trec(tmp_path: Path) -> None:
    path = written(tmp_path / "qrels.dev.small.tsv", "1\t0\t700\t1\n")
    assert load_qrels(path).to_dict() == {"1": {"700": 1}}
    assert load_qrels(path, layout=FileLayout(format="msmarco")).to_dict() == {"1": {"700": 1}}


@pytest.mark.parametrize("limit", [1, 1 << 20])
@pytest.mark.parametrize("name", ["run.txt", "run.csv", "run.tsv", "run"])
def test_three_columns_with_scores(
    name: str, limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_tables, "LARGE_FILE", limit)
    separator = {"run.csv": ",", "run.tsv": "\t"}.get(name, " ")
    text = "1 700 2\n1 900 2.5\n2 5 1e-3\n".replace(" ", separator)
    path = written(tmp_path / name, text)
    assert load_run(path).to_dict() == {"1": {"900": 2.5, "700": 2.0}, "2": {"5": 0.001}}
    with pytest.raises(DataError, match="rank"):
        load_run(path, read_options=ReadOptions(rank_from="column"))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("1 700 x\n", r":1: 3 columns of whole numbers are .*'x' is not a rank from"),
        ("1 700 1\n1 900 -2\n", ":2: 3 columns of whole .*'-2' is not a rank .* if it is a score"),
        ("1 700 1\n2 900 0\n", ":2: 3 columns of whole .*'0' is not a rank .* if it is a grade"),
        ("1 700 1\n2 900 7\n", ":2: query '2' has no document of rank 1"),
        ("1 700 1\n1 900\n", ":2: 2 columns, and the first line has 3"),
        ("1 700 1\n1 Q0 900 2 0.5 t\n", ":2: 6 columns, and the first line has 3"),
        ("1 700 1\n1 700 2\n", ":2: document '700' stands twice for query '1'"),
    ],
)
def test_what_is_no_run_of_ranks(content: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"run\.txt{problem}"):
        load_run(written(tmp_path / "run.txt", content))
