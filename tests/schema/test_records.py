"""The records of the founding documents, their rules and bad values."""

import doctest
import json
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

import fusion_bench.schema as schema
from fusion_bench.errors import ConfigError, DataError, FusionBenchError
from fusion_bench.evaluation.crag import CragThresholds, judge_list
from fusion_bench.io.load_records import load_run
from fusion_bench.schema import (
    ChunkId,
    CommunityId,
    DateRange,
    EntityId,
    FileId,
    QueryType,
    SearchFilters,
    SearchOptions,
    SearchQuery,
    SearchResult,
    SearchResultSources,
    SearchWeights,
    normalize_scores,
    to_float32,
)
from fusion_bench.schema.search_records import judge_relevance
from tests.schema import cases
from tests.shipped_schemas import check_record

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
WHOLE: dict[str, Any] = {
    "query": {
        "text": "what is a lich?",
        "type": "global",
        "embedding": [0.5, -0.25],
        "filters": {
            "fileIds": ["f1"],
            "entityTypes": ["monster"],
            "dateRange": {"start": "2024-01-01T00:00:00Z", "end": None},
            "minRelevance": 0.2,
        },
        "options": {
            "limit": 5,
            "offset": 1,
            "includeMetadata": False,
            "includeHighlights": True,
            "rerankEnabled": True,
            "cragEnabled": True,
            "strategies": ["keyword", "graph"],
            "weights": {"keyword": 0.5, "semantic": 0.0, "graph": 0.5},
        },
    },
    "results": [
        {
            "id": "c1",
            "type": "chunk",
            "score": 0.5,
            "relevance": {
                "combined": 0.5,
                "keyword": 0.25,
                "semantic": 0.0,
                "graph": 1.0,
                "rerank": 0.75,
                "crag": {
                    "relevance": "correct",
                    "confidence": 0.75,
                    "needsWebSearch": False,
                    "refinedQuery": None,
                },
            },
            "content": {
                "text": "A lich is …",
                "summary": None,
                "contextBefore": "before",
                "contextAfter": None,
            },
            "highlights": [
                {"field": "text", "fragment": "a lich", "offsets": [{"start": 2, "end": 6}]}
            ],
            "sources": {
                "chunkId": "c1",
                "fileId": "f1",
                "entityIds": ["e1", "e2"],
                "communityId": None,
                "relationIds": ["r1"],
            },
        }
    ],
    "totalCount": 12,
    "processingTime": 41.5,
    "strategies": {
        "keyword": {"enabled": True, "resultCount": 1, "processingTime": 2.5, "topScore": 0.9},
        "semantic": {"enabled": False, "resultCount": 0, "processingTime": 0.0, "topScore": 0.0},
        "graph": {"enabled": True, "resultCount": 1, "processingTime": 2.5, "topScore": 0.9},
    },
}


def test_json_of_the_documents_and_keys_of_python_come_back() -> None:
    record = SearchResult.from_json(json.dumps(WHOLE))
    assert json.loads(record.to_json()) == WHOLE
    assert SearchResult.from_json(record.to_json()) == record
    assert hash(SearchResult.from_json(record.to_json())) == hash(record)
    check_record("search", record.to_json())
    assert record.query.options.include_metadata is False
    assert type(record.results[0].sources.entity_ids[1]) is EntityId
    assert SearchResult.from_json(record.model_dump_json()) == record
    assert SearchResult.model_validate(record.model_dump()) == record


@pytest.mark.parametrize("part", ["embedding", "text", "options"])
def test_records_that_differ_are_not_equal(part: str) -> None:
    other: dict[str, object] = {
        "embedding": [0.5, -0.5],
        "text": "x",
        "options": {"cragEnabled": True},
    }
    changed = {**WHOLE, "query": {**WHOLE["query"], part: other[part]}}
    assert SearchResult.from_json(json.dumps(changed)) != SearchResult.from_json(json.dumps(WHOLE))


@given(arrays(np.float32, st.integers(1, 8), elements=FLOATS))
def test_an_embedding_comes_back_bit_by_bit(vector: NDArray[np.float32]) -> None:
    query = SearchQuery(
        text="q",
        type=QueryType.LOCAL,
        embedding=vector,
        filters=SearchFilters(),
        options=SearchOptions(),
    )
    again = SearchQuery.from_json(query.to_json())
    assert again.embedding is not None
    assert again.embedding.tobytes() == vector.tobytes()
    assert again == query


