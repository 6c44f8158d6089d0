"""What an answer must hold: its whole hits, one query a list, keys that do not contradict."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.errors import DataError
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.formats import read_raw_table
from fusion_bench.io.formats._json_queries import read_requests
from fusion_bench.io.load_records import load_qrels, load_run
from fusion_bench.io.raw_files import FileLayout
from tests.io.files import written

HITS = {"hits": {"hits": [{"_id": "d1", "_score": 2.0}, {"_id": "d2", "_score": 1.0}]}}
FOUND = {"d1": 2.0, "d2": 1.0}
LIST = [{"id": "d1", "score": 2.0}, {"id": "d2", "score": 1.0}]


def refuse(path: Path, content: Any) -> str:  # noqa: ANN401 - any JSON
    with pytest.raises(DataError) as error:
        load_run(written(path, content if isinstance(content, str) else json.dumps(content)))
    assert str(error.value).startswith(f"{path}")
    return str(error.value)


@pytest.mark.parametrize(
    ("item", "says"),
    [
        ({"queries": ["q1"], "responses": [HITS], "error": "boom"}, "states an error"),
        ({"queries": ["q1"], "responses": [HITS], "timed_out": True}, "timed out"),
        ({"queries": ["q1"], "response": {"responses": [HITS], "errors": ["x"]}}, "an error"),
        ({"queries": ["q1", "q1"], "responses": [HITS, HITS]}, "'q1' has 2 answers"),
        (
            {"queries": ["q1"], "qids": ["q2"], "responses": [HITS]},
            "queries and qids",
        ),
        ({"queries": ["q1", "q2"], "responses": [HITS, {}]}, "response 2: no list"),
        (
            {"qid": "q1", "response": {**HITS, "_shards": {"total": 3, "successful": 2}}},
            "shard is missing",
        ),
        ({"qid": "q1", "response": {**HITS, "terminated_early": True}}, "ended early"),
        ({"qid": "q1", "response": {**HITS, "status": 429}}, "its status is 429"),
        ({"qid": "q1", "status": 503, "hits": LIST}, "its status is 503"),
        (
            {"qid": "q1", "hits": [LIST[0], {"id": "d2", "distance": 1.0}]},
            "distances and scores",
        ),
        (
            {"qid": "q1", "hits": [{**LIST[0], "docid": "x"}]},
            "hold the document",
        ),
        (
            [{"query": "q1", "document": "d", "score": 1, "Score": 2}],
            "hold the score",
        ),
        ({"qid": "q1", "response": {**HITS, "body": {"hits": []}}, "is_partial": 1}, "partial"),
    ],
)
def test_an_answer_that_contradicts_itself_is_refused(
    item: Any,  # noqa: ANN401 - any JSON
    says: str,
    tmp_path: Path,
) -> None:
    assert says in refuse(tmp_path / "a.json", item)


def test_a_list_of_a_folder_is_of_the_query_that_its_file_names(tmp_path: Path) -> None:
    for inner in ({"qid": "q1"}, {"query": "the text of q1"}):
        written(tmp_path / "q1.json", json.dumps({**inner, "hits": LIST}))
        assert load_run(tmp_path).to_dict() == {"q1": FOUND}
    written(tmp_path / "q1.json", json.dumps({"qid": "q7", "hits": LIST}))
    with pytest.raises(DataError, match=r"/q1\.json: qid 'q7' .*'q1'"):
        load_run(tmp_path)
    written(tmp_path / "q1.json", "{}")
    with pytest.raises(DataError, match=r"/q1\.json: "):
        load_run(tmp_path)


def test_joined_lists_are_said(tmp_path: Path) -> None:
    lines = [json.dumps({"qid": "q1", "hits": [hit]}) for hit in LIST]
    path = written(tmp_path / "a.jsonl", "\n".join([*lines, lines[0].replace("q1", "q2")]))
    assert load_run(path).to_dict() == {"q1": FOUND, "q2": {"d1": 2.0}}
    assert read_raw_table(path, "run").notes[0].startswith("1 queries have")


@pytest.mark.parametrize("key", ["distance", "_distance", "dist", "cosine_distance"])
def test_a_distance_is_lowest_for_the_best(key: str, tmp_path: Path) -> None:
    hits = [{"id": "d1", key: 0.1}, {"id": "d2", key: 0.4}]
    path = written(tmp_path / "a.jsonl", json.dumps({"qid": "q1", "hits": hits}))
    table = read_raw_table(path, "run")
    assert table.lower_is_better
    assert table.values == [0.1, 0.4]


def test_the_order_of_hits_says_what_a_name_does_not(tmp_path: Path) -> None:
    for scores, lower in (([0.9, 0.5], False), ([0.5, 0.9], True), ([0.5, 0.5], False)):
        hits = [{"id": f"d{i}", "distance": score} for i, score in enumerate(scores)]
        item = {"qid": "q1", "response": {"code": 0, "data": hits}}
        table = read_raw_table(written(tmp_path / "a.jsonl", json.dumps(item)), "run")
        assert table.lower_is_better is lower


def test_an_id_goes_before_a_text_beside_it(tmp_path: Path) -> None:
    hits = [{"document": "a text", "id": "d1", "score": 1.0}]
    path = written(tmp_path / "a.jsonl", json.dumps({"qid": "q1", "hits": hits}))
    assert load_run(path).to_dict() == {"q1": {"d1": 1.0}}


# ── requests

BATCH = json.dumps({"result": [{"points": LIST}, {"points": LIST[:1]}]})
SEARCHES = [{"query": {"match": {"title": text}}} for text in ("red shoes", "tv")]


@pytest.mark.parametrize(
    ("requests", "texts"),
    [
        ("q1\nq2\n", {}),
        ("red shoes\ntv\n", {"red shoes": "q1", "tv": "q2"}),
        ('{"id": "q1"}\n{"qid": "q2", "text": "tv"}\n', {}),
        ("".join(f"{{}}\n{json.dumps(s)}\n" for s in SEARCHES), {"red shoes": "q1", "tv": "q2"}),
        (
            "".join(
                f'{{"index": "a"}}\n{{"query": {{"term": {{"_name": "{q}", "a": 1}}}}}}\n'
                for q in ("q1", "q2")
            ),
            {},
        ),
    ],
)
def test_requests_name_the_queries_of_a_batch(
    requests: str, texts: dict[str, str], tmp_path: Path
) -> None:
    asked = read_requests(written(tmp_path / "requests.ndjson", requests), texts)
    assert asked == ("q1", "q2")
    layout = FileLayout(requests=asked)
    batch = written(tmp_path / "a.json", BATCH)
    assert load_run(batch, layout=layout).to_dict() == {"q1": FOUND, "q2": {"d1": 2.0}}
    lines = "".join(json.dumps({"hits": {"hits": each}}) + "\n" for each in (LIST, LIST[:1]))
    path = written(tmp_path / "a.jsonl", lines)
    assert load_run(path, layout=layout).to_dict() == {"q1": FOUND, "q2": {"d1": 2.0}}


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (("q1",), "given: 1 ids"),
        (("q1", "q1"), "'q1' has 2 answers"),
        (("q1", "q2", "q3"), "3 requests"),
    ],
)
def test_other_requests_are_refused(asked: tuple[str, ...], says: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", BATCH)
    with pytest.raises(DataError) as error:
        load_run(path, layout=FileLayout(requests=asked))
    assert says in str(error.value)
    table = written(tmp_path / "a.csv", "query,document,score\nq1,d1,1\n")
    with pytest.raises(DataError, match=r"a\.csv: requests: "):
        load_run(table, layout=FileLayout(requests=asked))


@pytest.mark.parametrize(
    ("requests", "says"),
    [
        ("", ": the file"),
        ("\n".join(map(json.dumps, SEARCHES)), ":1: no query"),
        ('{"id": true}', ":1: query must"),
    ],
)
def test_requests_that_name_no_query(requests: str, says: str, tmp_path: Path) -> None:
    path = written(tmp_path / "requests.ndjson", requests)
    with pytest.raises(DataError) as error:
        read_requests(path, {})
    assert says in str(error.value)


def test_a_list_of_ids_is_binary_gold_and_other_layouts_name_what_they_hold(tmp_path: Path) -> None:
    gold = written(tmp_path / "gold.json", '{"q1": ["d1", "d2"]}')
    assert load_qrels(gold).to_dict() == {"q1": {"d1": 1, "d2": 1}}
    request = {"requests": [{"id": "q1", "ratings": [{"_id": "d1", "rating": 2}]}]}
    assert "ranked list" in refuse(tmp_path / "a.json", request)


def test_a_file_of_no_known_layout_points_to_the_table(tmp_path: Path) -> None:
    said = refuse(tmp_path / "a.json", {"a": {"b": {"c": {}}}})
    assert "found: a" in said
    assert "fusion-bench formats" in said


def test_the_key_requests_of_a_list_finds_queries_by_their_text(tmp_path: Path) -> None:
    written(tmp_path / "a.json", BATCH)
    written(tmp_path / "requests.ndjson", "".join(f"{{}}\n{json.dumps(s)}\n" for s in SEARCHES))
    written(
        tmp_path / "queries.jsonl",
        '{"id": "q1", "text": "red shoes"}\n{"id": "q2", "text": "tv"}\n',
    )
    written(tmp_path / "qrels.txt", "q1 0 d1 1\nq2 0 d1 1\n")
    spec = "name: mine\nqrels: qrels.txt\nqueries: queries.jsonl\nruns:\n"
    spec += "  a: {path: a.json, requests: requests.ndjson}\n"
    dataset = load_dataset(written(tmp_path / "dataset.yaml", spec))
    assert dataset.runs["a"].to_dict() == {"q1": FOUND, "q2": {"d1": 2.0}}


SENT = {"q1": ["d2", "d1"], "q2": ["d3", "d1"]}
#: One answer of each of several rerankers to a query's two documents, the second one best.
RERANKED = [
    {"rankings": [{"index": 1, "logit": 2.0}, {"index": 0, "logit": 1.0}]},
    {"success": True, "result": {"response": [{"id": 1, "score": 2.0}, {"id": 0, "score": 1.0}]}},
    [{"corpus_id": 1, "score": 2.0}, {"corpus_id": 0, "score": 1.0}],
    [{"index": 1, "score": 2.0}, {"index": 0, "score": 1.0}],
]


@pytest.mark.parametrize("answer", RERANKED)
@pytest.mark.parametrize("key", ["responses", "response"])
def test_a_batch_of_any_layout_is_read(tmp_path: Path, answer: object, key: str) -> None:
    batch = {"queries": [*SENT], "ids": [*SENT.values()], key: [answer, answer]}
    path = tmp_path / "a.json"
    path.write_text(json.dumps(batch))
    run = load_run(path, name="a").to_dict()
    assert {query: list(documents) for query, documents in run.items()} == {
        "q1": ["d1", "d2"],
        "q2": ["d1", "d3"],
    }
    path.write_text(json.dumps({**batch, "queries": ["q1", "q1"]}))
    with pytest.raises(DataError, match="'q1' has 2 answers"):
        load_run(path, name="a")
    path.write_text(json.dumps({**batch, key: [answer, {"error": "late"}]}))
    with pytest.raises(DataError, match="states an error"):
        load_run(path, name="a")


def test_a_grade_that_is_no_number_of_json_is_unjudged(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"qid": "q", "docno": name, "grade": grade} for name, grade in GRADES.items()]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert load_qrels(path).to_dict() == {"q": {"d1": 1}}


GRADES = {"d1": 1, "d2": math.nan, "d3": None, "d4": ""}


@pytest.mark.parametrize("key", ["run", "results"])
def test_the_lists_of_all_queries_may_stand_under_a_key(tmp_path: Path, key: str) -> None:
    path = written(tmp_path / "a.json", json.dumps({"name": "bm25", key: {"q": FOUND}}))
    assert load_run(path).to_dict() == {"q": FOUND}
