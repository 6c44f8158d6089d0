"""What each engine can say of a system, what is lost of it, and what its files hold."""

import ast
import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import pytest

from fusion_bench.engines.dialects.lucene import Lucene
from fusion_bench.engines.dialects.pairs import LanceDB
from fusion_bench.engines.dialects.sql import CosmosDB
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Translation, dialects
from fusion_bench.experiment.system import System
from tests.engines.cases import BY_SOURCE, ROLES, scores
from tests.engines.reading import read_system

Keys: TypeAlias = str | Mapping[str, Any]
LISTS = {
    "bm25": {"q": {"a": 0.9, "b": 0.6, "c": 0.5}},
    "dense": {"q": {"c": 0.95, "d": 0.9, "a": 0.45}},
    "hyde": {"q": {"e": 0.9, "c": 0.7}},
}
#: A list counts twice as much.
HEAVY = {"dense": 2.0}


def translate(
    engine: str,
    fusion: Keys,
    settings: Mapping[str, Any],
    roles: Mapping[str, frozenset[str]] = ROLES,
) -> tuple[System, Translation]:
    """A system of ours, of two lists where nothing else is said, and what it becomes."""
    keys = {"runs": ["bm25", "dense"], "depth": 50, "top_k": 10, **settings}
    ours = System("s", fusion=fusion, **keys)
    return ours, dialects.find_plugin(engine).translate(ours, roles)


