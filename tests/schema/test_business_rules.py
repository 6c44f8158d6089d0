"""The business rules of CONV-03-05 that concern records, by their ids."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import ValidationError

from fusion_bench import System, fuse
from fusion_bench.config.query_types import CONV_03_05, UNSURE
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.evaluation.crag import judge_list
from fusion_bench.schema import (
    CRAGScore,
    DateRange,
    FileId,
    HighlightOffset,
    QueryClassification,
    QueryType,
    RerankConfig,
    RRFConfig,
    SearchFilters,
    SearchOptions,
    SearchQuery,
    SearchResult,
    SearchResultItem,
    SearchStrategy,
    SearchWeights,
    calculate_rrf_score,
    judge_relevance,
    recommends_web_search,
    select_results,
)
from tests.schema import cases

KEYWORD, SEMANTIC, GRAPH = SearchStrategy.KEYWORD, SearchStrategy.SEMANTIC, SearchStrategy.GRAPH


def make_classification(query_type: str, confidence: float) -> QueryClassification:
    return QueryClassification(
        original_query="q",
        type=QueryType(query_type),
        confidence=confidence,
        extracted_entities=(),
        suggested_weights=SearchWeights.of_type(QueryType(query_type)),
        expanded_queries=(),
    )


def test_br_001_a_query_that_nobody_can_classify_is_hybrid() -> None:
    assert QueryType(UNSURE) is QueryType.HYBRID
    assert make_classification("global", 0.0).sure_type is QueryType.HYBRID


@pytest.mark.parametrize("query_type", QueryType)
def test_br_002_every_type_has_weights(query_type: QueryType) -> None:
    assert SearchWeights.of_type(query_type).model_dump() == CONV_03_05[query_type]
    assert set(CONV_03_05) == set(QueryType)


def test_br_003_an_empty_text_is_no_query() -> None:
    assert cases.broken_keys(SearchQuery, cases.make_query() | {"text": ""}) == [("text",)]
    assert cases.broken_keys(SearchQuery, cases.make_query() | {"text": "a" * 1001}) == [("text",)]
    longest = SearchQuery.model_validate(cases.make_query() | {"text": "a" * 1000})
    assert len(longest.text) == 1000


def test_br_004_br_005_a_query_may_lack_its_embedding_of_a_length_that_the_model_decides() -> None:
    assert SearchQuery.model_validate(cases.make_query()).embedding is None
    assert SearchQuery.model_validate(cases.make_query() | {"embedding": None}).embedding is None
    text = SearchQuery.model_validate(cases.make_query() | {"embedding": [1, 2, 3]}).to_json()
    assert SearchQuery.from_json(text, context={"dimensions": 3}) == SearchQuery.from_json(text)
    with pytest.raises(DataError, match=r"384 dimensions .* 3"):
        SearchQuery.from_json(text, context={"dimensions": 384})


@pytest.mark.parametrize("files", [None, []])
def test_br_006_no_file_means_every_file(files: list[FileId] | None) -> None:
    assert SearchFilters(file_ids=files).accepts_file(FileId("f1"))
    assert not SearchFilters(file_ids=[FileId("f2")]).accepts_file(FileId("f1"))


def test_br_007_results_below_the_minimum_are_dropped() -> None:
    items = [
        SearchResultItem.model_validate(cases.make_item(id=f"c{score}", score=score))
        for score in (0.9, 0.5, 0.3, 0.2999, 0.0)
    ]

    def ids(least: float, offset: int = 0, limit: int = 20) -> list[str]:
        options = SearchOptions(offset=offset, limit=limit)
        return [item.id for item in select_results(items, least, options)]

    assert SearchFilters().min_relevance == 0.3
    assert ids(0.3) == ["c0.9", "c0.5", "c0.3"]
    assert ids(0.3, offset=1, limit=1) == ["c0.5"]
    assert ids(0.0) == [item.id for item in items]
    assert ids(1.0) == ids(0.0, offset=9) == []


def test_br_008_br_009_dates_run_forwards_and_an_end_that_is_not_given_is_open() -> None:
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    assert DateRange(start=moment, end=moment).contains(moment)
    tokyo = timezone(timedelta(hours=9))
    same = DateRange(start=moment, end=datetime(2024, 1, 1, 9, tzinfo=tokyo))
    assert same.start == same.end
    with pytest.raises(ValidationError, match="equal to end"):
        DateRange(start=moment, end=datetime(2024, 1, 1, 8, 59, tzinfo=tokyo))
    old, new = datetime(1970, 1, 1), datetime(2999, 1, 1)
    since, until = DateRange(start=datetime(2024, 1, 1)), DateRange(end=datetime(2024, 1, 1))
    assert [since.contains(old), since.contains(new)] == [False, True]
    assert [until.contains(old), until.contains(new)] == [True, False]
    assert DateRange().contains(old)


@pytest.mark.parametrize(
    ("graph", "fits"),
    [(0.3, True), (0.31, True), (0.29, True), (0.311, False), (0.289, False), (0.0, False)],
)
def test_br_010_weights_add_up_to_1_within_a_hundredth(graph: float, fits: bool) -> None:
    weights = {"keyword": 0.35, "semantic": 0.35, "graph": graph}
    if fits:
        assert SearchWeights.model_validate(weights).graph == graph
    else:
        [message] = cases.messages(SearchWeights, weights)
        assert message.endswith("sum to 1.0")


def test_br_011_a_strategy_that_does_not_run_weighs_0() -> None:
    options = SearchOptions(strategies=(KEYWORD, GRAPH))
    weights = options.active_weights
    assert weights.semantic == 0
    assert (weights.keyword, weights.graph) == pytest.approx((0.35 / 0.65, 0.30 / 0.65))
    assert SearchOptions().active_weights == SearchOptions().weights
    none = SearchOptions(
        strategies=(GRAPH,), weights=SearchWeights(keyword=0.5, semantic=0.5, graph=0)
    )
    with pytest.raises(ConfigError, match="use weigh 0"):
        _ = none.active_weights


@pytest.mark.parametrize(("confidence", "wanted"), [(0.7, "global"), (0.6999, "hybrid")])
def test_br_012_an_unsure_classification_is_hybrid(confidence: float, wanted: str) -> None:
    assert make_classification("global", confidence).sure_type == wanted


@pytest.mark.parametrize("strategy", ["keyword", "semantic", "graph"])
def test_br_013_a_strategy_that_does_not_run_scores_0(strategy: str) -> None:
    metrics = dict.fromkeys(("keyword", "semantic", "graph"), cases.METRIC)
    metrics[strategy] = {**cases.METRIC, "enabled": False}
    given = cases.make_result(strategies=metrics)
    wanted = f"results.0.relevance.{strategy} must be 0, as strategies.{strategy}.enabled is false"
    assert cases.messages(SearchResult, given) == [wanted]
    item = cases.make_item(relevance={**cases.SCORES, strategy: 0})
    assert SearchResult.model_validate({**given, "results": [item]}).results[0].id == "c1"


CRAG = {"relevance": "correct", "confidence": 0.9, "needsWebSearch": False, "refinedQuery": None}


@pytest.mark.parametrize(
    ("key", "value", "option"),
    [
        ("rerank", 0.5, "rerankEnabled"),
        ("rerank", 0, "rerankEnabled"),
        ("crag", CRAG, "cragEnabled"),
    ],
    ids=["br_014_rerank", "br_014_rerank_0", "br_015_crag"],
)
def test_what_does_not_run_has_no_score(key: str, value: object, option: str) -> None:
    items = [cases.make_item(relevance={**cases.SCORES, key: value})]
    off = cases.make_result(results=items, query=cases.make_query(**{option: False}))
    wanted = f"results.0.relevance.{key} must be null, as query.options.{option} is false"
    assert cases.messages(SearchResult, off) == [wanted]
    on = cases.make_result(results=items, query=cases.make_query(**{option: True}))
    scores = SearchResult.model_validate(on).results[0].relevance
    assert scores.model_dump(by_alias=True)[key] == value


@pytest.mark.parametrize(
    ("score", "wanted"),
    [
        (1.0, "correct"),
        (0.7, "correct"),
        (0.6999, "ambiguous"),
        (0.3001, "ambiguous"),
        (0.3, "incorrect"),
        (0.0, "incorrect"),
    ],
)
def test_br_016_the_score_decides_the_verdict(score: float, wanted: str) -> None:
    assert judge_relevance(score) == wanted
    assert CRAGScore.of_score(score).relevance == judge_list([score]).relevance == wanted


def test_br_017_all_but_correct_recommend_a_web_search() -> None:
    assert not recommends_web_search("correct")
    assert recommends_web_search("incorrect")
    assert recommends_web_search("ambiguous")
    against = CRAGScore(relevance="incorrect", confidence=1, needs_web_search=False)
    assert not against.needs_web_search  # a recommendation, no rule


def test_br_018_an_offset_has_a_length() -> None:
    [message] = cases.messages(HighlightOffset, {"start": 4, "end": 4})
    assert message.startswith("start must ")
    assert HighlightOffset(start=4, end=5).end == 5


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("chunk", "chunkId", "c1"),
        ("entity", "entityIds", ["e1"]),
        ("community", "communityId", "m1"),
    ],
    ids=["br_019_chunk", "br_020_entity", "br_021_community"],
)
def test_a_result_names_its_source(kind: str, key: str, value: object) -> None:
    empty: dict[str, object] = {"entityIds": [], "relationIds": []}
    wanted = f"sources.{key} is required for a result of type {kind}"
    assert cases.messages(SearchResultItem, cases.make_item(type=kind, sources=empty)) == [wanted]
    given = cases.make_item(type=kind, sources={**empty, key: value})
    sources = SearchResultItem.model_validate(given).sources
    assert sources.model_dump(by_alias=True, mode="json")[key] == value


RANKS = {KEYWORD: 1, SEMANTIC: 4, GRAPH: 2}


@pytest.mark.parametrize("normalized", [True, False])
def test_br_022_the_score_of_rrf_is_that_of_the_bench(normalized: bool) -> None:
    weights, config = SearchWeights.of_type(QueryType.LOCAL), RRFConfig(normalize_scores=normalized)
    lists = {
        name: {"q": {"d" if place == rank else f"{name}{place}": -place for place in range(1, 6)}}
        for name, rank in RANKS.items()
    }
    fusion = config.to_fusion(weights)
    fused = fuse(lists, System("rrf", list(lists), fusion)).to_dict()["q"]["d"]
    score = calculate_rrf_score(RANKS, weights, config)
    assert score == pytest.approx(fused, rel=1e-15)
    plain = 0.35 / 61 + 0.35 / 64 + 0.30 / 62
    assert score == pytest.approx(plain * 61 / 3 if normalized else plain, rel=1e-15)


def test_br_023_a_greater_k_makes_ranks_count_less() -> None:
    weights = SearchWeights.of_type(QueryType.HYBRID)

    def ratio(k: int) -> float:
        config = RRFConfig(k=k)
        first, tenth = (calculate_rrf_score({KEYWORD: rank}, weights, config) for rank in (1, 10))
        return first / tenth

    assert ratio(1) > ratio(10) > ratio(60) > ratio(1000) > 1


def test_br_024_br_025_candidates_and_batches_of_a_reranker() -> None:
    config = RerankConfig()
    assert [config.count_candidates(n) for n in (0, 3, 50, 80)] == [0, 3, 50, 50]
    assert RerankConfig(enabled=False).count_candidates(80) == 0
    assert [RerankConfig(batch_size=size).batch_size for size in (1, 16, 32)] == [1, 16, 32]
    assert cases.broken_keys(RerankConfig, {"batchSize": 33}) == [("batchSize",)]
    assert cases.broken_keys(RerankConfig, {"batchSize": 0}) == [("batchSize",)]
