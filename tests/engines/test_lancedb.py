"""LanceDB's numbers, worked by hand from its source (python/python/lancedb, August 2026)."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import pytest

from fusion_bench.engines.dialects.pairs import LanceDB
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from tests.engines.cases import BY_SOURCE, ROLES, scores

LISTS = {"bm25": {"q": {"a": 9.0, "b": 5.0, "c": 1.0}}, "dense": {"q": {"c": 0.9, "d": 0.8}}}


def system(**fusion: object) -> System:
    return System("s", ["bm25", "dense"], dialect="lancedb", fusion=fusion)


@pytest.mark.parametrize(
    ("fusion", "expected"),
    [
        ({}, {"c": 1 / 61 + 1 / 63, "a": 1 / 61, "b": 1 / 62, "d": 1 / 62}),
        ({"K": 1}, {"c": 1 / 2 + 1 / 4, "a": 1 / 2, "b": 1 / 3, "d": 1 / 3}),
        (
            {"method": "MRRReranker", "weight_vector": 0.75, "weight_fts": 0.25},
            {"c": 0.75 + 0.25 / 3, "a": 0.25, "b": 0.125, "d": 0.375},
        ),
        ({"method": "LinearCombinationReranker"}, {"c": 0.7, "a": 0.3, "b": 0.15, "d": 0.0}),
        (
            {"method": "LinearCombinationReranker", "fill": 0.5},
            {"c": 0.7, "a": 0.3 + 0.35, "b": 0.15 + 0.35, "d": 0.15},
        ),
    ],
)
def test_rerankers(fusion: Mapping[str, float], expected: Mapping[str, float]) -> None:
    assert scores(system(**fusion), LISTS) == pytest.approx(expected)


@pytest.mark.parametrize("method", ["RRFReranker", "MRRReranker", "LinearCombinationReranker"])
def test_only_the_linear_combination_needs_a_version(method: str) -> None:
    notes = LanceDB.write(system(method=method, vector="dense")).notes
    assert ("3437" in " ".join(notes)) == (method == "LinearCombinationReranker")


def test_equal_scores_differ_between_the_searches() -> None:
    """query.py, _normalize_scores: equal values become 0; a distance of 0 is a score of 1."""
    lists = {"bm25": {"q": {"a": 3.0}}, "dense": {"q": {"b": 0.5}}}
    fused = scores(system(method="LinearCombinationReranker"), lists)
    assert fused == pytest.approx({"b": 0.7, "a": 0.0})


def test_a_list_counts_alone_where_the_other_is_empty() -> None:
    lists = {"bm25": {"q": {"a": 3.0, "b": 1.0}}, "dense": {}}
    fused = scores(system(method="LinearCombinationReranker", fill=0.5), lists)
    assert fused == pytest.approx({"a": 1.0, "b": 0.0})


def test_weights_must_add_up_to_one() -> None:
    with pytest.raises(ConfigError, match=r"must be 1, given 1\.5"):
        system(method="MRRReranker", weight_vector=1.0)


def test_k_zero_is_the_mean_reciprocal_rank() -> None:
    fusion = {"method": "rrf", "k": 0, "weights": {"dense": 3.0}}
    ours = System("s", ["bm25", "dense"], fusion, depth=50, top_k=10)
    translation = LanceDB.translate(ours, ROLES)
    assert (translation.fidelity, translation.reasons) == ("exact", ())
    assert translation.system is not None
    assert translation.system.fusion.model_dump() == {
        "method": "MRRReranker",
        "vector": "dense",
        "weight_vector": 0.75,
        "weight_fts": 0.25,
    }
    assert ast.parse(LanceDB.write(translation.system).files["search.py"])


def test_min_max_with_its_constants_is_rank_equivalent() -> None:
    ours = System(
        "s", ["bm25", "dense"], {"method": "weighted_sum", "normalize": BY_SOURCE}, depth=9
    )
    translation = LanceDB.translate(ours.model_copy(update={"top_k": 9}), ROLES)
    assert translation.fidelity == "rank-equivalent"