@pytest.mark.parametrize(
    ("engine", "fusion", "settings", "fidelity", "reason", "options"),
    [
        ("azure", "rrf", {}, "approximate", "k", {}),
        ("azure", {"method": "rrf", "k": 59, "weights": {"bm25": 2}}, {}, "exact", "", {}),
        # Our k is one less: positions count from 0.
        ("chroma", {"method": "rrf", "weights": HEAVY}, {}, "exact", "", {"k": 61}),
        ("cosmos", "rrf", {"depth": None}, "approximate", "every function", {}),
        (
            "cosmos",
            {"weights": {"keyword": -2.0, "dense": 0.5}},
            {"dialect": "cosmos", "depth": None},
            "exact",
            "",
            {"weights": {"bm25": -2.0, "dense": 0.5}},
        ),
        ("cosmos", {}, {"dialect": "cosmos", "depth": 5}, "approximate", "depth", {}),
        ("langchain", "convex", {}, "unsupported", "weighted_reciprocal_rank", {}),
        ("langchain", {"method": "rrf", "k": 20, "weights": HEAVY}, {}, "exact", "", {"c": 20}),
        ("llamaindex", {"method": "rrf", "k": 59}, {}, "exact", "", {}),
        ("llamaindex", {"method": "rrf", "k": 60}, {}, "approximate", "k", {}),
        ("llamaindex", {"method": "rrf", "k": 59, "weights": HEAVY}, {}, "approximate", "w", {}),
        (
            "lancedb",
            {"method": "rrf", "k": 0, "weights": {"dense": 3.0}},
            {},
            "exact",
            "",
            {"vector": "dense", "weight_vector": 0.75, "weight_fts": 0.25},
        ),
        (
            "lancedb",
            {"method": "weighted_sum", "normalize": BY_SOURCE},
            {"depth": 9, "top_k": 9},
            "rank-equivalent",
            "alone",
            {},
        ),
        ("manticore", {"method": "rrf", "weights": HEAVY}, {}, "exact", "", {"text": "bm25"}),
        ("milvus", {"method": "rrf", "k": 60.5}, {}, "exact", "", {"k": 60.5}),
        ("milvus", {"method": "rrf", "weights": HEAVY}, {}, "approximate", "weights", {"k": 60}),
        (
            "milvus",
            {"method": "weighted_sum", "normalize": "none", "weights": HEAVY},
            {},
            "exact",
            "",
            {"norm_score": False, "weights": {"bm25": 0.5, "dense": 1.0}},
        ),
        ("milvus", "convex", {}, "unsupported", "min_max", {}),
        # A weight divides the rank: with weights of 1 our k is one less.
        ("qdrant", "rrf", {"runs": [*ROLES]}, "exact", "", {"k": 61}),
        ("qdrant", {"method": "rrf", "weights": HEAVY}, {}, "approximate", "w", {"k": 61}),
        ("qdrant", {"method": "rrf", "k": 0, "weights": HEAVY}, {}, "exact", "", {"k": 1}),
        (
            "qdrant",
            {"method": "rrf", "weights": {"dense": 2.0, "bm25": 2.0}},
            {},
            "exact",
            "",
            {"k": 61, "weights": {}},
        ),
        ("qdrant", {"method": "rrf", "k": 60.5}, {}, "exact", "", {"k": 61}),
        (
            "qdrant",
            {"method": "rrf", "k": 0.25},
            {},
            "exact",
            "",
            {"k": 2, "weights": {"bm25": 0.25, "dense": 0.25}},
        ),
        ("qdrant", "dbsf", {"runs": [*ROLES]}, "exact", "", {"method": "dbsf"}),
        ("qdrant", {"method": "dbsf", "weights": HEAVY}, {}, "approximate", "weights", {}),
        # Twice top_k is fetched.
        ("semche", "rrf", {"depth": 20, "top_k": 5}, "exact", "", {}),
        ("semche", "rrf", {"depth": 20, "top_k": 10}, "exact", "", {}),
        ("semche", "rrf", {"depth": None, "top_k": None}, "exact", "10000", {}),
        ("semche", "rrf", {"depth": 5, "top_k": 2}, "approximate", "6 instead of 5", {}),
        ("semche", "rrf", {"depth": 10, "top_k": 10}, "approximate", "20 instead of 10", {}),
        ("semche", "rrf", {"depth": 10, "top_k": None}, "approximate", "top_k", {}),
        ("semche", "rrf", {"runs": [*ROLES]}, "unsupported", "runs", {}),
        ("vespa", "rrf", {}, "approximate", "every hit", {}),
        ("vespa", "convex", {}, "approximate", "every hit", {}),
        (
            "weaviate",
            {"method": "rrf", "k": 59, "weights": {"dense": 3.0}},
            {},
            "exact",
            "",
            {"alpha": 0.75},
        ),
        ("weaviate", "rrf", {}, "approximate", "k = 59", {"alpha": 0.5}),
        ("weaviate", "convex", {}, "exact", "", {"alpha": 0.5}),
        ("weaviate", {"method": "convex", "normalize": "l2"}, {}, "unsupported", "l2", {}),
        ("weaviate", "rrf", {"runs": [*ROLES]}, "unsupported", "one keyword search", {}),
        ("haystack", {"method": "rrf", "weights": HEAVY}, {}, "exact", "", {}),
        ("haystack", {"method": "rrf", "k": 10}, {}, "approximate", "k", {}),
        ("haystack", "comb_sum", {}, "exact", "", {"method": "merge"}),
        ("haystack", "convex", {}, "unsupported", "min_max", {}),
        ("pgvector", "convex", {"depth": {"bm25": 7, "dense": 9}}, "exact", "", {}),
        ("elasticsearch", {"method": "rrf", "weights": {"semantic": 2}}, {}, "exact", "", {}),
        ("elasticsearch", "rrf", {"top_k": None}, "approximate", "top_k", {}),
        ("elasticsearch", "rrf", {"depth": {"bm25": 5}}, "approximate", "depth", {}),
        ("elasticsearch", {"method": "rrf", "k": 0}, {}, "approximate", "1 instead of 0", {}),
        (
            "elasticsearch",
            {"method": "rrf", "normalize": "three_lists"},
            {},
            "rank-equivalent",
            "three_lists",
            {},
        ),
        ("elasticsearch", "rrf_v2", {}, "approximate", "bonus", {}),
        ("elasticsearch", "convex", {}, "exact", "count as equal", {}),
        (
            "elasticsearch",
            {"method": "convex", "missing": "skip"},
            {},
            "approximate",
            "missing",
            {},
        ),
        (
            "elasticsearch",
            {"method": "convex", "normalize": "z_score"},
            {},
            "unsupported",
            "z_score",
            {},
        ),
        ("elasticsearch", "rrf", {"min_relevance": 0.1}, "approximate", "min_relevance", {}),
        ("elasticsearch", "rrf", {"runs": ["bm25"]}, "unsupported", "runs", {}),
        ("opensearch", {"method": "rrf", "weights": {"dense": 3.0}}, {}, "exact", "", {}),
        ("opensearch", {"method": "rrf", "k": 0}, {}, "approximate", "k: 1", {}),
        ("opensearch", "convex", {}, "approximate", "0.001", {}),
        ("opensearch", {"method": "convex", "normalize": "max"}, {}, "unsupported", "max", {}),
        ("opensearch", "rrf_v2", {}, "approximate", "bonus", {}),
        ("lucene", "rrf", {}, "exact", "", {}),
        ("lucene", {"method": "rrf", "weights": HEAVY}, {}, "approximate", "weights", {}),
        (
            "lucene",
            {
                "method": "log_odds",
                "normalize": "none",
                "weights": {"dense": 3.0},
                "exponent": 0.7,
            },
            {"depth": None},
            "exact",
            "",
            {"alpha": 0.7},
        ),
        ("lucene", "log_odds", {}, "unsupported", "normalize", {}),
        ("adr-005", {"method": "rrf", "weights": HEAVY}, {"runs": ["bm25", "hyde", "dense"]},
         "exact", "", {"method": "rrf_v2"}),
    ],
)  # fmt: skip
def test_what_is_lost(
    engine: str,
    fusion: Keys,
    settings: Mapping[str, Any],
    fidelity: str,
    reason: str,
    options: Mapping[str, Any],
) -> None:
    ours, translation = translate(engine, fusion, settings)
    assert translation.fidelity == fidelity
    assert any(reason in text for text in translation.reasons) or not reason
    if translation.system is None:
        return
    assert translation.system.fusion.model_dump().items() >= options.items()
    if fidelity in {"exact", "rank-equivalent"}:
        ties = translation.system.fusion.ties  # an engine breaks ties by a rule of its own
        assert [*scores(translation.system, LISTS)] == [*scores(ours, LISTS, ties=ties)]
    for name, text in dialects.find_plugin(engine).write(translation.system).files.items():
        if name.endswith(".py"):
            assert ast.parse(text)


