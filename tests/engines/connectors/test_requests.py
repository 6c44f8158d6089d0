"""What stands in the requests of single engines, beyond what all connectors hold."""

import json
from typing import Any

import pytest

from fusion_bench.engines.connectors import PullQuery, connectors
from fusion_bench.errors import ConfigError
from tests.engines.connectors.cases import CASES, QUERY

FOLDERS = ("qdrant", "milvus", "chroma")


def build(name: str, **settings: object) -> Any:  # noqa: ANN401 - each connector has other methods
    return connectors.build(
        {"method": name, "url": "http://localhost:1", **CASES[name].settings, **settings}
    )


def elasticsearch(**leg: object) -> Any:  # noqa: ANN401 - as above
    return build("elasticsearch", legs={"leg": leg}, fused=None)


def test_candidates_of_elasticsearch_are_never_below_k_nor_beyond_its_limit() -> None:
    connector, query = elasticsearch(vector_field="v"), PullQuery("q", "x", {"leg": (1.0,)})
    numbers = {
        depth: connector.source_request("leg", query, depth)["retriever"]["knn"]["num_candidates"]
        for depth in (10, 100, 9_000)
    }
    assert numbers == {10: 100, 100: 200, 9_000: 10_000}
    connector = elasticsearch(vector_field="v", num_candidates=50)
    query = PullQuery("q", "x", {"leg": (1.0,)})
    knn = connector.source_request("leg", query, 80)["retriever"]["knn"]
    assert (knn["k"], knn["num_candidates"]) == (80, 80)


def test_templates_are_filled_as_they_want() -> None:
    template = {"standard": {"query": {"bool": {"must": [{"match": {"a": "QUERY"}}]}}}}
    connector = elasticsearch(retriever=template)
    for text in ('", "size": 9', "QUERY_VECTOR", "DEPTH"):
        request = connector.source_request("leg", PullQuery("q", text), 3)
        (clause,) = request["retriever"]["standard"]["query"]["bool"]["must"]
        assert clause == {"match": {"a": text}}
    knn = {"field": "v", "query_vector": "QUERY_VECTOR", "k": "DEPTH", "num_candidates": 500}
    connector = elasticsearch(retriever={"knn": {**knn, "filter": {"term": {"lang": "en"}}}})
    assert connector.legs["leg"].query_form == "vector"
    request = connector.source_request("leg", PullQuery("q", "x", {"leg": (1.0, 2.0)}), 7)
    assert request["retriever"]["knn"]["query_vector"] == [1.0, 2.0]
    assert request["retriever"]["knn"]["k"] == 7
    assert request["retriever"]["knn"]["num_candidates"] == 500


def test_the_requests_of_opensearch() -> None:
    connector = build(
        "opensearch", legs={"leg": {"vector_field": "v", "model_id": "m1"}}, fused=None
    )
    assert connector.legs["leg"].query_form == "text"
    request = connector.source_request("leg", PullQuery("q", "red"), 7)
    assert request["query"] == {"neural": {"v": {"query_text": "red", "model_id": "m1", "k": 7}}}
    request = build("opensearch").fused_request(QUERY, 5)
    (processor,) = request["search_pipeline"]["phase_results_processors"]
    assert processor["score-ranker-processor"]["combination"]["parameters"] == {
        "weights": [0.7, 0.3]
    }
    assert request["query"]["hybrid"]["pagination_depth"] == 5


def test_qdrant_takes_the_unnamed_vector_and_a_model_of_the_server() -> None:
    connector = build(
        "qdrant",
        legs={"plain": {}, "words": {"using": "bm25", "model": "qdrant/bm25", "sparse": True}},
        fused=None,
        filter={"must": [{"key": "lang", "match": {"value": "en"}}]},
    )
    query = PullQuery("q", "red", {"plain": (1.0,)})
    plain, words = (connector.source_request(leg, query, 3) for leg in connector.legs)
    assert plain["query"] == [1.0]
    assert "using" not in plain
    assert words["query"] == {"text": "red", "model": "qdrant/bm25"}
    assert connector.legs["words"].query_form == "text"
    assert (
        plain["filter"] == words["filter"] == {"must": [{"key": "lang", "match": {"value": "en"}}]}
    )


def test_qdrants_own_client_reads_the_requests() -> None:
    models = pytest.importorskip("qdrant_client.models")
    connector = build("qdrant", filter={"must": [{"key": "a", "match": {"value": 1}}]})
    fused = models.QueryRequest.model_validate(connector.fused_request(QUERY, 5))
    assert [prefetch.using for prefetch in fused.prefetch] == ["words", "dense"]
    assert fused.query.rrf.weights == [2.0, 1.0]
    leg = models.QueryRequest.model_validate(connector.source_request("words", QUERY, 5))
    assert leg.query.indices == [0, 1]


