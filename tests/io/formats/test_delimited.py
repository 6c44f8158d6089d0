"""Comma- and tab-separated tables."""

import gzip
from pathlib import Path

import pytest

from fusion_bench.data.read_options import ReadOptions
from fusion_bench.errors import DataError, UnknownNameError
from fusion_bench.io.formats import text_tables
from fusion_bench.io.load_records import load_qrels, load_run
from fusion_bench.io.raw_files import FileLayout
from tests.io.files import written

BEIR = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td3\t1\n"
GRADES = {"q1": {"d1": 2, "d2": 0}, "q2": {"d3": 1}}


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


def test_headers_and_columns_of_trec(tmp_path: Path) -> None:
    path = written(tmp_path / "q.csv", "docno,iteration,rel,qid\nd1,0,3,q1\n")
    assert load_qrels(path).to_dict() == {"q1": {"d1": 3}}
    path = written(tmp_path / "q.tsv", "query-1\t0\td1\t1\nquery-1\t0\td2\t0\n")
    assert load_qrels(path).to_dict() == {"query-1": {"d1": 1, "d2": 0}}
    run = written(tmp_path / "r.tsv", "q1\tQ0\td1\t1\t0.5\ttag\n")
    assert load_run(run).to_dict() == {"q1": {"d1": 0.5}}
    for suffix in ("csv", "tsv"):
        run = written(tmp_path / f"r.{suffix}", "q1 Q0 d1 1 0.5 tag\nq1 Q0 d2 2 0.25 tag\n")
        assert load_run(run).to_dict() == {"q1": {"d1": 0.5, "d2": 0.25}}
        qrels = written(tmp_path / f"q.{suffix}", "q1 0 d1 1\n")
        assert load_qrels(qrels).to_dict() == {"q1": {"d1": 1}}


@pytest.mark.parametrize("large_file", [1, 1 << 20])
@pytest.mark.parametrize("name", ["r.csv", "r.tsv", "r.txt"])
def test_scores_that_count_down_are_never_taken_for_ranks(
    name: str, large_file: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_tables, "LARGE_FILE", large_file)
    lines = ["q1,d1,2", "q1,d2,1", "q2,d3,1"]
    text = "".join(f"{line}\n" for line in lines)
    path = written(tmp_path / name, text if name == "r.csv" else text.replace(",", "\t"))
    with pytest.raises(DataError, match="column of three"):
        load_run(path)