@pytest.mark.parametrize(
    ("engine", "roles", "reason"),
    [
        ("azure", {"bm25": "keyword", "title": "keyword"}, "bm25, title"),
        ("manticore", {"a": "keyword", "b": "keyword"}, "a, b"),
        ("manticore", {"query": "semantic", "b": "keyword"}, "'query'"),
        ("manticore", {"a": "keyword"}, "two or more"),
        ("opensearch", dict.fromkeys("abcdef", "semantic"), "2 to 5"),
        ("conv-07-05", dict.fromkeys("abcd", ""), "at most 3"),
    ],
)
def test_lists_that_cannot_be_fused(engine: str, roles: dict[str, str], reason: str) -> None:
    by_name = {name: frozenset({role} - {""}) for name, role in roles.items()}
    _, translation = translate(engine, "rrf", {"runs": [*roles]}, by_name)
    assert translation.fidelity == "unsupported"
    assert reason in translation.reasons[-1]


def test_v2_of_adr_005_needs_the_question() -> None:
    fusion = {"method": "rrf", "weights": {"hyde": 2}}
    _, translation = translate("adr-005", fusion, {"runs": ["bm25", "hyde"]})
    assert translation.fidelity == "unsupported"


def value_of(data: Any, path: str) -> Any:  # noqa: ANN401 - JSON
    for key in path.split("."):
        data = data[int(key) if isinstance(data, list) else key]
    return data


RRF_RETRIEVER = "retriever.rrf"
WINDOWS = {"bm25": 200, "dense": 40, "hyde": 40}


@pytest.mark.parametrize(
    ("engine", "fusion", "settings", "file", "expected"),
    [
        (
            "azure",
            {"method": "rrf", "k": 59, "weights": {"bm25": 2.0}},
            {"runs": [*WINDOWS], "depth": WINDOWS},
            "search.json",
            {
                "hybridSearch": {"maxTextRecallSize": 200},
                "vectorQueries.0.fields": "dense",
                "vectorQueries.0.k": 40,
                "vectorQueries.0.weight": 0.5,
                "vectorQueries.1.fields": "hyde",
            },
        ),
        (
            "manticore",
            {"method": "rrf", "weights": {"dense": 2}},
            {"runs": ["dense", "bm25"]},
            "search.json",
            {
                "knn.0.name": "dense",
                "options.fusion_weights": {"dense": 2.0, "query": 1.0},
                "options.window_size": 50,
                "options.rank_constant": 60,
            },
        ),
        (
            "elasticsearch",
            {"method": "rrf", "weights": {"semantic": 2}},
            {},
            "search.json",
            {
                f"{RRF_RETRIEVER}.rank_constant": 60,
                f"{RRF_RETRIEVER}.rank_window_size": 50,
                f"{RRF_RETRIEVER}.retrievers.0.weight": 1.0,
                f"{RRF_RETRIEVER}.retrievers.1.weight": 2.0,
                "size": 10,
            },
        ),
    ],
)
def test_a_request_of_json(
    engine: str,
    fusion: Keys,
    settings: Mapping[str, Any],
    file: str,
    expected: Mapping[str, Any],
) -> None:
    _, translation = translate(engine, fusion, settings)
    assert translation.system is not None
    request = json.loads(dialects.find_plugin(engine).write(translation.system).files[file])
    assert {path: value_of(request, path) for path in expected} == expected