def test_chromas_own_client_writes_the_same_fused_search() -> None:
    operator = pytest.importorskip("chromadb.execution.expression.operator")
    types = pytest.importorskip("chromadb.base_types")
    sparse = types.SparseVector(indices=[0, 1], values=[1.0, 1.0])
    ranks = [
        operator.Knn(query=sparse, key="words", limit=5, default=1000.0, return_rank=True),
        operator.Knn(query=[0.28, 0.96], limit=5, default=1000.0, return_rank=True),
    ]
    expected = operator.Rrf(ranks, k=20, weights=[2.0, 1.0]).to_dict()
    assert build("chroma").fused_request(QUERY, 5)["rank"] == expected


def test_metrics_and_indexes_that_milvus_refuses() -> None:
    connector = build("milvus", fused={"method": "weighted", "metric": {"words": "BM25"}})
    with pytest.raises(ConfigError, match=r"metric: COSINE .*dense: L2"):
        connector.check_metrics({"dense": "L2", "words": "BM25"})
    connector.check_metrics({"dense": "COSINE", "words": "BM25"})
    with pytest.raises(ConfigError, match=r"words: .*index .*: dense\)"):
        build("milvus").check_metrics({"dense": "L2"})


@pytest.mark.parametrize(
    ("fields", "kind"),
    [(["body"], "match"), (["body^2"], "multi_match"), (["b*"], "multi_match")],
)
def test_a_boost_or_a_pattern_needs_a_multi_match_query(fields: list[str], kind: str) -> None:
    request = elasticsearch(fields=fields).source_request("leg", PullQuery("q", "red"), 3)
    assert list(request["retriever"]["standard"]["query"]) == [kind]


def test_milvus_gets_the_weights_in_the_order_of_the_legs() -> None:
    fused = {"method": "weighted", "weights": {"dense": 0.3, "words": 0.7}, "norm_score": False}
    request = build("milvus", fused=fused, filter="year > 2000").fused_request(QUERY, 5)
    assert request["rerank"] == {
        "strategy": "weighted",
        "params": {"weights": [0.7, 0.3], "norm_score": False},
    }
    assert [search["annsField"] for search in request["search"]] == ["words", "dense"]
    assert {search["filter"] for search in request["search"]} == {"year > 2000"}


@pytest.mark.parametrize("text", ['"} evil', "a\\b", "line\nbreak", "tab\t{x}", "naïve ☃"])
def test_a_query_cannot_leave_its_string_of_graphql(text: str) -> None:
    connector = build("weaviate")
    arguments = connector.source_request("words", PullQuery("q", text), 3)["arguments"]
    literal = arguments.removeprefix("bm25: {query: ").removesuffix(', properties: ["body"]}')
    assert json.loads(literal) == text
    assert "\n" not in arguments


def test_tenants_vectors_and_windows_of_weaviate() -> None:
    connector = build(
        "weaviate",
        tenant="t1",
        legs={"near": {"vector": "default", "vectorized": True}},
        fused=None,
    )
    request = connector.source_request("near", PullQuery("q", "red"), 3)
    assert request["arguments"] == 'nearText: {concepts: ["red"]}'
    query = connector.write_query(request, [])
    assert query.startswith('{ Get { Docs(limit: 3, tenant: "t1"')
    connector = build("weaviate", window=100)
    with pytest.raises(ConfigError, match=r"pull 100, .*QUERY_HYBRID_MAXIMUM_RESULTS"):
        connector.check_depth("", 50)
    connector.check_depth("", 100)
    connector.check_depth("", 200)


def test_only_the_whole_word_depth_is_replaced_in_yql() -> None:
    leg = {"yql": "select * from DEPTHS where {targetHits: DEPTH}x", "ranking": "r"}
    connector = build("vespa", legs={"leg": leg}, fused=None, fused_yql=None)
    request = connector.source_request("leg", PullQuery("q", "DEPTH"), 30)
    assert request["yql"] == "select * from DEPTHS where {targetHits: 30}x"
    assert request["query"] == "DEPTH"


def test_azure_without_a_preview_version_fuses_1000_documents_of_the_text_query() -> None:
    connector = build("azure", api_version="2024-07-01")
    assert "hybridSearch" not in connector.fused_request(QUERY, 50)
    with pytest.raises(ConfigError, match=r"legs\.words: .* 1,000 .*-preview"):
        connector.check_depth("", 50)
    legs = {"words": {"fields": ["body"], "depth": 1000}, "dense": {"vector_field": "v"}}
    connector = build("azure", api_version="2024-07-01", legs=legs, window=20)
    connector.check_depth("", 50)
    assert connector.describe_replay(50)["depth"] == {"words": 1000, "dense": 20}