@pytest.mark.parametrize(
    ("vector", "says"),
    [
        (np.array([0.1]), "these are float64"),
        (np.zeros((1, 2), np.float32), "needed, given 2"),
        ([], "least one number"),
        ([1, "2"], "given '2' in it"),
        ([True], "given True in it"),
        ([1e39], "number 0 is not finite as a 32-bit float, given 1e\\+39"),
        ([1.0, float("nan")], "1 is not finite"),
        ("abc", "a list of numbers is needed"),
    ],
)
def test_what_is_no_embedding(vector: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        SearchQuery.model_validate(cases.make_query() | {"embedding": vector})


def test_copies_and_scales_of_numbers() -> None:
    given = np.array([0.1, 0.2])
    vector = to_float32(given)
    given[0] = 9
    assert vector.tolist() == np.array([0.1, 0.2], np.float32).tolist()
    assert normalize_scores([3.0, 1.0, 2.0]) == [1.0, 0.0, 0.5]
    assert normalize_scores([7.0, 7.0]) == [1.0, 1.0]
    assert normalize_scores([]) == []


@pytest.mark.parametrize("kind", [ChunkId, FileId, EntityId, CommunityId])
def test_new_ids_are_uuids(kind: type[ChunkId]) -> None:
    first, second = kind.generate(), kind.generate()
    assert type(first) is kind
    assert UUID(first) != UUID(second)
    with pytest.raises(ConfigError, match=f"{kind.__name__}: an id is "):
        kind("")


def test_ids_may_have_to_be_uuids() -> None:
    data = {"chunkId": "c1", "entityIds": [], "relationIds": []}
    assert SearchResultSources.model_validate(data).chunk_id == "c1"
    with pytest.raises(DataError, match=r"^chunkId: .* 'c1'$"):
        SearchResultSources.from_json(json.dumps(data), context={"uuid_ids": True})
    data["chunkId"] = ChunkId.generate()
    strict = SearchResultSources.from_json(json.dumps(data), context={"uuid_ids": True})
    assert strict.chunk_id == data["chunkId"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"totalCount": -1}, "totalCount: input should be greater than or equal to 0, given -1"),
        ({"totalCount": 1.5}, "totalCount: input should be a valid integer, given 1.5"),
        ({"totalCount": "1"}, "totalCount: input should be a valid integer, given '1'"),
        ({"totalCount": None}, "totalCount: input should be a valid integer, given None"),
        (
            {"total": 1},
            "unknown key 'total'; did you mean 'totalCount'? (known: query, results, totalCount",
        ),
        ({"processingTime": float("nan")}, "processingTime: input should be a finite number"),
        (
            {"results": [cases.make_item(scor=1)]},
            "results.0: unknown key 'scor'; did you mean 'score'? (known: id, type, score",
        ),
        (
            {"results": [cases.make_item(sources={"chunkid": "a", "relationIds": []})]},
            "results.0.sources: unknown key 'chunkid'; did you mean 'chunkId'?",
        ),
        (
            {"query": cases.make_query(weights={**cases.WEIGHTS, "graph": 0.5})},
            "query.options.weights: Weights must sum to 1.0, given {",
        ),
        (
            {"query": {**cases.make_query(), "filters": {"dateRange": {"start": "2024"}}}},
            "query.filters.dateRange.start: a date or time is needed, such as 2024-01-31T09:30:00Z",
        ),
        ({"query": None}, "query: input should be an object, given None"),
    ],
)
def test_what_is_wrong_stands_in_one_line(change: dict[str, Any], says: str) -> None:
    text = json.dumps(cases.make_result(**change))
    with pytest.raises(DataError) as caught:
        SearchResult.from_json(text, "results.jsonl:3")
    assert str(caught.value).startswith(f"results.jsonl:3: {says}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"a"', b"\xff"])
def test_what_is_no_object(text: str | bytes) -> None:
    with pytest.raises(DataError, match=r"^f:1: .*(JSON|an object)"):
        SearchResult.from_json(text, "f:1")


def test_a_missing_key_is_named() -> None:
    data = cases.make_result()
    del data["query"]["filters"]
    with pytest.raises(DataError, match=r"^query\.filters: is required$"):
        SearchResult.from_json(json.dumps(data))


@pytest.mark.parametrize(
    "text", ["2024-01-31", "2024-01-31T00:00:00Z", "2024-01-31T00:00:00.000Z", "2024-01-31T09+09"]
)
def test_moments_as_json_has_them(text: str) -> None:
    dates = DateRange.from_json(json.dumps({"start": text}))
    assert dates == DateRange(start=datetime(2024, 1, 31))


@pytest.mark.parametrize("value", [1706659200, True, "31.01.2024", "2024-13-01", ""])
def test_what_is_no_moment(value: object) -> None:
    with pytest.raises(DataError, match=r"^end: "):
        DateRange.from_json(json.dumps({"end": value}))


def test_the_examples_of_the_page_run() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/schema.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 1
    for block in blocks:
        exec(block, {})  # noqa: S102 - our own page
    assert doctest.testmod(schema).failed == 0


# ── values that are refused with one clear line


NAN = float("nan")
BAD: list[Any] = ["a"]
NONE: list[Any] = [None, 0.2]
OTHER: Any = "foo"
DAY: Any = "2024-01-03"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: judge_relevance(NAN), "given nan"),
        (lambda: normalize_scores([1.0, NAN]), "given nan"),
        (lambda: judge_list([0.5], CragThresholds(NAN, 0.3)), "given upper nan"),
        (lambda: judge_list(BAD), "given 'a'"),
        (lambda: judge_list(NONE), "given None"),
        (lambda: SearchWeights.of_type(OTHER), "unknown query type 'foo'"),
        (lambda: DateRange.model_validate({"start": "2024-01-02"}).contains(DAY), "a datetime is"),
    ],
)
def test_what_is_refused(call: Callable[[], object], says: str) -> None:
    with pytest.raises(FusionBenchError, match=says):
        call()


def test_records_of_searches_are_read_as_a_run(tmp_path: Path) -> None:
    record = cases.make_result()
    path = tmp_path / "results.jsonl"
    path.write_text(f"{json.dumps(record)}\n", encoding="utf-8")
    expected = {item["id"]: item["score"] for item in record["results"]}
    assert load_run(path, name="production").to_dict() == {record["query"]["text"]: expected}
    assert expected
