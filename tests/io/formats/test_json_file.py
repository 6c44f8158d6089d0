"""JSON Lines: runs, qrels and queries."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.records import Query
from fusion_bench.errors import DataError
from fusion_bench.io.formats import read_raw_table
from fusion_bench.io.formats.json_file import read_uniform_objects
from fusion_bench.io.json_objects import JsonItem, load_queries
from fusion_bench.io.load_records import load_qrels, load_run
from fusion_bench.io.raw_files import NO_COLUMNS
from tests.io.files import written

RUN = (
    '{"query": "q1", "document": "d1", "score": 0.5, "rank": 1}\n'
    '{"qid": "q1", "docid": "d2", "score": "0.75", "rank": 2, "more": null}\n'
)


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.jsonl.gz"])
@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\n\n"])
def test_a_run(name: str, zipped: bool, ending: str, tmp_path: Path) -> None:
    data = RUN.replace("\n", ending).encode()
    path = written(tmp_path / name, gzip.compress(data) if zipped else b"\xef\xbb\xbf" + data)
    assert load_run(path).to_dict() == {"q1": {"d2": 0.75, "d1": 0.5}}
    by_column = load_run(path, read_options=ReadOptions(rank_from="column"))
    assert list(by_column.to_dict()["q1"]) == ["d1", "d2"]


def test_ids_that_are_numbers_and_ranks_that_are_missing(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", RUN.replace(', "rank": 2', ""))
    with pytest.raises(DataError, match="no rank column"):
        load_run(path, read_options=ReadOptions(rank_from="column"))
    path = written(tmp_path / "q.jsonl", '{"query_id": 7, "doc_id": "ü", "relevance": 2}\n')
    assert load_qrels(path).to_dict() == {"7": {"ü": 2}}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "not JSON: "),
        ("[1]", r"a JSON object"),
        ("[" * 100_000, "not JSON: "),
        ('{"query": "q", "document": "d", "score": ' + "1" * 5000 + "}", "not JSON: "),
        ('{"query": "q", "score": 1}', "no column"),
        ('{"query": null, "document": "d", "score": 1}', "query must be"),
        ('{"query": "q", "document": 1.5, "score": 1}', "document must be"),
        ('{"query": "q", "document": "\\ud800", "score": 1}', "document must be"),
        ('{"query": "q", "document": "", "score": 1}', "empty document id"),
        ('{"query": "q", "document": "d", "score": null}', "score None"),
        ('{"query": "q", "document": "d", "score": NaN}', "score nan"),
        ('{"query": "q", "document": "d", "score": 1e999}', "score inf"),
        (
            '{"query": "q", "document": "d", "score": 1' + "0" * 400 + "}",
            "score 10*…",
        ),
    ],
    ids=lambda value: value[:50],
)
def test_a_line_that_cannot_be_read_is_named(line: str, problem: str, tmp_path: Path) -> None:
    good = '{"query": "q", "document": "good", "score": 1}'
    path = written(tmp_path / "a.jsonl", f"{good}\n{line}\n")
    with pytest.raises(DataError, match=rf"a\.jsonl:2: {problem}"):
        load_run(path)


@pytest.mark.parametrize("grade", ["true", "1.5", '"x"'])
def test_a_grade_is_a_whole_number(grade: str, tmp_path: Path) -> None:
    path = written(tmp_path / "q.jsonl", f'{{"qid": "q", "docid": "d", "rel": {grade}}}\n')
    with pytest.raises(DataError, match=r"q\.jsonl:1: grade .*number"):
        load_qrels(path)


@pytest.mark.parametrize("blank", ["null", '""', "NaN"])
def test_a_blank_grade_is_unjudged(blank: str, tmp_path: Path) -> None:
    rows = [f'{{"qid": "q", "docid": "d{i}", "rel": {rel}}}\n' for i, rel in enumerate([2, blank])]
    path = written(tmp_path / "q.jsonl", "".join(rows))
    assert load_qrels(path).to_dict() == {"q": {"d0": 2}}
    table = read_raw_table(path, "qrels")
    assert table.notes[0].endswith("unjudged: 1 of 2.")
    with pytest.raises(DataError, match=r"q\.jsonl: .*blank"):
        load_qrels(written(path, rows[1]))


def test_queries_with_and_without_what_may_be_known(tmp_path: Path) -> None:
    path = written(
        tmp_path / "q.jsonl",
        '{"_id": "q1", "text": "who?", "metadata": {}}\n\n'
        '{"id": 2, "type": "local", "intent": "find", '
        '"confidence": 0, "group": 7, "split": "dev"}\n'
        '{"id": "q3", "confidence": 1, "type": null}\n',
    )
    assert load_queries(path) == {
        "q1": Query("q1", text="who?"),
        "2": Query("2", None, "local", "find", 0, "7", "dev"),
        "q3": Query("q3", confidence=1),
    }


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"text": "no id"}', r"a query .*found: text"),
        ("{}", r"a query .*found: nothing"),
        ('{"id": ""}', "a query needs"),
        ('{"id": null}', "a query needs"),
        ('{"id": "q1"}', "query 'q1' appears twice"),
        ('{"id": ["q"]}', "id must be"),
        ('{"id": "q", "group": ["g"]}', "group must be"),
        ('{"id": "q", "text": "\\udc00"}', "text must be"),
        ('{"id": "q", "confidence": -0.1}', "confidence .* given -0.1"),
        ('{"id": "q", "confidence": NaN}', "confidence .* given nan"),
        ('{"id": "q", "confidence": "1"}', "confidence .* given '1'"),
        ('{"id": "q", "confidence": true}', "confidence .* given True"),
    ],
)
def test_a_query_that_breaks_a_rule_is_named(line: str, problem: str, tmp_path: Path) -> None:
    path = written(tmp_path / "q.jsonl", '{"id": "q1"}\n' + line)
    with pytest.raises(DataError, match=rf"q\.jsonl:2: {problem}"):
        load_queries(path)


def test_a_file_without_a_query_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="file is empty"):
        load_queries(written(tmp_path / "q.jsonl", "\n \n"))


ROWS: list[dict[str, Any]] = [
    {"qid": "q1", "docno": "d1", "score": 2, "rank": 1},
    {"qid": "q1", "docno": "d2", "score": 1.5, "rank": 2},
    {"qid": "q2", "docno": "d1", "score": 7, "rank": 1},
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def is_uniform(rows: list[dict[str, Any]]) -> bool:
    options: dict[str, Any] = {"has_ranks": False, "columns": NO_COLUMNS}
    items = [JsonItem(line, row) for line, row in enumerate(rows, 1)]
    return read_uniform_objects(items, "run", **options) is not None


def test_other_rows_read_the_same_and_an_error_names_the_line(tmp_path: Path) -> None:
    mixed = [*ROWS[:2], {**ROWS[2], "more": None}]
    assert is_uniform(ROWS)
    assert not is_uniform(mixed)
    runs = [load_run(write(tmp_path / f"{n}.jsonl", rows)) for n, rows in enumerate((ROWS, mixed))]
    assert runs[0].digest() == runs[1].digest()
    path = write(tmp_path / "a.jsonl", [*ROWS, {**ROWS[0], "docno": "d9", "score": "high"}])
    with pytest.raises(DataError, match=r"a\.jsonl:4:.*'high'"):
        load_run(path)
    path = write(tmp_path / "b.jsonl", [{"qid": "q1", "doc": "d1"}])
    with pytest.raises(DataError, match=r"b\.jsonl:1: "):
        load_run(path)


@pytest.mark.parametrize(
    "row",
    [{"qid": 1}, {"docno": None}, {"docno": True}, {"qid": "\ud800"}, {"qid": ["q1"]}],
)
def test_other_ids_are_read_one_by_one(row: dict[str, Any]) -> None:
    assert not is_uniform([*ROWS, {**ROWS[0], **row}])
