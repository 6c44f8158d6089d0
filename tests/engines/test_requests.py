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


Case: TypeAlias = tuple[str, Keys, Mapping[str, Any]]
WINDOWS = {"bm25": 200, "dense": 40, "hyde": 40}
#: What golden/engines/translations.txt has: engine, fusion and settings of a system of ours.
TRANSLATIONS: list[Case] = [
    ("azure", "rrf", {}),
    ("azure", {"method": "rrf", "k": 59, "weights": {"bm25": 2}}, {}),
    # Our k is one less: positions count from 0.
    ("chroma", {"method": "rrf", "weights": HEAVY}, {}),
    ("cosmos", "rrf", {"depth": None}),
    ("cosmos", {"weights": {"keyword": -2.0, "dense": 0.5}}, {"dialect": "cosmos", "depth": None}),
    ("cosmos", {}, {"dialect": "cosmos", "depth": 5}),
    ("langchain", "convex", {}),
    ("langchain", {"method": "rrf", "k": 20, "weights": HEAVY}, {}),
    ("llamaindex", {"method": "rrf", "k": 59}, {}),
    ("llamaindex", {"method": "rrf", "k": 60}, {}),
    ("llamaindex", {"method": "rrf", "k": 59, "weights": HEAVY}, {}),
    ("lancedb", {"method": "rrf", "k": 0, "weights": {"dense": 3.0}}, {}),
    ("lancedb", {"method": "weighted_sum", "normalize": BY_SOURCE}, {"depth": 9, "top_k": 9}),
    ("manticore", {"method": "rrf", "weights": HEAVY}, {}),
    ("milvus", {"method": "rrf", "k": 60.5}, {}),
    ("milvus", {"method": "rrf", "weights": HEAVY}, {}),
    ("milvus", {"method": "weighted_sum", "normalize": "none", "weights": HEAVY}, {}),
    ("milvus", "convex", {}),
    ("qdrant", "rrf", {"runs": [*ROLES]}),
    ("qdrant", {"method": "rrf", "weights": HEAVY}, {}),
    ("qdrant", {"method": "rrf", "k": 0, "weights": HEAVY}, {}),
    ("qdrant", {"method": "rrf", "weights": {"dense": 2.0, "bm25": 2.0}}, {}),
    ("qdrant", {"method": "rrf", "k": 60.5}, {}),
    ("qdrant", {"method": "rrf", "k": 0.25}, {}),
    ("qdrant", "dbsf", {"runs": [*ROLES]}),
    ("qdrant", {"method": "dbsf", "weights": HEAVY}, {}),
    ("semche", "rrf", {"depth": 20, "top_k": 5}),
    ("semche", "rrf", {"depth": 20, "top_k": 10}),
    ("semche", "rrf", {"depth": None, "top_k": None}),
    ("semche", "rrf", {"depth": 5, "top_k": 2}),
    ("semche", "rrf", {"depth": 10, "top_k": 10}),
    ("semche", "rrf", {"depth": 10, "top_k": None}),
    ("semche", "rrf", {"runs": [*ROLES]}),
    ("vespa", "rrf", {}),
    ("vespa", "convex", {}),
    ("weaviate", {"method": "rrf", "k": 59, "weights": {"dense": 3.0}}, {}),
    ("weaviate", "rrf", {}),
    ("weaviate", "convex", {}),
    ("weaviate", {"method": "convex", "normalize": "l2"}, {}),
    ("weaviate", "rrf", {"runs": [*ROLES]}),
    ("haystack", {"method": "rrf", "weights": HEAVY}, {}),
    ("haystack", {"method": "rrf", "k": 10}, {}),
    ("haystack", "comb_sum", {}),
    ("haystack", "convex", {}),
    ("pgvector", "convex", {"depth": {"bm25": 7, "dense": 9}}),
    ("elasticsearch", {"method": "rrf", "weights": {"semantic": 2}}, {}),
    ("elasticsearch", "rrf", {"top_k": None}),
    ("elasticsearch", "rrf", {"depth": {"bm25": 5}}),
    ("elasticsearch", {"method": "rrf", "k": 0}, {}),
    ("elasticsearch", {"method": "rrf", "normalize": "three_lists"}, {}),
    ("elasticsearch", "rrf_v2", {}),
    ("elasticsearch", "convex", {}),
    ("elasticsearch", {"method": "convex", "missing": "skip"}, {}),
    ("elasticsearch", {"method": "convex", "normalize": "z_score"}, {}),
    ("elasticsearch", "rrf", {"min_relevance": 0.1}),
    ("elasticsearch", "rrf", {"runs": ["bm25"]}),
    ("opensearch", {"method": "rrf", "weights": {"dense": 3.0}}, {}),
    ("opensearch", {"method": "rrf", "k": 0}, {}),
    ("opensearch", "convex", {}),
    ("opensearch", {"method": "convex", "normalize": "max"}, {}),
    ("opensearch", "rrf_v2", {}),
    ("lucene", "rrf", {}),
    ("lucene", {"method": "rrf", "weights": HEAVY}, {}),
    (
        "lucene",
        {"method": "log_odds", "normalize": "none", "weights": {"dense": 3.0}, "exponent": 0.7},
        {"depth": None},
    ),
    ("lucene", "log_odds", {}),
    ("adr-005", {"method": "rrf", "weights": HEAVY}, {"runs": ["bm25", "hyde", "dense"]}),
]
#: The systems whose files golden/engines/requests.txt has.
REQUESTS: list[Case] = [
    (
        "azure",
        {"method": "rrf", "k": 59, "weights": {"bm25": 2.0}},
        {"runs": [*WINDOWS], "depth": WINDOWS},
    ),
    ("manticore", {"method": "rrf", "weights": {"dense": 2}}, {"runs": ["dense", "bm25"]}),
    ("elasticsearch", {"method": "rrf", "weights": {"semantic": 2}}, {}),
    ("chroma", {"method": "rrf", "weights": HEAVY}, {"depth": 30}),
    ("langchain", {"method": "rrf", "k": 20, "weights": HEAVY}, {"depth": 9, "top_k": None}),
    ("llamaindex", "convex", {"depth": 7}),
    ("semche", "rrf", {"depth": 20, "top_k": 5}),
    ("semche", "rrf", {"depth": 5, "top_k": 2}),
    ("semche", "rrf", {"depth": 10, "top_k": 10}),
    ("semche", "rrf", {"depth": 10, "top_k": None}),
    ("semche", "rrf", {"depth": None, "top_k": None}),
    ("vespa", {"method": "rrf", "weights": {"bm25": 2.0}}, {"depth": 200}),
    ("weaviate", "rrf", {}),
    ("haystack", {"method": "rrf", "k": 10}, {}),
    ("haystack", "comb_sum", {}),
    ("pgvector", "convex", {"depth": {"bm25": 7, "dense": 9}, "top_k": 3}),
]


@pytest.mark.parametrize(("engine", "fusion", "settings"), TRANSLATIONS)
def test_what_is_exact_has_the_order_and_what_is_written_parses(
    engine: str, fusion: Keys, settings: Mapping[str, Any]
) -> None:
    ours, translation = translate(engine, fusion, settings)
    if translation.system is None:
        assert translation.fidelity == "unsupported"
        return
    if translation.fidelity in {"exact", "rank-equivalent"}:
        ties = translation.system.fusion.ties  # an engine breaks ties by a rule of its own
        assert [*scores(translation.system, LISTS)] == [*scores(ours, LISTS, ties=ties)]
    for name, text in dialects.find_plugin(engine).write(translation.system).files.items():
        assert text.count("{") == text.count("}")
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
        ("manticore", {"fusion": {"text": "c"}}, "no run 'c'"),
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
