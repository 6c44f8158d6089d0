"""Cosmos DB's numbers, worked by hand from the SDKs.

Σ |w|·1/(60 + rank), a negative weight sorting ascending: Azure/azure-cosmos-dotnet-v3, pull request
5064. Dense ranks from 1: _compute_ranks, hybrid_search_aggregator.py of azure-sdk-for-python.
"""

from __future__ import annotations

import pytest

from fusion_bench.engines.dialects.sql import CosmosDB
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from tests.engines.cases import ROLES, scores

LISTS = {"bm25": {"q": {"a": 5.0, "b": 5.0, "c": 1.0}}, "dense": {"q": {"c": 0.9, "a": 0.8}}}


def system(**fusion: object) -> System:
    return System("s", ["bm25", "dense"], dialect="cosmos", fusion=fusion)


def test_equal_scores_share_a_rank_and_none_is_missing() -> None:
    fused = scores(system(weights={"bm25": 2.0}), LISTS)
    assert fused == pytest.approx(
        {"a": 2 / 61 + 1 / 62, "b": 2 / 61 + 1 / 63, "c": 2 / 62 + 1 / 61}
    )


def test_a_negative_weight_reverses_the_list() -> None:
    fused = scores(system(weights={"bm25": -2.0}), LISTS)
    assert fused == pytest.approx(
        {"a": 2 / 62 + 1 / 62, "b": 2 / 62 + 1 / 63, "c": 2 / 61 + 1 / 61}
    )


def test_ranks_begin_anew_for_each_query() -> None:
    lists = {"bm25": {"p": {"x": 1.0}, "q": {"a": 5.0, "b": 4.0}}, "dense": {"q": {"b": 1.0}}}
    assert scores(system(), lists)["b"] == pytest.approx(1 / 62 + 1 / 61)
    assert scores(system(), lists, "p") == pytest.approx({"x": 2 / 61})


def test_a_query_is_read_back_with_its_signs() -> None:
    written = CosmosDB.translate(system(weights={"keyword": -2.0, "dense": 0.5}), ROLES)
    assert written.fidelity == "exact"
    assert written.system is not None
    files = CosmosDB.write(written.system).files
    assert files["query.sql"].endswith("[-2.0, 0.5]\n)\n")
    again = System.model_validate({"name": "s", **CosmosDB.read(files)})
    assert scores(again, LISTS) == scores(written.system, LISTS)


def test_it_is_never_exact() -> None:
    translation = CosmosDB.translate(System("s", ["bm25", "dense"]), ROLES)
    assert translation.fidelity == "approximate"
    deep = System("s", ["bm25", "dense"], dialect="cosmos", depth=5)
    again = CosmosDB.translate(deep, ROLES)
    assert again.fidelity == "approximate"
    assert again.system is not None
    assert again.system.depth is None
    with pytest.raises(ConfigError, match="depth"):
        CosmosDB.write(deep)