@pytest.mark.parametrize(
    ("engine", "fusion", "settings", "file", "parts"),
    [
        (
            "chroma",
            {"method": "rrf", "weights": HEAVY},
            {"depth": 30},
            "search.py",
            ["limit=30", "default=1000000000000.0", "return_rank=True", "weights=[1.0, 2.0]"],
        ),
        (
            "langchain",
            {"method": "rrf", "k": 20, "weights": HEAVY},
            {"depth": 9, "top_k": None},
            "retriever.py",
            ["weights=[1.0, 2.0],\n    c=20,", "{'bm25': 9, 'dense': 9}", "TOP_K = 18"],
        ),
        (
            "llamaindex",
            "convex",
            {"depth": 7},
            "retriever.py",
            ["mode='relative_score'", "retriever_weights=[0.5, 0.5]"],
        ),
        ("semche", "rrf", {"depth": 20, "top_k": 5}, "search.py", ["top_k=10, ", "TOP_K = 5"]),
        ("semche", "rrf", {"depth": 5, "top_k": 2}, "search.py", ["top_k=3, "]),
        ("semche", "rrf", {"depth": 10, "top_k": 10}, "search.py", ["top_k=10, "]),
        ("semche", "rrf", {"depth": 10, "top_k": None}, "search.py", ["top_k=5, "]),
        ("semche", "rrf", {"depth": None, "top_k": None}, "search.py", ["top_k=5000, "]),
        (
            "vespa",
            {"method": "rrf", "weights": {"bm25": 2.0}},
            {"depth": 200},
            "rank-profile.sd",
            [
                "rerank-count: 200",
                "2.0 * reciprocal_rank(list_1, 60.0)",
                " + 1.0 * reciprocal_rank(list_2, 60.0)",
            ],
        ),
        ("weaviate", "rrf", {}, "weaviate.env", ["QUERY_HYBRID_MAXIMUM_RESULTS=50\n"]),
        ("haystack", {"method": "rrf", "k": 10}, {}, "pipeline.py", ["'reciprocal_rank_fusion'"]),
        ("haystack", "comb_sum", {}, "pipeline.py", ["join_mode='merge'"]),
        (
            "pgvector",
            "convex",
            {"depth": {"bm25": 7, "dense": 9}, "top_k": 3},
            "search.sql",
            ["LIMIT 7)", "LIMIT 9)", "LIMIT 3;\n"],
        ),
    ],
)
def test_a_request_as_text(
    engine: str, fusion: Keys, settings: Mapping[str, Any], file: str, parts: list[str]
) -> None:
    _, translation = translate(engine, fusion, settings)
    assert translation.system is not None
    text = dialects.find_plugin(engine).write(translation.system).files[file]
    assert [part for part in parts if part not in text] == []
    assert text.count("{") == text.count("}")


def test_a_query_of_cosmos_is_read_back_with_its_signs() -> None:
    fusion = {"weights": {"keyword": -2.0, "dense": 0.5}}
    system = System("s", ["bm25", "dense"], dialect="cosmos", fusion=fusion)
    written = CosmosDB.translate(system, ROLES).system
    assert written is not None
    files = CosmosDB.write(written).files
    assert files["query.sql"].endswith("[-2.0, 0.5]\n)\n")
    again = read_system(CosmosDB, files)
    assert scores(again, LISTS) == scores(written, LISTS)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weights": {"bm25": 0.25, "dense": 0.75}, "alpha": 1e-7, "base_rate": 0.5},
        {"signal_base_rates": {"dense": 0.1}, "gating": "softplus"},
        {"logit_bounds": {"bm25": (-1.5, 4), "dense": (0, 1e-3)}},
    ],
)
def test_a_query_of_log_odds_is_read_back(options: Mapping[str, Any]) -> None:
    fusion = {"method": "LogOddsFusionQuery", **options}
    query = System("s", ["bm25", "dense"], dialect="lucene", fusion=fusion)
    files = Lucene.write(query).files
    again = read_system(Lucene, files)
    assert scores(again, LISTS) == scores(query, LISTS)
    assert Lucene.write(again).files == files


@pytest.mark.parametrize("method", ["RRFReranker", "MRRReranker", "LinearCombinationReranker"])
def test_only_the_linear_combination_needs_a_version(method: str) -> None:
    fusion = {"method": method, "vector": "dense"}
    notes = LanceDB.write(System("s", ["bm25", "dense"], dialect="lancedb", fusion=fusion)).notes
    assert ("3437" in " ".join(notes)) == (method == "LinearCombinationReranker")


