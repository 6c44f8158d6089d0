"""Tables as spreadsheets write them: encodings, empty rows, blank grades, distances."""

import gzip
from pathlib import Path

import pytest

from fusion_bench.errors import DataError
from fusion_bench.io.formats import read_raw_table, text_tables
from fusion_bench.io.load_records import load_qrels, load_run
from tests.io.files import written

JUDGED = "query;document;rating\nq1;ä1;2\nq1;d2;0\n"
READ = {"q1": {"ä1": 2, "d2": 0}}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("name", ["q.csv", "q.tsv", "q.txt", "q.csv.gz"])
def test_a_table_in_any_unicode_with_its_mark(name: str, encoding: str, tmp_path: Path) -> None:
    text = JUDGED if encoding.endswith(("sig", "16", "32")) else f"\ufeff{JUDGED}"
    data = text.replace("\n", "\r\n").replace(";", "\t").encode(encoding)
    path = written(tmp_path / name, gzip.compress(data) if name.endswith(".gz") else data)
    assert load_qrels(path).to_dict() == READ


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16-le", "utf-16-be"])
def test_another_encoding_is_named_and_read_by_its_name(encoding: str, tmp_path: Path) -> None:
    path = written(tmp_path / "q.csv", JUDGED.encode(encoding))
    with pytest.raises(DataError, match=r"CSV UTF-8, .* --encoding ") as caught:
        load_qrels(path)
    assert f"--encoding {encoding} " in str(caught.value)
    read_csv, read_trec = text_tables.read_delimited, text_tables.read_trec
    table = read_csv(path, "qrels", has_ranks=False, columns={}, encoding=encoding)
    assert table.documents in (["ä1", "d2"], ("ä1", "d2"))
    with pytest.raises(DataError, match="encoding 'cp9999'"):
        read_csv(path, "qrels", has_ranks=False, columns={}, encoding="cp9999")
    path = written(tmp_path / "q.trec", "q1 0 ä1 2\nq1 0 d2 0\n".encode(encoding))
    table = read_trec(path, "qrels", has_ranks=False, columns={}, encoding=encoding)
    assert table.documents in (["ä1", "d2"], ("ä1", "d2"))


def test_bytes_that_are_no_text_get_no_encoding_proposed(tmp_path: Path) -> None:
    path = written(tmp_path / "q.csv", b"\x81\x8d\xff")
    with pytest.raises(DataError, match="gzip text"):
        load_qrels(path)


def test_empty_rows_and_cells_of_a_spreadsheet(tmp_path: Path) -> None:
    header = "query;document;rating;;\n"
    rows = "q1;d1;2;;\n;;;;\nq1;d2;;;\nno match;;;;\nq1;d3;0;;;;\n;;;;\n"
    path = written(tmp_path / "q.csv", header + rows)
    assert load_qrels(path).to_dict() == {"q1": {"d1": 2, "d3": 0}}
    assert read_raw_table(path, "qrels").notes[0].endswith("unjudged: 2 of 4.")
    with pytest.raises(DataError, match=r"q\.csv:1: .*blank"):
        load_qrels(written(path, "query,document,rating\nq1,d1,\n"))
    with pytest.raises(DataError, match=r"a\.csv:3: score ''"):
        load_run(written(tmp_path / "a.csv", "query,document,score\nq1,d1,1\nq1,d2,\n"))


def test_judgments_of_pairs_have_grade_1(tmp_path: Path) -> None:
    path = written(tmp_path / "q.csv", "query,document\nq1,d1\nq1,d2\n")
    assert load_qrels(path).to_dict() == {"q1": {"d1": 1, "d2": 1}}
    assert "has grade 1" in read_raw_table(path, "qrels").notes[0]
    with pytest.raises(DataError, match="for the score"):
        load_run(path)


@pytest.mark.parametrize("name", ["distance", "_distance", "Distances", "dist", "l2_distance"])
def test_a_column_of_distances_is_better_where_it_is_smaller(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", f"query,document,{name}\nq1,d1,0.5\n")
    assert read_raw_table(path, "run").lower_is_better
    table = read_raw_table(written(path, f"query,document,{name},score\nq1,d1,0.5,3\n"), "run")
    assert not table.lower_is_better
    assert table.values == ["3"]


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_thousands_beside_whole_numbers_are_refused(delimiter: str, tmp_path: Path) -> None:
    text = "query;document;score\nq1;a;999\nq1;b;1,234\n".replace(";", delimiter)
    with pytest.raises(DataError, match=r"a\.csv:3: '1,234' .*thousands"):
        load_run(written(tmp_path / "a.csv", text))
