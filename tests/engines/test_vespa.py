"""Vespa's numbers, worked by hand from its source (com.yahoo.search.ranking, version 8)."""

from __future__ import annotations

import pytest

from fusion_bench.engines.dialects.search_servers import Vespa
from fusion_bench.experiment.system import System
from tests.engines.cases import ROLES, scores

LISTS = {"bm25": {"q": {"a": 5.0, "b": 3.0, "c": 1.0}}, "dense": {"q": {"c": 0.9, "a": 0.5}}}


def system(**fusion: object) -> System:
    return System("s", ["bm25", "dense"], dialect="vespa", fusion=fusion)


def test_reciprocal_rank() -> None:
    """ReciprocalRankNormalizer: 1/(k + 1 + position), positions from 0."""
    fused = scores(system(weights={"bm25": 2.0}), LISTS)
    assert fused == pytest.approx({"a": 2 / 61 + 1 / 62, "b": 2 / 62, "c": 2 / 63 + 1 / 61})


def test_normalize_linear() -> None:
    """LinearNormalizer: 0.5 + (x − midpoint)/(max − min), 0.5 for equal values; here the mean."""
    fused = scores(system(method="normalize_linear"), LISTS)
    assert fused == pytest.approx({"a": 0.5, "c": 0.5, "b": 0.25})
    alone = {"bm25": {"q": {"a": 5.0}}, "dense": {}}
    assert scores(system(method="normalize_linear"), alone) == pytest.approx({"a": 0.25})


def test_it_is_never_exact() -> None:
    for fusion in ("rrf", "convex"):
        translation = Vespa.translate(System("s", ["bm25", "dense"], fusion), ROLES)
        assert translation.fidelity == "approximate"
        assert "every hit" in translation.reasons[0]


def test_what_is_written() -> None:
    fusion = {"method": "rrf", "weights": {"bm25": 2.0}}
    ours = System("s", ["bm25", "dense"], fusion, depth=200, top_k=10)
    translated = Vespa.translate(ours, ROLES).system
    assert translated is not None
    profile = Vespa.write(translated).files["rank-profile.sd"]
    assert "rerank-count: 200" in profile
    assert "2.0 * reciprocal_rank(list_1, 60.0) + 1.0 * reciprocal_rank(list_2, 60.0)" in profile
    assert profile.count("{") == profile.count("}")