def test_legs_of_other_lengths_than_the_window() -> None:
    connector = build("elasticsearch", window=60)
    with pytest.raises(ConfigError, match=r"fuses 60 .* 50"):
        connector.check_depth("", 50)
    assert connector.fused_request(QUERY, 100)["retriever"]["rrf"]["rank_window_size"] == 60
    replay = connector.describe_replay(100)
    assert (replay["depth"], replay["top_k"]) == (60, 60)
    legs = {**CASES["elasticsearch"].settings["legs"]}
    legs["words"] = {**legs["words"], "depth": 200}
    with pytest.raises(ConfigError, match="set window: 100"):
        build("elasticsearch", legs=legs).check_depth("", 100)
    legs = {**CASES["qdrant"].settings["legs"]}
    legs["words"] = {**legs["words"], "depth": 200}
    connector = build("qdrant", legs=legs)
    connector.check_depth("", 100)
    prefetch = connector.fused_request(QUERY, 100)["prefetch"]
    assert [entry["limit"] for entry in prefetch] == [200, 100]


@pytest.mark.parametrize(
    ("name", "count"), [("elasticsearch", 1), ("qdrant", 1), ("milvus", 1), ("opensearch", 6)]
)
def test_the_engine_fuses_as_many_legs_as_it_can(name: str, count: int) -> None:
    leg = CASES[name].settings["legs"]["words"]
    fused = {**CASES[name].settings["fused"], "weights": {}}
    if name == "milvus":
        fused.pop("weights")
    with pytest.raises(ConfigError, match=r"^fused\.runs: .*legs\)"):
        build(name, legs={f"leg{n}": leg for n in range(count)}, fused=fused)


def test_weights_may_name_roles() -> None:
    fused = {"method": "rrf", "weights": {"keyword": 3}}
    connector = build("elasticsearch", fused=fused)
    entries = connector.fused_request(QUERY, 5)["retriever"]["rrf"]["retrievers"]
    assert [entry["weight"] for entry in entries] == [3.0, 1.0]
    assert connector.describe_replay(5)["fusion"]["weights"] == {"words": 3.0, "dense": 1.0}


def one_source(name: str, message: str, **source: object) -> tuple[str, dict[str, object], str]:
    return name, {"legs": {"a": source}, "fused": None}, message


WRONG = r"\.a: .*(needed|belongs)"
PAIR = {"a": {"vector": "v"}, "b": {"vector": "w"}}
TEXTS = {"a": {"fields": ["x"]}, "b": {"fields": ["y"]}}


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        one_source("elasticsearch", WRONG),
        one_source("elasticsearch", WRONG, fields=["a"], vector_field="v"),
        one_source("elasticsearch", WRONG, retriever={"knn": {}, "standard": {}}),
        one_source("elasticsearch", WRONG, fields=["a"], num_candidates=5),
        one_source("weaviate", r"'b\{' is no property", properties=["b{"]),
        one_source("weaviate", "a whole number", properties=["b^x"]),
        ("weaviate", {"collection": "docs"}, "a capital letter"),
        ("weaviate", {"id_field": "a b"}, "'a b' is no property"),
        ("weaviate", {"legs": PAIR}, "keyword search .*vector"),
        (
            "chroma",
            {"search_api": False, "legs": {"dense": {}}, "fused": {"method": "rrf"}},
            "search_api: true",
        ),
        (
            "chroma",
            {"search_api": False, "legs": {"words": {"key": "words"}}, "fused": None},
            "words: .*search_api",
        ),
        ("vespa", {"fused_yql": None}, "fused_yql belong"),
        ("azure", {"most_documents": 1001}, "most_documents"),
        ("azure", {"legs": TEXTS}, "text query .* a, b"),
        ("qdrant", {"fused": {"weights": {"dense": 0}}}, r"^fused\.weights: 0 .*'dense'"),
        *((name, {"path": "folder"}, "url .* or path") for name in FOLDERS),
    ],
)
def test_what_no_connector_may_be(name: str, settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(name, **settings)


@pytest.mark.parametrize("name", FOLDERS)
def test_an_engine_is_a_server_or_a_folder(name: str) -> None:
    with pytest.raises(ConfigError, match=r"url .* or path"):
        connectors.build({"method": name, **CASES[name].settings})
