"""The acceptance criteria of CONV-03-05, one test a scenario, by their ids.

What its criteria ask of a compiler, mypy answers here: a line that it would accept makes the
``type: ignore`` beside it unused, which is an error too.
"""

from datetime import UTC, datetime
from typing import assert_type

import numpy as np
import pytest
from pydantic import ValidationError

import fusion_bench.schema as schema
from fusion_bench.schema import (
    ChunkId,
    CRAGScore,
    DateRange,
    EntityId,
    FileId,
    HighlightOffset,
    QueryType,
    RelevanceScore,
    RRFConfig,
    SearchFilters,
    SearchOptions,
    SearchQuery,
    SearchResultSources,
    SearchWeights,
)
from fusion_bench.schema.record_fields import Vector
from fusion_bench.schema.search_records import build_search_schema
from tests.schema import cases

TYPES = (
    "QueryType SearchStrategy SearchResultType SearchQuery SearchFilters DateRange SearchOptions",
    "SearchWeights QueryClassification SearchResult SearchResultItem RelevanceScore CRAGScore",
    "SearchResultContent Highlight HighlightOffset SearchResultSources SearchStrategyMetrics",
    "StrategyMetric RRFConfig RerankConfig",
)


def make_query() -> SearchQuery:
    return SearchQuery(
        text="what is a lich?",
        type=QueryType.LOCAL,
        filters=SearchFilters(),
        options=SearchOptions(),
    )


def test_ac_type_001_properties_have_types_text_is_required_and_nothing_changes() -> None:
    query = make_query()
    assert_type(query.text, str)
    assert_type(query.type, QueryType)
    assert_type(query.embedding, Vector | None)
    assert (query.text, query.type, query.embedding) == ("what is a lich?", "local", None)
    with pytest.raises(ValidationError):
        SearchQuery(type=QueryType.LOCAL, filters=SearchFilters(), options=SearchOptions())  # type: ignore[call-arg]
    data = cases.make_query()
    del data["text"]
    assert cases.broken_keys(SearchQuery, data) == [("text",)]
    with pytest.raises(ValidationError, match="frozen"):
        query.text = "new text"  # type: ignore[misc]
    vector = SearchQuery.model_validate(cases.make_query() | {"embedding": [1.0, 2.0]}).embedding
    assert vector is not None
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 3


def test_ac_type_002_weights_add_up_to_1_within_the_tolerance() -> None:
    weights = SearchWeights.model_validate({"keyword": 0.35, "semantic": 0.35, "graph": 0.30})
    assert weights.model_dump() == {"keyword": 0.35, "semantic": 0.35, "graph": 0.30}
    wrong = {"keyword": 0.5, "semantic": 0.5, "graph": 0.5}
    [message] = cases.messages(SearchWeights, wrong)
    assert message.endswith("sum to 1.0")
    given = {"keyword": 0.334, "semantic": 0.333, "graph": 0.333}
    assert SearchWeights.model_validate(given).model_dump() == given


def test_ac_type_003_ranges_of_dates_run_forwards_and_may_lack_an_end() -> None:
    dates = DateRange.model_validate({"start": datetime(2024, 1, 1), "end": datetime(2024, 12, 31)})
    assert dates.start == datetime(2024, 1, 1, tzinfo=UTC)
    assert dates.end == datetime(2024, 12, 31, tzinfo=UTC)
    wrong = {"start": datetime(2024, 12, 31), "end": datetime(2024, 1, 1)}
    [message] = cases.messages(DateRange, wrong)
    assert message.startswith("start must ")
    day = DateRange.model_validate({"end": "2024-12-31"})  # midnight in UTC, as new Date(…)
    assert day.contains(datetime(2024, 12, 31))
    assert not day.contains(datetime(2024, 12, 31, 12))
    dates = DateRange.model_validate({"start": datetime(2024, 1, 1), "end": None})
    assert dates.end is None
    assert dates.contains(datetime(2999, 1, 1))


def test_ac_type_004_1_scores_in_their_range() -> None:
    given = {**cases.SCORES, "rerank": 0.88, "crag": None}
    assert RelevanceScore.model_validate(given).model_dump() == given


@pytest.mark.parametrize("key", ["combined", "keyword", "semantic", "graph", "rerank"])
@pytest.mark.parametrize("value", [1.5, -0.1, float("nan"), float("inf"), "0.5", True])
def test_ac_type_004_2_scores_out_of_their_range(key: str, value: object) -> None:
    assert cases.broken_keys(RelevanceScore, {**cases.SCORES, key: value}) == [(key,)]


def test_ac_type_005_correct_alone_needs_no_web_search() -> None:
    score = CRAGScore.of_score(0.9)
    assert (score.relevance, score.needs_web_search) == ("correct", False)
    score = CRAGScore.of_score(0.1, refined_query="lich phylactery")
    assert (score.relevance, score.needs_web_search) == ("incorrect", True)
    assert score.refined_query == "lich phylactery"
    score = CRAGScore.of_score(0.5)
    assert (score.relevance, score.needs_web_search) == ("ambiguous", True)


def test_ac_type_006_ids_are_of_their_kind() -> None:
    sources = SearchResultSources(chunk_id=ChunkId("c1"), entity_ids=[], relation_ids=[])
    assert_type(sources.chunk_id, ChunkId | None)
    assert type(sources.chunk_id) is ChunkId
    with pytest.raises(ValidationError, match=r"ChunkId .* FileId"):
        SearchResultSources(chunk_id=FileId("f1"), entity_ids=[], relation_ids=[])  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match=r"FileId .* ChunkId"):
        SearchFilters(file_ids=[ChunkId("c1")])  # type: ignore[list-item]
    ids = [EntityId("id1"), EntityId("id2")]
    assert SearchResultSources(entity_ids=ids, relation_ids=[]).entity_ids == ("id1", "id2")


def test_ac_type_007_offsets_run_forwards_within_the_text() -> None:
    offset = HighlightOffset.model_validate({"start": 10, "end": 25})
    assert (offset.start, offset.end) == (10, 25)
    wrong = {"start": 25, "end": 10}
    [message] = cases.messages(HighlightOffset, wrong)
    assert message.startswith("start must ")
    assert cases.broken_keys(HighlightOffset, {"start": -5, "end": 10}) == [("start",)]


def test_ac_schema_001_every_type_has_a_schema_and_reads_its_record() -> None:
    types = [name for row in TYPES for name in row.split()]
    assert len(types) == 18 + 3
    assert set(types) == set(build_search_schema()["$defs"])
    assert set(types) <= set(schema.__all__)
    query = SearchQuery.model_validate(cases.make_query())
    assert_type(query, SearchQuery)
    assert query == make_query()


def test_ac_schema_002_defaults_of_search_options_and_rrf_config() -> None:
    assert SearchOptions.model_validate({}).model_dump(mode="json", by_alias=True) == {
        "limit": 20,
        "offset": 0,
        "includeMetadata": True,
        "includeHighlights": True,
        "rerankEnabled": True,
        "cragEnabled": False,
        "strategies": ["hybrid"],
        "weights": {"keyword": 0.35, "semantic": 0.35, "graph": 0.30},
    }
    written = RRFConfig.model_validate({}).model_dump(by_alias=True)
    assert written == {"k": 60, "normalizeScores": True}


def test_embeddings_are_32_bit_floats() -> None:
    query = SearchQuery.model_validate(
        cases.make_query() | {"embedding": np.array([0.1], np.float32)}
    )
    assert query.embedding is not None
    assert query.embedding.dtype == np.float32
