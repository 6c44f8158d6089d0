"""Elasticsearch's numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import pytest

from fusion_bench.engines.dialects.elasticsearch import Elasticsearch
from fusion_bench.engines.dialects.opensearch import OpenSearch
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Dialect
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend.formulas import Replace
from tests.engines.blend_cases import final_scores
from tests.engines.cases import ROLES, scores

Keys: TypeAlias = str | Mapping[str, Any]


def system(fusion: Keys, depth: int = 10) -> System:
    return System("s", ["bm25", "dense"], dialect="elasticsearch", fusion=fusion, depth=depth)


def test_rrf_as_its_reference_defines_it() -> None:
    """score += 1.0 / (k + rank(result(q), d)), ranks starting from 1.

    https://www.elastic.co/docs/reference/elasticsearch/rest-apis/reciprocal-rank-fusion (9.2).
    """
    lists = {"bm25": {"q": {"a": 3.0, "b": 2.0}}, "dense": {"q": {"b": 0.9, "c": 0.8}}}
    fused = scores(system({"rank_constant": 1, "weights": {"bm25": 2.0}}), lists)
    assert fused == pytest.approx({"b": 2 / 3 + 1 / 2, "a": 2 / 2, "c": 1 / 3})
    assert list(fused) == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("normalizer", "expected"),
    [
        # Its own test: x-pack/plugin/rank-rrf/…/linear/10_linear_retriever_normalizers.yml (9.1),
        # "per-retriever L2 normalization": both documents score 1.0.
        ("l2_norm", {"one": 1.0, "four": 1.0}),
        # A single document of a list: 1.0 since pull request 128689 (8.18.3, 9.0.3).
        ("minmax", {"one": 1.0, "four": 1.0}),
        ("none", {"four": 12.0, "one": 5.0}),
        ({"dense": "l2_norm"}, {"one": 5.0, "four": 1.0}),
    ],
)
def test_linear_of_two_constant_scores(normalizer: Keys, expected: dict[str, float]) -> None:
    lists = {"bm25": {"q": {"one": 5.0}}, "dense": {"q": {"four": 12.0}}}
    fused = scores(system({"method": "linear", "normalizer": normalizer}), lists)
    assert fused == pytest.approx(expected)


def test_l2_norm_of_the_reference_test() -> None:
    """[5.0, 12.0] becomes [5.0/13.0, 12.0/13.0]; the file and version above."""
    fused = scores(
        system({"method": "linear", "normalizer": "l2_norm"}),
        {"bm25": {"q": {"1": 5.0, "4": 12.0}}, "dense": {}},
    )
    assert fused == pytest.approx({"4": 12 / 13, "1": 5 / 13})


def test_minmax_by_hand() -> None:
    """MinMaxScoreNormalizer: the last document 0, as if missing; equal scores within 1e-6 are 1."""
    lists = {
        "bm25": {"q": {"a": 4.0, "b": 3.0, "c": 2.0}},
        "dense": {"q": {"b": 0.5, "d": 0.5 + 5e-7}},
    }
    fused = scores(
        system({"method": "linear", "normalizer": "minmax", "weights": {"bm25": 0.5}}), lists
    )
    assert fused == pytest.approx({"b": 1.25, "d": 1.0, "a": 0.5, "c": 0.0})


def test_the_window_cuts_the_lists_and_the_result() -> None:
    lists = {"bm25": {"q": {"a": 3.0, "b": 2.0}}, "dense": {"q": {"b": 0.9, "c": 0.8}}}
    assert set(scores(system("rrf", depth=1), lists)) == {"a", "b"}


def test_what_is_written() -> None:
    fusion = {"method": "rrf", "weights": {"semantic": 2}}
    ours = System("s", ["bm25", "dense"], fusion, depth=50, top_k=10)
    translation = Elasticsearch.translate(ours, ROLES)
    assert (translation.fidelity, translation.reasons) == ("exact", ())
    assert translation.system is not None
    request = json.loads(Elasticsearch.write(translation.system).files["search.json"])
    rrf = request["retriever"]["rrf"]
    assert (rrf["rank_constant"], rrf["rank_window_size"], request["size"]) == (60, 50, 10)
    assert [entry["weight"] for entry in rrf["retrievers"]] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("fusion", "settings", "fidelity", "reason"),
    [
        ("rrf", {"top_k": None}, "approximate", "top_k"),
        ("rrf", {"depth": {"bm25": 5}}, "approximate", "depth"),
        ({"method": "rrf", "k": 0}, {}, "approximate", "k: 1 instead of 0"),
        ({"method": "rrf", "normalize": "three_lists"}, {}, "rank-equivalent", "three_lists"),
        ("rrf_v2", {}, "approximate", "bonus"),
        ("convex", {}, "exact", "count as equal"),
        ({"method": "convex", "missing": "skip"}, {}, "approximate", "missing"),
        ({"method": "convex", "normalize": "z_score"}, {}, "unsupported", "z_score"),
        ("rrf", {"min_relevance": 0.1}, "approximate", "min_relevance"),
        ("rrf", {"runs": ["bm25"]}, "unsupported", "runs"),
    ],
)
def test_what_is_lost(
    fusion: Keys, settings: Mapping[str, Any], fidelity: str, reason: str
) -> None:
    keys = {"runs": ["bm25", "dense"], "depth": 50, "top_k": 10, **settings}
    translation = Elasticsearch.translate(System("s", fusion=fusion, **keys), ROLES)
    assert translation.fidelity == fidelity
    assert any(reason in text for text in translation.reasons)


def test_the_application_gets_every_document_that_its_reranker_reads() -> None:
    blend = {"method": "linear", "reranker": "r", "depth": 50, "missing": "below"}
    system = System("s", ["a", "b"], fusion="rrf", depth=100, top_k=10, blend=blend)
    translation = Elasticsearch.translate(system, {"a": frozenset(), "b": frozenset()})
    assert translation.system is not None
    assert translation.system.top_k == 50
    assert any(
        reason.startswith("top_k: 50 documents are fetched") for reason in translation.reasons
    )
    request = json.loads(Elasticsearch.write(translation.system).files["search.json"])
    assert request["size"] == 50


REPLACE: Mapping[str, Any] = {
    "method": "replace",
    "reranker": "ce",
    "depth": 30,
    "missing": "below",
    "tail": "drop",
}


def test_a_semantic_list_is_a_knn_retriever_and_a_keyword_list_a_match() -> None:
    translation = Elasticsearch.translate(
        System("s", ["bm25", "dense"], "rrf", depth=60, top_k=10), ROLES
    )
    assert translation.system is not None
    files = Elasticsearch.write_by_role(translation.system, ROLES).files
    body = json.loads(files["search.json"])["retriever"]["rrf"]
    bm25, dense = (entry["retriever"] for entry in body["retrievers"])
    assert bm25["standard"]["query"] == {"match": {"FIELD": {"query": "QUERY"}}}
    assert dense["knn"] == {
        "_name": "dense",
        "field": "VECTOR_FIELD",
        "query_vector": "QUERY_VECTOR",
        "k": 60,
        "num_candidates": 120,
    }
    assert Elasticsearch.read(files)["runs"] == ["bm25", "dense"]


def test_replace_is_a_text_similarity_reranker() -> None:
    system = System("s", ["bm25", "dense"], "rrf", depth=60, top_k=10, blend=dict(REPLACE))
    translation = Elasticsearch.translate(system, ROLES)
    assert translation.fidelity == "rank-equivalent"
    assert translation.system is not None
    files = Elasticsearch.write(translation.system).files
    request = json.loads(files["search.json"])
    step = request["retriever"]["text_similarity_reranker"]
    assert (step["inference_id"], step["rank_window_size"], request["size"]) == ("ce", 30, 10)
    assert step["retriever"]["rrf"]["rank_window_size"] == 60
    again = System.model_validate({"name": "s", **Elasticsearch.read(files)})
    lists = {
        "bm25": {"q": {f"d{i:02}": 50.0 - i for i in range(40)}},
        "dense": {"q": {f"d{i:02}": 1 - (i * 7 % 40) / 40 for i in range(40)}},
    }
    rerank = {f"d{i:02}": (i * 11 % 40) / 40 for i in range(40)}
    assert list(final_scores(again, lists, rerank)) == list(final_scores(system, lists, rerank))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"depth": 100}, "blend.depth: 60 instead of 100"),
        ({"min_score": 0.1}, "blend.min_score: 0.1 is not written"),
        ({"always_rerank": False}, "every query is reranked"),
        ({"tail": "keep", "depth": 5}, "beyond 5, is not returned"),
    ],
)
@pytest.mark.parametrize("dialect", [Elasticsearch, OpenSearch])
def test_what_a_reranking_step_cannot_do(
    dialect: type[Dialect], changes: Mapping[str, Any], reason: str
) -> None:
    system = System("s", ["bm25", "dense"], "rrf", depth=60, top_k=10, blend={**REPLACE, **changes})
    translation = dialect.translate(system, ROLES)
    assert translation.fidelity == "approximate"
    assert any(reason in text for text in translation.reasons)
    assert translation.system is not None
    assert dialect.translate(translation.system, ROLES).fidelity == "exact"
    kept = Replace(**{**REPLACE, "tail": "keep"})
    with pytest.raises(ConfigError, match="translate it first"):
        dialect.write(translation.system.model_copy(update={"blend": kept}))
