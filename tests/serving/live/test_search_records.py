"""A ``SearchQuery`` goes in, a ``SearchResult`` comes out, and the importer reads the file."""

import json
from pathlib import Path
from typing import Any

import pytest

from fusion_bench import Pipeline
from fusion_bench.errors import ConfigError
from fusion_bench.schema import (
    QueryType,
    SearchFilters,
    SearchOptions,
    SearchQuery,
    SearchResult,
    SearchStrategy,
)

LISTS: dict[str, Any] = {
    "keyword": [(f"d{n}", 30.0 - n, f"text {n}") for n in range(8)],
    "semantic": [(f"d{3 * n % 11}", 0.9 - n / 20, f"text {3 * n % 11}") for n in range(8)],
    "graph": [("d9", 3.0, "text 9"), ("d2", -1.0, "text 2")],
}


def ask(text: str, **options: Any) -> SearchQuery:  # noqa: ANN401 - of SearchOptions
    filters, limit = SearchFilters(min_relevance=0), {"limit": 5} | options
    return SearchQuery(
        text=text, type=QueryType.LOCAL, filters=filters, options=SearchOptions(**limit)
    )


def test_the_log_of_a_pipeline_is_a_dataset_that_replays_it(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with Pipeline.profile("conv-07-05") as pipeline, log.open("w") as file:
        for query in (ask("zebra", limit=50), ask("okapi", limit=50)):
            result = pipeline.search_sync(query, LISTS)
            record = result.to_search_result(query)
            assert [item.id for item in record.results] == [each.id for each in result.documents]
            file.write(record.to_json() + "\n")
    assert all(SearchResult.from_json(line) for line in log.read_text().splitlines())


def test_scores_of_any_scale_keep_their_order() -> None:
    query = ask("zebra", limit=20)
    roles = {"bm25": ["keyword"], "dense": ["semantic"], "kg": ["graph"]}
    lists = dict(zip(roles, LISTS.values(), strict=True))
    system = {"runs": [*roles], "fusion": {"method": "weighted_score", "normalize": "none"}}
    with Pipeline(system, roles=roles) as pipeline:
        result = pipeline.search_sync(query, lists)
    record = result.to_search_result(query)
    scores = [item.score for item in record.results]
    assert scores == sorted(scores, reverse=True)
    assert (scores[0], scores[-1]) == (1, 0)
    by_id = {item.id: item.relevance for item in record.results}
    for name, hits in LISTS.items():
        given = [getattr(by_id[hit[0]], name) for hit in hits]
        assert given == sorted(given, reverse=True)
        assert min(given) > 0
        metric = getattr(record.strategies, name)
        assert (metric.enabled, metric.result_count, metric.top_score) == (
            True,
            len(hits),
            given[0],
        )
    assert by_id["d9"].keyword == 0


def test_the_options_of_the_query_apply() -> None:
    query = ask("zebra", strategies=["keyword", "graph"], offset=2, limit=3, rerank_enabled=False)
    with Pipeline.profile("conv-07-05", reranker="noop") as pipeline:
        result = pipeline.search_sync(query, {name: LISTS[name] for name in ("keyword", "graph")})
        whole = pipeline.search_sync(ask("zebra"), LISTS)
    assert (result.provider, whole.provider) == ("fused order", "noop/order")
    assert [*result.switched_off] == ["semantic"]
    record = result.to_search_result(query)
    assert [item.id for item in record.results] == [each.id for each in result.documents[2:5]]
    assert record.strategies.enabled == (SearchStrategy.KEYWORD, SearchStrategy.GRAPH)
    assert {item.relevance.rerank for item in record.results} == {None}
    assert json.loads(record.to_json())["strategies"]["semantic"]["enabled"] is False


def test_a_list_without_a_strategy_is_refused() -> None:
    with Pipeline({"runs": ["bm25"]}) as pipeline:
        result = pipeline.search_sync(ask("zebra"), {"bm25": LISTS["keyword"]})
    with pytest.raises(ConfigError, match="'bm25' has none"):
        result.to_search_result(ask("zebra"))
