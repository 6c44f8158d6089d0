"""What libraries and traces write in more than one way: read, or refused with the reason."""

import json
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.errors import DataError
from fusion_bench.io.formats import read_raw_table
from fusion_bench.io.load_records import load_qrels, load_run
from tests.io.files import written
from tests.io.layouts.test_layouts import order_documents

RUN = {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d3": 3.0}}
ORDER = {query: list(scores) for query, scores in RUN.items()}


def page(name: str, **metadata: object) -> dict[str, Any]:
    return {"page_content": "a b", "type": "Document", "metadata": {"id": name, **metadata}}


def dump(page: dict[str, Any]) -> dict[str, Any]:
    path = ["langchain", "schema", "document", "Document"]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": page}


def node(name: str, score: float | None) -> dict[str, Any]:
    relationships = {"1": {"node_id": "parent"}}
    return {"node": {"id_": name, "relationships": relationships, "text": "a"}, "score": score}


def attributes(query: str, documents: dict[str, float]) -> dict[str, Any]:
    cells: dict[str, Any] = {"openinference.span.kind": "RETRIEVER", "input.value": query}
    for at, (name, score) in enumerate(documents.items()):
        cells[f"retrieval.documents.{at}.document.id"] = name
        cells[f"retrieval.documents.{at}.document.score"] = score
    return cells


def encode(cells: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP in JSON has them."""
    kinds = {str: "stringValue", float: "doubleValue"}
    return [{"key": key, "value": {kinds[type(cell)]: cell}} for key, cell in cells.items()]


def export(*spans: dict[str, Any]) -> dict[str, Any]:
    spans_of_json = [{"name": "x", "attributes": encode(cells)} for cells in spans]
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans_of_json}]}]}


def list_items(hits: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - a function of the scores
    return [{"query": query, "documents": hits(scores)} for query, scores in RUN.items()]


@pytest.mark.parametrize(
    "items",
    [
        list_items(lambda scores: [page(name) for name in scores]),
        list_items(lambda scores: [dump(page(name)) for name in scores]),
        list_items(lambda scores: [[page(name), score] for name, score in scores.items()]),
        list_items(lambda scores: [[dump(page(name)), 1 / s] for name, s in scores.items()]),
        list_items(lambda scores: [{"id": None, **page(name)} for name in scores]),
        [
            {"question": query, "answer": "an answer", "context": [page(name) for name in scores]}
            for query, scores in RUN.items()
        ],
        [{"input": query, "output": [page(n) for n in scores]} for query, scores in RUN.items()],
        list_items(lambda scores: [node(name, None) for name in scores]),
        [
            {"query": query, "response": "text", "source_nodes": [node(n, s) for n, s in d.items()]}
            for query, d in RUN.items()
        ],
        [
            {
                "qid": query,
                "retriever": {"documents": [{"id": n, "content": "a", "meta": {}} for n in scores]},
                "llm": {"replies": ["a"]},
            }
            for query, scores in RUN.items()
        ],
        [{"name": "x", "attributes": attributes(*item)} for item in RUN.items()],
        [
            {
                "attributes.input.value": query,
                "attributes.retrieval.documents": [{"document.id": name} for name in scores],
            }
            for query, scores in RUN.items()
        ],
        [export(*(attributes(*item) for item in RUN.items()), {"a": "b"}), export({"a": "b"})],
        [
            export(
                {
                    "gen_ai.retrieval.query.text": query,
                    "gen_ai.retrieval.documents": json.dumps([{"id": name} for name in scores]),
                }
            )
            for query, scores in RUN.items()
        ],
    ],
)
def test_one_list_in_many_ways(items: list[dict[str, Any]], tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", "\n".join(map(json.dumps, items)))
    assert order_documents(read_raw_table(path, "run")) == ORDER


def test_a_number_in_a_key_is_the_place_of_a_document(tmp_path: Path) -> None:
    documents = {f"d{at}": float(20 - at) for at in range(12)}
    cells = dict(sorted(attributes("q1", documents).items()))
    cells = {key: cell for key, cell in cells.items() if not key.endswith("score")}
    path = written(tmp_path / "a.json", json.dumps({"attributes": cells}))
    assert order_documents(read_raw_table(path, "run")) == {"q1": list(documents)}


SPAN: dict[str, Any] = {"name": "x", "attributes": attributes("q1", RUN["q1"])}
RERANK = {"attributes": {"reranker.query": "q1", "reranker.output_documents.0.document.id": "d1"}}


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ([SPAN, RERANK], "two spans with"),
        ([export(SPAN["attributes"], SPAN["attributes"])], "'q1' has 2"),
        ([SPAN, {"attributes": {"openinference.span.kind": "LLM"}}], "only the spans"),
        ([export({"a": "b"})], "file is empty"),
        (list_items(lambda scores: ["one two three " * 5 for _ in scores]), "is a text, and"),
        ([{"input": "q1", "retrieval_context": ["a b"]}], "no ids"),
        ([{"cases": [{"input": "q1", "contexts": ["a b"]}]}], "no ids"),
        (
            [{"attributes": {"ai.observability.retrieval.retrieved_contexts": ["a b"]}}],
            "no ids",
        ),
        ([{"mteb_model_meta": {}, "en": {"a": {"q": {"d": 1}}}, "de": {"a": {"q": {"d": 1}}}}],
         "several lists, under"),
    ],
)  # fmt: skip
def test_what_cannot_be_one_list_is_refused(
    items: list[dict[str, Any]], says: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError) as error:
        load_run(written(tmp_path / "a.jsonl", "\n".join(map(json.dumps, items))))
    assert says in str(error.value)


def test_samples_in_a_list_have_lists_and_judgments(tmp_path: Path) -> None:
    sample = {"user_input": "q1", "retrieved_context_ids": ["d1"], "reference_context_ids": ["d2"]}
    path = written(tmp_path / "a.json", json.dumps({"samples": [sample]}))
    assert order_documents(read_raw_table(path, "run")) == {"q1": ["d1"]}
    assert load_qrels(path).to_dict() == {"q1": {"d2": 1}}


@pytest.mark.parametrize("suffix", [".lz4", ".npz", ".lst"])
def test_a_packed_file_says_how_to_save_it(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"run\.save"):
        load_run(written(tmp_path / f"run{suffix}", "x y"))