def test_a_run_without_ranks_has_no_column_to_take_them_from(tmp_path: Path) -> None:
    path = written(tmp_path / "r.tsv", "qid\tdocid\tscore\nq1\td1\t1\n")
    with pytest.raises(DataError, match=r"r\.tsv: rank_from:"):
        load_run(path, read_options=ReadOptions(rank_from="column"))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            "qid,text,rel\nq1,a,1\n",
            ":1: no column",
        ),
        ("qid,docid,rel,rel\nq1,a,1,1\n", ":1: two columns .*'rel'"),
        ("qid,docid,rel\n\nq1,a,1\nq1,b\n", ":4: 2 columns, .* 3: qid"),
        ("qid,docid,rel\nq1,a,1\nq1,b,x\n", ":3: grade 'x'"),
        ("qid,docid,rel\nq1,a,1\nq1,a,2\n", ":3: document 'a'"),
        ("qid,docid,rel\nq1,,1\n", ":2: empty document id"),
        ("qid,docid,rel\n", ": the file"),
        ("", ": the file"),
        ('qid,docid,rel\nq1,"a,1\nq1,b,1\n', ":2: not a table"),
        ('qid,docid,rel\nq1,"a,1\nq1,"b,1\n', ":2: not a table"),
        ('qid,docid,rel\nq1,"a\nb",1\n', ":2: a quoted cell"),
        ("qid,docid,rel\nq1,a\rb,1\n", ":2: not a table"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(content: str, problem: str, tmp_path: Path) -> None:
    path = written(tmp_path / "q.csv", content)
    with pytest.raises(DataError, match=rf"q\.csv{problem}"):
        load_qrels(path)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_the_delimiter_is_what_splits_the_header_into_known_names(
    delimiter: str, suffix: str, tmp_path: Path
) -> None:
    lines = ["query", "doc", "relevance"], ["a query", "d1", "2.0"]
    text = "".join(delimiter.join(cells) + "\n" for cells in lines)
    path = written(tmp_path / f"q{suffix}", text)
    assert load_qrels(path).to_dict() == {"a query": {"d1": 2}}
    layout = FileLayout(columns={"query": "Q", "document": "D", "grade": "G"})
    path.write_text(text.replace("query", "Q", 1).replace("doc", "D").replace("relevance", "G"))
    assert load_qrels(path, layout=layout).to_dict() == {"a query": {"d1": 2}}


def test_names_ids_and_delimiters_of_the_file_s_own(tmp_path: Path) -> None:
    path = written(tmp_path / "q.csv", "query;doc,a,b,c,d;relevance;document\na,b;x;1;d\n")
    assert load_qrels(path).to_dict() == {"a,b": {"d": 1}}
    path = written(tmp_path / "q.csv", "search term,document_url,rating\nred shoes,/a,3\n")
    own = {"query": "Search Term ", "document": "document_url", "grade": "rating"}
    assert load_qrels(path, layout=FileLayout(columns=own)).to_dict() == {"red shoes": {"/a": 3}}
    path = written(tmp_path / "a.csv", "query,qid,document,doc_id,score\nred,q1,a shoe,d1,2\n")
    assert load_run(path).to_dict() == {"q1": {"d1": 2.0}}


def test_a_run_of_ranks_alone_keeps_their_order(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "query,document,rank\nq1,d2,2\nq1,d1,1\nq1,d4,4\n")
    assert load_run(path).to_dict() == {"q1": {"d1": 3.0, "d2": 2.0, "d4": 1.0}}
    by_column = load_run(path, read_options=ReadOptions(rank_from="column"))
    assert by_column.ranks.tolist() == [1, 2, 4]
    path.write_text("query,document,rank,bm25\nq1,d1,0,9\nq1,d2,1,3\n")
    with pytest.raises(DataError, match=r"columns: \{score: bm25\}"):
        load_run(path)  # the other column may be the score
    ranks = load_run(path, layout=FileLayout(columns={"rank": "rank"}))
    assert ranks.to_dict() == {"q1": {"d1": 2.0, "d2": 1.0}}


@pytest.mark.parametrize(
    ("header", "suggestion"),
    [
        ("'q': x,docid,rel", "query: '''q'': x'}"),
        ("query:1,docid,rel", "query: 'query:1'}"),
        ("[query],docid,rel", "query: '[query]'}"),
    ],
)
def test_unknown_names_are_said_with_the_columns_that_read_them(
    header: str, suggestion: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "q.csv", f"{header}\nq1,d1,2\n")
    with pytest.raises(DataError) as caught:
        load_qrels(path)
    said = str(caught.value)
    assert said.startswith(f"{path}:1: no column")
    assert f"(found: {header.replace(',', ', ')}; allowed names: " in said
    assert f"columns: {{{suggestion}" in said


@pytest.mark.parametrize("name", ["position", "l2", "placement"])
def test_a_column_that_rises_is_never_proposed_as_a_score(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", f"qid,docid,{name}\nq1,d1,1\nq1,d2,5\nq2,d1,1\n")
    with pytest.raises(DataError) as caught:
        load_run(path)
    assert f"score: {name}" not in str(caught.value)
    assert ("columns: {rank: position}" in str(caught.value)) == (name == "position")


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"grade": "points"}, r":1: columns\.grade: .*'point'"),
        ({"query": "z"}, r":1: columns\.query: .*'z'"),
    ],
)
def test_a_column_that_is_not_there(columns: dict[str, str], problem: str, tmp_path: Path) -> None:
    path = written(tmp_path / "q.csv", "qid,docid,rel,point\nq1,d1,2,x\n")
    with pytest.raises(DataError, match=problem):
        load_qrels(path, layout=FileLayout(columns=columns))


@pytest.mark.parametrize("content", ["q1,0,d1,x\n", "q1,a,d1,high,0.5,t\n", "a,b,c,d\n"])
def test_a_table_of_unknown_names_is_never_taken_for_trec(content: str, tmp_path: Path) -> None:
    path = written(tmp_path / "q.csv", content)
    for load in (load_qrels, load_run):
        with pytest.raises(DataError, match=r"q\.csv:1: "):
            load(path)


def test_a_suggestion_keeps_the_columns_that_are_named(tmp_path: Path) -> None:
    path = written(tmp_path / "q.csv", "a,page,stars\nq1,d1,2\n")
    with pytest.raises(DataError, match=r"query: a, document: page"):
        load_qrels(path, layout=FileLayout(columns={"query": "a"}))
    with pytest.raises(UnknownNameError, match=r"columns:.*'doc' .known:"):
        FileLayout(columns={"doc": "page"})


def test_a_decimal_comma_is_named_with_the_number_to_write(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "qid|docid|score\nq1|d1|0,5\n")
    with pytest.raises(DataError, match=r"a\.csv:2:.*'0,5'.*number:"):
        load_run(path)
    path = written(tmp_path / "a.tsv", "query\tdocument\tscore\nq1\ta\t2.5\nq1\tb\t1,5\n")
    with pytest.raises(DataError, match=r"'1,5'.*write '1\.5'"):
        load_run(path)


# ── decimal commas, as a spreadsheet of many countries writes them


def test_grades_with_decimal_commas(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "\ufeffquery;document;grade\r\nq1;a;1,0\r\nq1;b;0,0\r\n")
    assert load_qrels(path).to_dict() == {"q1": {"a": 1, "b": 0}}


@pytest.mark.parametrize("cells", [("1,5", "2.5"), ("1,234,567", "3"), ("1.234,5", "1")])
def test_a_comma_that_may_separate_thousands_is_refused(
    cells: tuple[str, str], tmp_path: Path
) -> None:
    rows = "".join(f"q1;d{i};{cell}\n" for i, cell in enumerate(cells))
    with pytest.raises(DataError, match=cells[0]):
        load_run(written(tmp_path / "a.csv", f"query;document;score\n{rows}"))
