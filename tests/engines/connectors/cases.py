"""Every connector behind HTTP beside the fake engine that it is tested with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fusion_bench.engines.connectors import PullQuery
from tests.engines.connectors.fake_hybrid import FakeAzure, FakeVespa, FakeWeaviate
from tests.engines.connectors.fake_search import FakeElasticsearch, FakeOpenSearch
from tests.engines.connectors.fake_vectors import FakeChroma, FakeMilvus, FakeQdrant
from tests.engines.connectors.loopback import FakeEngine, Json

KEYWORD, SEMANTIC = {"roles": ["keyword"]}, {"roles": ["semantic"]}
#: Both legs have other orders, and no two documents of a list have equal scores.
QUERY = PullQuery(
    "q1",
    "red apple",
    vectors={"dense": (0.28, 0.96)},
    sparse_vectors={"words": {0: 1.0, 1: 1.0}},
)


@dataclass(frozen=True)
class Case:
    """A connector, and how its engine's answers are broken.

    Attributes:
        engine: Makes the fake engine.
        settings: Of the connector, without the URL.
        incomplete: Changes that make an answer incomplete.
        rows: Where the hits of an answer stand.
        score: The key of a hit's score; None = columns.
        is_distance: Whether the leg ``dense`` has distances.
        depth: Documents that are asked for.
    """

    engine: Callable[[], FakeEngine]
    settings: Mapping[str, Any]
    incomplete: Mapping[str, Callable[[Json], Json]] = field(default_factory=dict)
    rows: tuple[str, ...] = ()
    score: tuple[str, ...] | None = None
    is_distance: bool = False
    depth: int = 5


def merge(path: str | tuple[str, ...], value: Json) -> Callable[[Json], Json]:
    def change(answer: Json) -> Json:
        *parents, last = path.split(".") if isinstance(path, str) else path
        place = answer
        for key in parents:
            place = place[key]
        place[last] = value
        return answer

    return change


def make_legs(words: Mapping[str, Any], dense: Mapping[str, Any]) -> dict[str, Any]:
    return {"words": {**KEYWORD, **words}, "dense": {**SEMANTIC, **dense}}


SHARD = {"total": 2, "successful": 1, "skipped": 0, "failed": 1}
SEARCH_API = {
    "timed out": merge("timed_out", value=True),
    "partial": merge("is_partial", value=True),
    "running": merge("is_running", value=True),
    "a shard failed": merge("_shards", SHARD),
    "a cluster was skipped": merge("_clusters", {"total": 2, "successful": 1, "skipped": 1}),
    "error with status 200": merge("error", {"type": "boom", "reason": "no luck"}),
}
CASES: dict[str, Case] = {
    "elasticsearch": Case(
        FakeElasticsearch,
        {
            "index": "docs",
            "text_field": "meta.body",
            "legs": make_legs({"fields": ["body"]}, {"vector_field": "embedding"}),
            "fused": {"method": "rrf", "rank_constant": 20, "weights": {"words": 2}},
        },
        SEARCH_API,
        ("hits", "hits"),
        ("_score",),
    ),
    "opensearch": Case(
        FakeOpenSearch,
        {
            "index": "docs",
            "text_field": "meta.body",
            "legs": make_legs({"fields": ["body", "title^2"]}, {"vector_field": "embedding"}),
            "fused": {
                "method": "score-ranker-processor",
                "rank_constant": 20,
                "weights": {"words": 0.7, "dense": 0.3},
            },
        },
        SEARCH_API,
        ("hits", "hits"),
        ("_score",),
    ),
    "qdrant": Case(
        FakeQdrant,
        {
            "collection": "docs",
            "id_field": "doc",
            "text_field": "body",
            "legs": make_legs(
                {"using": "words", "sparse": True}, {"using": "dense", "exact": True}
            ),
            "fused": {"method": "rrf", "k": 20, "weights": {"words": 2, "dense": 1}},
        },
        {"error with status 200": merge("status", {"error": "no luck"})},
        ("result", "points"),
        ("score",),
        is_distance=True,
    ),
    "milvus": Case(
        FakeMilvus,
        {
            "collection": "docs",
            "id_field": "doc",
            "text_field": "body",
            "legs": make_legs({"search": "text"}, {"params": {"ef": 64}}),
            "fused": {"method": "rrf", "k": 20},
        },
        {"error with status 200": lambda _: {"code": 1, "message": "service not ready"}},
        ("data",),
        ("distance",),
        is_distance=True,
    ),
    "chroma": Case(
        FakeChroma,
        {
            "collection": "docs",
            "search_api": True,
            "legs": make_legs({"key": "words", "search": "sparse_vector"}, {}),
            "fused": {
                "method": "rrf",
                "k": 20,
                "weights": {"words": 2, "dense": 1},
                "default": 1000,
            },
        },
        {"error with status 200": merge("error", "InternalError")},
        ("scores",),
        is_distance=True,
    ),
    "weaviate": Case(
        FakeWeaviate,
        {
            "collection": "Docs",
            "id_field": "doc",
            "text_field": "body",
            "window": 5,
            "legs": make_legs({"properties": ["body"]}, {"vector": "body_vector"}),
            "fused": {"method": "rankedFusion", "alpha": 0.4},
        },
        {"errors with status 200": merge("errors", [{"message": "shard is read-only"}])},
        ("data", "Get", "Docs"),
        ("_additional", "score"),
        is_distance=True,
    ),
    "vespa": Case(
        lambda: FakeVespa(window=7),
        {
            "text_field": "body",
            "legs": {
                "words": {**KEYWORD, "yql": "select * from docs where true", "ranking": "bm25"},
                "dense": {
                    **SEMANTIC,
                    "yql": "select * from docs where {targetHits: DEPTH}"
                    "nearestNeighbor(embedding, q)",
                    "ranking": "near",
                    "query_tensor": "q",
                },
            },
            "fused": {"method": "reciprocal_rank", "k": 60},
            "fused_yql": "select * from docs where true",
            "window": 7,
        },
        {
            "a soft timeout": merge("root.coverage", {"coverage": 61, "full": False}),
            "errors with status 200": merge("root.errors", [{"code": 12, "message": "Timeout"}]),
        },
        ("root", "children"),
        ("relevance",),
        depth=7,
    ),
    "azure": Case(
        FakeAzure,
        {
            "index": "docs",
            "api_version": "2025-03-01-preview",
            "id_field": "id",
            "text_field": "body",
            "legs": make_legs(
                {"fields": ["body"], "options": {"queryType": "full"}},
                {"vector_field": "embedding"},
            ),
            "fused": {"method": "rrf", "weights": {"dense": 0.5}},
        },
        {
            "a next link": merge(("@odata.nextLink",), "https://…"),
            "error with status 200": merge("error", {"code": "boom", "message": "no luck"}),
            "part of it": merge(("@search.coverage",), 66.7),
        },
        ("value",),
        ("@search.score",),
    ),
}
