"""Qdrant's numbers, from the unit tests in its source (reciprocal_rank_fusion.rs, 1.19)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fusion_bench.engines.dialects.vector_databases import Qdrant
from fusion_bench.experiment.system import System
from tests.engines.cases import ROLES, scores

LISTS = {
    "bm25": {"q": {"2": 0.9, "1": 0.8}},
    "dense": {"q": {"1": 0.7, "2": 0.6, "3": 0.5}},
    "hyde": {"q": {"5": 0.9, "3": 0.5, "1": 0.4}},
}


def system(*runs: str, **fusion: object) -> System:
    return System("s", runs, dialect="qdrant", fusion=fusion)


def test_rrf() -> None:
    """test_rrf_scoring, k = 2."""
    fused = scores(system("bm25", "dense", "hyde"), LISTS)
    assert list(fused) == ["1", "2", "3", "5"]
    assert fused == pytest.approx({"1": 1.0833334, "2": 0.8333334, "3": 0.5833334, "5": 0.5})


def test_weighted_rrf() -> None:
    """test_rrf_scoring_weighted: the document of the light list's top wins; values by hand."""
    lists = {"bm25": {"q": {"1": 0.9, "2": 0.8}}, "dense": {"q": {"2": 0.9, "1": 0.8}}}
    fused = scores(system("bm25", "dense", weights={"bm25": 3.0, "dense": 1.0}), lists)
    assert fused == pytest.approx({"2": 1 / (2 / 3 + 1) + 1 / 2, "1": 1 / (1 / 3 + 1) + 1 / 3})
    assert list(fused) == ["2", "1"]


def test_a_weight_of_three_shows_three_times_as_many() -> None:
    """test_rrf_scoring_weighted_ratio: k = 60, weights 3 and 1, lists without a common document."""
    lists = {
        "bm25": {"q": {f"{n}": 20.0 - n for n in range(11, 19)}},
        "dense": {"q": {f"{n}": 30.0 - n for n in range(21, 29)}},
    }
    fused = scores(system("bm25", "dense", k=60, weights={"bm25": 3.0}), lists)
    top = list(fused)[:10]
    heavy = sum(document.startswith("1") for document in top)
    assert heavy >= 2 * (len(top) - heavy)


def test_at_weight_one_our_k_is_one_less() -> None:
    ours = System("s", ["bm25", "dense", "hyde"], {"method": "rrf", "k": 60})
    translation = Qdrant.translate(ours, ROLES)
    assert translation.fidelity == "exact"
    assert translation.system is not None
    assert translation.system.fusion.model_dump()["k"] == 61
    theirs = scores(translation.system, LISTS)
    assert theirs == pytest.approx(scores(ours, LISTS))


def test_dbsf() -> None:
    """By hand, by score_fusion.rs: sample sd, no clipping, 0.5 for one document or equal ones."""
    lists = {"bm25": {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, "dense": {"q": {"b": 0.9}}}
    fused = scores(system("bm25", "dense", method="dbsf"), lists)  # mean 2, sd 1: -1 .. 5
    assert fused == pytest.approx({"b": 1.0, "a": 4 / 6, "c": 2 / 6})
    spread = {"bm25": {"q": {f"{n:02}": float(n == 0) for n in range(20)}}, "dense": {}}
    deep = System("s", ["bm25", "dense"], dialect="qdrant", fusion="dbsf", depth=None)
    assert scores(deep, spread)["00"] > 1.0


@pytest.mark.parametrize(
    ("fusion", "fidelity", "expected"),
    [
        ({"weights": {"dense": 2.0}}, "approximate", {"k": 61}),
        ({"k": 0, "weights": {"dense": 2.0}}, "exact", {"k": 1}),
        ({"weights": {"dense": 2.0, "bm25": 2.0}}, "exact", {"k": 61, "weights": {}}),
        ({"k": 60.5}, "exact", {"k": 61}),
        ({"k": 0.25}, "exact", {"k": 2, "weights": {"bm25": 0.25, "dense": 0.25}}),
    ],
)
def test_weights(fusion: Mapping[str, Any], fidelity: str, expected: Mapping[str, Any]) -> None:
    ours = System("s", ["bm25", "dense"], {"method": "rrf", **fusion})
    translation = Qdrant.translate(ours, ROLES)
    assert translation.fidelity == fidelity
    assert translation.system is not None
    assert translation.system.fusion.model_dump().items() >= expected.items()
    if fidelity == "exact":
        assert list(scores(translation.system, LISTS)) == list(scores(ours, LISTS))


def test_our_dbsf_is_its_dbsf() -> None:
    ours = System("s", ["bm25", "dense", "hyde"], "dbsf")
    translation = Qdrant.translate(ours, ROLES)
    assert translation.fidelity == "exact"
    assert translation.system is not None
    assert scores(translation.system, LISTS) == scores(ours, LISTS)
    weighted = System("s", ["bm25", "dense"], {"method": "dbsf", "weights": {"dense": 2.0}})
    assert Qdrant.translate(weighted, ROLES).fidelity == "approximate"
