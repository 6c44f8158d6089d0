"""Answers of search engines and rerankers, and what other libraries write."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.run import Run
from fusion_bench.errors import AlignmentError, DataError
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.dataset_cache import Cache
from fusion_bench.io.load_records import load_qrels, load_run
from fusion_bench.io.raw_files import FileLayout
from tests.io.files import written

ELASTICSEARCH = {
    "took": 5,
    "timed_out": False,
    "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
    "hits": {
        "total": {"value": 2, "relation": "eq"},
        "max_score": 1.5,
        "hits": [
            {"_index": "shop", "_id": "d1", "_score": 1.5, "_source": {"sku": "s1", "rank": 9}},
            {"_index": "shop", "_id": "d2", "_score": 0.5, "_source": {"sku": "s2", "rank": 7}},
        ],
    },
}
OPENSEARCH = {**ELASTICSEARCH, "phase_results": {}, "hits": {**ELASTICSEARCH["hits"]}}  # type: ignore[dict-item]
POINTS = [
    {"id": "d1", "version": 0, "score": 1.5, "payload": {"sku": "s1"}},
    {"id": "d2", "version": 0, "score": 0.5, "payload": {"sku": "s2"}},
]
QDRANT = {"result": {"points": POINTS}, "status": "ok", "time": 0.001}
QDRANT_SEARCH = {"result": POINTS, "status": "ok", "time": 0.001}
QDRANT_CLIENT = {"points": POINTS}
PINECONE = {"matches": [{"id": "d1", "score": 1.5}, {"id": "d2", "score": 0.5}], "namespace": ""}
SOLR = {"numFound": 2, "start": 0, "docs": [{"id": "d1", "score": 1.5}, {"id": "d2", "score": 0.5}]}
NESTED = {"hits": [{"docid": "d1", "score": 1.5}, {"docid": "d2", "score": 0.5}]}
COHERE = {
    "id": "07734bd2",
    "results": [
        {"index": 2, "relevance_score": 1.5},
        {"index": 0, "relevance_score": 0.5, "document": {"text": "…"}},
    ],
    "meta": {"api_version": {"version": "2"}},
}
VOYAGE = {
    "object": "list",
    "data": [
        {"relevance_score": 1.5, "index": 2},
        {"relevance_score": 0.5, "index": 0, "document": "a text"},
    ],
    "model": "rerank-2",
    "usage": {"total_tokens": 26},
}
JINA = {"model": "m", "usage": {"total_tokens": 1}, "results": COHERE["results"]}
TEI = [{"index": 2, "score": 1.5}, {"index": 0, "score": 0.5}]
ENGINES = {
    "elasticsearch": ELASTICSEARCH,
    "opensearch": OPENSEARCH,
    "qdrant": QDRANT,
    "qdrant search": QDRANT_SEARCH,
    "qdrant client": QDRANT_CLIENT,
    "pinecone": PINECONE,
    "solr": SOLR,
    "nested": NESTED,
    "bare list": POINTS,
    "pairs": [["d1", 1.5], ["d2", 0.5]],
}
RERANKERS = {"cohere": COHERE, "voyage": VOYAGE, "jina": JINA, "tei": TEI}
FOUND = {"d1": 1.5, "d2": 0.5}
IDS = ["d2", "x", "d1"]


def write_lines(path: Path, *items: Any) -> Path:  # noqa: ANN401 - any JSON
    return written(path, "".join(json.dumps(item) + "\n" for item in items))


@pytest.mark.parametrize("name", ENGINES)
def test_an_answer_of_an_engine_as_lines(name: str, tmp_path: Path) -> None:
    items = [{"qid": query, "response": ENGINES[name]} for query in ("q1", "q2")]
    path = write_lines(tmp_path / "a.jsonl", *items)
    assert load_run(path).to_dict() == {"q1": FOUND, "q2": FOUND}
    (tmp_path / "a.json").write_text(json.dumps(items, indent=2))
    assert load_run(tmp_path / "a.json").to_dict() == {"q1": FOUND, "q2": FOUND}
    answer = ENGINES[name]
    if isinstance(answer, dict):
        path = write_lines(path, {"query_id": 1, **answer})
        assert load_run(path).to_dict() == {"1": FOUND}


@pytest.mark.parametrize("name", [*ENGINES, "documents"])
def test_one_answer_a_file_of_a_folder(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "answers"
    folder.mkdir()
    answer = json.dumps(ENGINES.get(name, FOUND))
    (folder / "q 1.json").write_text(answer)
    (folder / "q.2.json.gz").write_bytes(gzip.compress(answer.encode()))
    (folder / "README.md").write_text("not an answer")
    (folder / "._q 1.json").write_bytes(b"\0\xff")  # beside each file on disks that macOS wrote
    run = load_run(folder)
    assert run.to_dict() == {"q 1": FOUND, "q.2": FOUND}
    assert run.name == "answers"


@pytest.mark.parametrize("name", RERANKERS)
def test_an_answer_of_a_reranker_needs_the_ids_that_were_sent(name: str, tmp_path: Path) -> None:
    item = {"qid": "q1", "ids": IDS, "response": RERANKERS[name]}
    assert load_run(write_lines(tmp_path / "a.jsonl", item)).to_dict() == {"q1": FOUND}
    (tmp_path / "a").mkdir()
    write_lines(tmp_path / "a/q7.json", {"ids": IDS, "response": RERANKERS[name]})
    assert load_run(tmp_path / "a").to_dict() == {"q7": FOUND}
    path = write_lines(tmp_path / "a.jsonl", {"qid": "q7", "response": RERANKERS[name]})
    with pytest.raises(DataError) as caught:
        load_run(path)
    said = str(caught.value)
    assert said.startswith(f"{path}:1: ")
    wrapper = said[said.index("{") :].replace("{…}", json.dumps(RERANKERS[name]))
    item = json.loads(wrapper.replace(', "d2", …]', ', "x", "d2"]').replace("…", ""))
    assert load_run(write_lines(path, item)).to_dict() == {"q7": {"d2": 1.5, "d1": 0.5}}
    bare = RERANKERS[name]
    if isinstance(bare, dict):
        with pytest.raises(DataError, match=r'a\.jsonl:1:.*"ids": \["d1"'):
            load_run(write_lines(path, bare))


def test_the_texts_that_were_sent_are_no_list(tmp_path: Path) -> None:
    sent = {"query": "q", "documents": ["a text", "b", "c"], "ids": IDS}
    path = write_lines(tmp_path / "a.jsonl", {**sent, "qid": "q1", "data": VOYAGE["data"]})
    assert load_run(path).to_dict() == {"q1": FOUND}


@pytest.mark.parametrize("index", [3, -1, 0.5, "1", None, True])
def test_an_index_outside_of_the_ids(index: object, tmp_path: Path) -> None:
    hits = [{"index": 0, "relevance_score": 1}, {"index": index, "relevance_score": 1}]
    item = {"qid": "q1", "ids": IDS, "response": {"results": hits}}
    with pytest.raises(DataError, match=r"a\.jsonl:1:.*3"):
        load_run(write_lines(tmp_path / "a.jsonl", item))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"q1": {"d1": 2, "d2": 0}, "q2": {"d3": 1}}, {"q1": {"d1": 2, "d2": 0}, "q2": {"d3": 1}}),
        ({"q1": [["d1", 2], ["d2", 1.0]], "q2": []}, {"q1": {"d1": 2, "d2": 1}}),
        ({"hits": {"d1": 2}, "data": {"d2": 1}, "x": {}}, {"hits": {"d1": 2}, "data": {"d2": 1}}),
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_queries_to_documents_as_ranx_writes_them(
    content: Any,  # noqa: ANN401 - any JSON
    expected: dict[str, dict[str, int]],
    indent: int | None,
    tmp_path: Path,
) -> None:
    for name in ("a.json", "a.jsonl"):
        (tmp_path / name).write_text(json.dumps(content, indent=indent))
        assert load_qrels(tmp_path / name).to_dict() == expected
        assert load_run(tmp_path / name).to_dict() == expected


def test_places_in_a_list_are_ranks_and_lists_without_scores_keep_them(tmp_path: Path) -> None:
    items: list[Any] = [
        {"qid": "q1", "hits": ["d1", "d2", "d3"]},
        {"qid": "q2", "hits": [{"id": "d2"}, {"id": "d1"}]},
        {"qid": "q3", "hits": [{"_id": "d1", "_score": None}]},
    ]
    run = load_run(write_lines(tmp_path / "a.jsonl", *items))
    assert run.to_dict() == {
        "q1": {"d1": 3.0, "d2": 2.0, "d3": 1.0},
        "q2": {"d2": 2.0, "d1": 1.0},
        "q3": {"d1": 1.0},
    }
    with pytest.raises(DataError, match=r"no (column|grades)"):
        load_qrels(tmp_path / "a.jsonl")
    hits = [{"id": "d1", "score": 1}, {"id": "d2", "score": 3}]
    path = write_lines(tmp_path / "a.jsonl", {"qid": "q", "hits": hits})
    assert list(load_run(path).to_dict()["q"]) == ["d2", "d1"]
    by_column = load_run(path, read_options=ReadOptions(rank_from="column"))
    assert list(by_column.to_dict()["q"]) == ["d1", "d2"]


@pytest.mark.parametrize(
    ("item", "columns"),
    [
        (
            {"qid": "q", "hits": [{"sku": "s1", "points": 2}]},
            {"document": "sku", "score": "points"},
        ),
        ({"term": "q", "hits": [{"id": "s1", "score": 2}]}, {"query": "term"}),
        ({"qid": "q", "found": [{"id": "s1", "score": 2}]}, {}),
        ({"qid": "q", "response": {"result": POINTS[:1]}}, {"document": "payload.sku"}),
        (
            {"qid": "q", "response": ELASTICSEARCH},
            {"document": "_source.sku", "rank": "_source.rank"},
        ),
    ],
)
def test_keys_of_the_file_s_own(
    item: dict[str, Any], columns: dict[str, str], tmp_path: Path
) -> None:
    run = load_run(write_lines(tmp_path / "a.jsonl", item), layout=FileLayout("jsonl", columns))
    assert next(iter(run.to_dict()["q"])) == "s1"


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ({"a": {"b": {"c": {}}}}, r":1: JSON .*found: a\)"),
        ({"status": {"error": "x"}, "time": 0}, ":1: JSON .*found: status"),
        ({"term": "q", "doc": 1, "points": 2}, r"\{query: term, score: points"),
        ({"qid": "q", "hits": [{"sku": 1, "points": 2}]}, r"\{document: sku, score: poi"),
        ({"qid": "q", "hits": [{"id": 1, "points": 2}]}, "score .*e: points"),
        ({"qid": "q", "hits": [{"id": [1], "score": 2}]}, "must be text"),
        ({"qid": "q", "hits": [["d", 1, 2]]}, r'\["d", 1, 2\] is no pair'),
        ({"qid": "q", "hits": [{"id": "d", "score": "x"}]}, "score 'x'"),
        ({"qid": "q", "hits": [{"id": "d", "score": 1}, "e"]}, "score None"),
        ({"term": "q", "hits": ["d"]}, r"found: term, hits\).*columns"),
        ({"term": "q", "hits": [{"sku": "d", "points": 1}]}, r"\{query: term, document: sku"),
        ({"hits": [{"id": "d", "score": 1}]}, r"query .found: hits"),
        ({"qid": ["q"], "hits": ["d"]}, "names no query"),
        ({"q1": {"d1": 1}, "q2": {"d1": "x"}}, "query 'q2': score"),
        ({"q1": {"d1": 1}, "q2": {"": 1}}, "'q2': empty document"),
        ({"qid": "q", "response": {**ELASTICSEARCH, "timed_out": True}}, "search timed out"),
        ({"qid": "q", "response": {**ELASTICSEARCH, "_shards": {"failed": 1}}}, "a shard failed"),
        ({"qid": "q", "response": {**ELASTICSEARCH, "timed_out": "true"}}, "search timed out"),
        ({"qid": "q", "response": {**QDRANT, "is_partial": True}}, "answer is partial"),
        ({"qid": "q", "response": ELASTICSEARCH, "is_partial": True}, "answer is partial"),
        ({"qid": "q", "response": ELASTICSEARCH, "is_running": 1}, "still running"),
        (
            {"qid": "q", "response": {**ELASTICSEARCH, "_clusters": {"skipped": "1"}}},
            "a cluster skipped",
        ),
        ({"qid": "q", "error": {"reason": "x"}, "hits": [["d1", 1]]}, "states an error"),
        ({"qid": "q", "response": {"errors": ["x"], "data": [["d1", 1]]}}, "states an error"),
        ({"qid": "q", "response": {"error": {"code": 429}}}, "states an error"),
        ({"qid": "q", "ids": ["a", 1, "1"], "response": TEI}, "ids: '1' appears twice"),
        ({"q1": {"d\0": 1}}, "'q1': .*holds NUL"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_read_is_named(
    item: dict[str, Any],
    problem: str,
    tmp_path: Path,
) -> None:
    path = write_lines(tmp_path / "a.jsonl", item)
    with pytest.raises(DataError, match=rf"a\.jsonl:1: .*{problem.removeprefix(':1: ')}") as caught:
        load_run(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"query": "q1",\n "document" "d2"}', ":2: not JSON: "),
        ("[\n1]", ": item 1: a JSON"),
        ('[{"query": "q", "document": "d", "score": "x"}]', ": item 1: score"),
        ("3", ":1: a JSON object"),
        ("{}", ": no column"),
        ("[]", ": the file"),
        ("{\n}", ": no column"),
        ("", ": the file"),
        ("[" * 100_000, ": not JSON: "),
    ],
    ids=lambda value: value[:30],
)
def test_a_document_that_cannot_be_read(content: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"a\.json(:1)?{problem}"):
        load_run(written(tmp_path / "a.json", content))


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({}, ": a folder"),
        ({"a.txt": "{}"}, ": a folder"),
        ({"q1.json": "{"}, "/q1.json:1: not JSON: "),
        ({"q1.json": '{"a": {"b": {}}}'}, "/q1.json: JSON of no"),
        ({"q1.json": "3"}, "/q1.json: JSON of no"),
        ({"q1.json": '[{"id": "d", "score": "x"}]'}, "/q1.json: score"),
        ({".json": '["d"]'}, ": a folder"),
        ({"q\udcff.json": '["d"]'}, ": q\udcff.json: its name"),
        ({"q1.json": '["d"]', "q1.JSON": '["e"]'}, ": q1.JSON and"),
        ({"q1.json": '{"hits": []}'}, ": the file"),
        ({"q1.json": '{"error": {"code": 429}}'}, "/q1.json: it states"),
        ({"q1.json": '{"is_partial": true, "d1": 1}'}, "/q1.json: the answer"),
    ],
)
def test_a_folder_that_cannot_be_read(files: dict[str, str], problem: str, tmp_path: Path) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(DataError) as caught:
        load_run(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}{problem}")


def test_whole_answers_and_queries_of_any_name_are_read(tmp_path: Path) -> None:
    whole = {"timed_out": "false", "is_partial": False, "is_running": 0, "error": None}
    answer = {**ELASTICSEARCH, **whole, "_clusters": {"skipped": 0, "partial": "0"}, "errors": []}
    path = write_lines(tmp_path / "a.jsonl", {"qid": "q", "response": answer})
    assert load_run(path).to_dict() == {"q": FOUND}
    names = dict.fromkeys(("error", "timed_out", "is_partial", "_shards"), FOUND)
    (tmp_path / "a.json").write_text(json.dumps(names))
    assert load_run(tmp_path / "a.json").to_dict() == names


def test_an_object_of_numbers_is_a_ranking_where_a_document_is_known(tmp_path: Path) -> None:
    folder = tmp_path / "answers"
    folder.mkdir()
    (folder / "q1.json").write_text('{"d1": 1.5, "d2": 0.5}')
    (folder / "q2.json").write_text('{"code": 429, "took": 3}')
    run = load_run(folder)
    qrels = Qrels.from_dict({"q1": {"d2": 1}, "q2": {"d9": 1}})
    with pytest.raises(AlignmentError) as caught:
        align(qrels, [run])
    assert str(caught.value).startswith(f"{folder}/q2.json: no key")
    assert "'format: json'" in str(caught.value)
    other = Run.from_dict("b", {"q1": {"code": 1.0}})
    assert align(qrels, [run, other]).queries == ("q1", "q2")
    stated = load_run(folder, layout=FileLayout(format="json"))
    assert align(qrels, [stated]).queries == ("q1", "q2")
    (folder / "q2.json").write_text('{"hits": 5}')
    with pytest.raises(AlignmentError, match=r"q2\.json: no key"):
        align(qrels, [load_run(folder)])


def test_the_cache_keeps_what_may_be_no_ranking(tmp_path: Path) -> None:
    answers = tmp_path / "answers"
    answers.mkdir()
    (answers / "q1.json").write_text('{"d1": 1.5}')
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\n")
    spec = "name: mine\nqrels: qrels.txt\nruns:\n  a: {path: answers}\n"
    (tmp_path / "dataset.yaml").write_text(spec)
    cache = Cache(tmp_path / "cache", max_bytes=10**9)
    for _ in range(2):
        dataset = load_dataset(tmp_path / "dataset.yaml", cache=cache)
        assert dataset.runs["a"].bare == {"q1": f"{answers}/q1.json"}


def test_every_example_of_the_docs_is_read(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs/reference/formats.md"
    examples = re.findall(r"^\| [^|]* \| `(\{.*\})` \|$", page.read_text(), re.MULTILINE)
    assert len(examples) == 8
    for example in examples:
        path = tmp_path / "a.jsonl"
        path.write_text(example)
        assert len(load_run(path).to_dict()["q1"]) in {1, 2}


def test_a_second_list_of_a_query_needs_scores(tmp_path: Path) -> None:
    pages = [{"qid": "q1", "hits": [{"id": "a", "score": 3}]}, {"qid": "q1", "hits": [{"id": "b"}]}]
    path = write_lines(tmp_path / "a.jsonl", pages[0], {"qid": "q1", "hits": [["b", 2.0]]})
    assert load_run(path).to_dict() == {"q1": {"a": 3.0, "b": 2.0}}
    for item in pages:
        item["hits"] = [hit["id"] for hit in item["hits"]]  # type: ignore[index]
    path = write_lines(tmp_path / "b.jsonl", *pages)
    with pytest.raises(DataError, match=r"b\.jsonl:2:.*'q1'"):
        load_run(path)


@pytest.mark.parametrize(
    ("content", "key"),
    [
        ('{"q1": {"a": 2}, "q1": {"b": 1}}', "q1"),
        ('{"q1": {"a": 2, "b": 3, "a": 1}}', "a"),
        ('{\n"q1": {"a": 2},\n"q1": {"b": 1}\n}', "q1"),
        ('{"qid": "q1", "hits": [{"id": "a", "score": 2, "score": 1}]}', "score"),
    ],
)
def test_a_key_that_stands_twice_is_not_dropped(content: str, key: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"a\\.json(:1)?: the key '{key}' appears twice"):
        load_run(written(tmp_path / "a.json", content))


# ── the answers of a multi-search


def search(*documents: str, **facts: object) -> dict[str, object]:
    hits = [{"_id": name, "_score": 9.0 - i} for i, name in enumerate(documents)]
    return {"took": 1, "hits": {"hits": hits}, **facts}


@pytest.mark.parametrize("key", ["queries", "qids", "query_ids"])
def test_a_multi_search_is_one_list_a_query(key: str, tmp_path: Path) -> None:
    answers = {"took": 3, "responses": [search("a", "b"), search(), search("c")]}
    expected = {"q1": {"a": 9.0, "b": 8.0}, "q3": {"c": 9.0}}
    names = {key: ["q1", "q2", "q3"]}
    for item in ({**names, **answers}, {**names, "response": answers}):
        path = written(tmp_path / "ms.json", json.dumps(item))
        assert load_run(path).to_dict() == expected


@pytest.mark.parametrize(
    ("item", "parts"),
    [
        ({"responses": [search("a")]}, ["1 responses", "queries", "none"]),
        ({"queries": ["q1", "q2"], "responses": [search("a")]}, ["1 responses", "2 ids"]),
        (
            {"queries": ["q1", "q2"], "responses": [search("a"), {"error": {"type": "x"}}]},
            ["response 2", "error"],
        ),
        ({"queries": ["q1"], "responses": [search("a", timed_out=True)]}, ["response 1", "timed"]),
    ],
)
def test_a_multi_search_that_is_not_whole(
    item: dict[str, object], parts: list[str], tmp_path: Path
) -> None:
    with pytest.raises(DataError) as error:
        load_run(written(tmp_path / "ms.json", json.dumps(item)))
    assert all(part in str(error.value) for part in ("ms.json", *parts))


def test_a_dump_of_points_names_the_column_that_it_lacks(tmp_path: Path) -> None:
    row = {"query": "q1", "point_id": "d1", "similarity": 0.5, "payload": {"a": 1}}
    path = written(tmp_path / "dump.jsonl", json.dumps(row))
    with pytest.raises(DataError) as error:
        load_run(path)
    assert "--run-columns document=point_id" in str(error.value)
    layout = FileLayout(columns={"document": "point_id"})
    assert load_run(path, layout=layout).to_dict() == {"q1": {"d1": 0.5}}
