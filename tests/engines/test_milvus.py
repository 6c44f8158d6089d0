"""Milvus's numbers, from internal/util/function/rerank/*_test.go (2.6)."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from typing import Any

import pytest

from fusion_bench.engines.dialects.vector_databases import Milvus
from fusion_bench.experiment.system import System
from tests.engines.cases import ROLES, scores

#: Documents 0 to 9 and 0 to 3, each with its number as its score.
LISTS = {
    "bm25": {"q": {str(n): float(n) for n in range(10)}},
    "dense": {"q": {str(n): float(n) for n in range(4)}},
}


def system(**fusion: object) -> System:
    return System("s", ["bm25", "dense"], dialect="milvus", fusion=fusion)


def test_weighted_without_norm_score() -> None:
    """TestWeightedFuctionProcess, weights 0.1 and 0.9: 3, 2, then 1.0, 0.9, 0.8."""
    weights = {"bm25": 0.1, "dense": 0.9}
    fused = scores(system(method="weighted", norm_score=False, weights=weights), LISTS)
    assert list(fused)[:5] == ["3", "2", "1", "9", "8"]
    assert [*fused.values()][:5] == pytest.approx([3, 2, 1, 0.9, 0.8])


def test_rrf() -> None:
    """TestRRFFuctionProcess: lists 0 to 9 and 0 to 3 in this order come out in this order."""
    lists = {
        "bm25": {"q": {str(n): -float(n) for n in range(10)}},
        "dense": {"q": {str(n): -float(n) for n in range(4)}},
    }
    fused = scores(system(k=100), lists)
    assert list(fused)[:5] == ["0", "1", "2", "3", "4"]
    assert fused["0"] == pytest.approx(2 / 101)


@pytest.mark.parametrize(
    ("metric", "score", "expected"),
    [
        ("COSINE", 0.5, 0.75),
        ("IP", 1.0, 0.75),
        ("BM25", 1.0, 0.5),
        ("L2", -1.0, 0.5),  # a distance of 1
        ("BM25", 10.0, 2 * math.atan(10) / math.pi),
    ],
)
def test_norm_score_goes_by_the_metric(metric: str, score: float, expected: float) -> None:
    """By hand, by getNormalizeFunc in util.go."""
    lists = {"bm25": {"q": {"a": score}}, "dense": {}}
    assert scores(system(method="weighted", metric=metric), lists) == pytest.approx({"a": expected})


def test_a_distance_beside_a_similarity_is_always_scaled() -> None:
    lists = {"bm25": {"q": {"a": 3.0}}, "dense": {"q": {"b": -1.0}}}
    metric = {"bm25": "BM25", "dense": "L2"}
    fused = scores(system(method="weighted", metric=metric, norm_score=False), lists)
    assert fused == pytest.approx({"a": 3.0, "b": 0.5})


@pytest.mark.parametrize(
    ("fusion", "fidelity", "expected"),
    [
        ({"method": "rrf", "k": 60.5}, "exact", {"k": 60.5}),
        ({"method": "rrf", "weights": {"dense": 2.0}}, "approximate", {"k": 60}),
        (
            {"method": "weighted_sum", "normalize": "none", "weights": {"dense": 2.0}},
            "exact",
            {"norm_score": False, "weights": {"bm25": 0.5, "dense": 1.0}},
        ),
        ("convex", "unsupported", {}),
    ],
)
def test_what_is_lost(
    fusion: Mapping[str, Any], fidelity: str, expected: Mapping[str, Any]
) -> None:
    translation = Milvus.translate(System("s", ["bm25", "dense"], fusion), ROLES)
    assert translation.fidelity == fidelity
    if translation.system is not None:
        assert translation.system.fusion.model_dump().items() >= expected.items()
        assert ast.parse(Milvus.write(translation.system).files["search.py"])