def test_the_application_gets_every_document_that_its_reranker_reads() -> None:
    blend = {"method": "linear", "reranker": "r", "depth": 50, "missing": "below"}
    _, translation = translate("elasticsearch", "rrf", {"depth": 100, "blend": blend})
    assert translation.system is not None
    assert translation.system.top_k == 50
    assert any(reason.startswith("top_k: 50 ") for reason in translation.reasons)
    files = dialects.find_plugin("elasticsearch").write(translation.system).files
    assert json.loads(files["search.json"])["size"] == 50


LOG_ODDS = {"method": "LogOddsFusionQuery"}


@pytest.mark.parametrize(
    ("engine", "fusion", "message"),
    [
        ("lancedb", {"method": "MRRReranker", "weight_vector": 1.0}, r"must be 1, given 1\.5"),
        ("semche", {"dense_weight": 0, "sparse_weight": 0}, "above 0"),
        (
            "opensearch",
            {"normalization": "z_score", "combination": "harmonic_mean"},
            "arithmetic_mean",
        ),
        ("lucene", {**LOG_ODDS, "gating": "softplus", "logit_bounds": {"bm25": (0, 1)}}, "gating"),
        ("lucene", {**LOG_ODDS, "logit_bounds": {"bm25": (1, 0)}}, "must be below 0"),
        ("lucene", {**LOG_ODDS, "alpha": 2}, "alpha"),
        ("lucene", {**LOG_ODDS, "base_rate": 1}, "base_rate"),
    ],
)
def test_what_no_fusion_may_be(engine: str, fusion: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        System("s", ["bm25", "dense"], dialect=engine, fusion=fusion)


@pytest.mark.parametrize(
    ("engine", "settings", "message"),
    [
        ("azure", {"fusion": {"weights": {"bm25": 2.0}}}, "weighs 1"),
        ("azure", {"fusion": {"weights": {"keyword": 0.5}}}, "weighs 1"),
        *(
            (
                "opensearch",
                {"fusion": {"method": "score-ranker-processor", "weights": weights}},
                "sum of 1",
            )
            for weights in (
                {"bm25": 0.5},
                {"bm25": 2.0, "dense": 1.0},
                {"bm25": 0.5, "dense": 0.4},
            )
        ),
        (
            "lucene",
            {"fusion": {**LOG_ODDS, "weights": {"bm25": 0.5, "dense": 0.6}}},
            "sum of 1",
        ),
        ("weaviate", {"runs": ["bm25", "hyde"]}, "two sources"),
    ],
)
def test_what_does_not_fit_the_lists(
    engine: str, settings: Mapping[str, Any], message: str
) -> None:
    system = System("s", dialect=engine, **{"runs": ["bm25", "dense"], **settings})
    ((_, error), *_) = system.find_misfits(ROLES, [])
    assert message in str(error)


def test_two_keyword_searches_of_azure_fit_where_one_is_named() -> None:
    roles = dict.fromkeys(("bm25", "title"), frozenset({"keyword"}))
    two = System("s", [*roles], dialect="azure", fusion={"text": "title"})
    assert not [*two.find_misfits(roles, [])]


@pytest.mark.parametrize(
    ("engine", "settings", "message"),
    [
        ("cosmos", {"depth": 5}, "depth"),
        ("manticore", {"fusion": {"text": "c"}}, "it has no run 'c'"),
        ("semche", {"fusion": {"vector": "dense"}, "depth": 7}, "even"),
        ("weaviate", {}, "vector"),
        ("conv-07-05", {"runs": [*"abcd"], "top_k": None}, "at most 3 lists"),
        ("qmd", {"fusion": {"weights": {}, "bonus": {1: 0.1}}}, "bonus"),
        ("qmd", {"fusion": {"bonus_unit": "relative"}}, "bonus_unit"),
        ("qmd", {"blend": {"reranker": "ce", "missing": "zero"}}, "blend"),
        ("adr-005", {"fusion": {"method": "rrf", "weights": {"dense": 2.0}}}, "rrf_v2"),
        ("adr-005", {"fusion": "rrf", "blend": {"reranker": "ce"}}, "blend"),
        (
            "adr-005",
            {"fusion": {"normalize": "three_lists", "weights": {"dense": 2.0}}},
            "normalize",
        ),
        ("adr-005", {}, "weights"),  # by role
    ],
)
def test_what_cannot_be_written(engine: str, settings: Mapping[str, Any], message: str) -> None:
    system = System("s", dialect=engine, **{"runs": ["bm25", "dense"], **settings})
    with pytest.raises(ConfigError, match=message):
        dialects.find_plugin(engine).write(system)
