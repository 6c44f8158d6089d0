"""Weaviate's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fusion_bench.engines.dialects.pairs import Weaviate
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from tests.engines.cases import ROLES, scores


def system(**fusion: object) -> System:
    return System("s", ["dense", "bm25"], dialect="weaviate", fusion=fusion)


@pytest.mark.parametrize(
    ("alpha", "first", "second", "expected"),
    [
        # TestFusionRelativeScore, usecases/traverser/hybrid/hybrid_fusion_test.go (2026).
        (0.5, [1, 2, 3], [0, 1, 2], {"2": 1, "1": 0.5, "0": 0}),
        (0.5, [0, 2, 0.1], [0, 0.2, 2], {"1": 0.55, "2": 0.525, "0": 0}),
        (0.75, [0.5, 0.5, 0], [0, 0.01, 0.001], {"1": 1, "0": 0.75, "2": 0.025}),
        (0.75, [1], [], {"0": 0.75}),
    ],
)
def test_relative_score_fusion(
    alpha: float, first: Sequence[float], second: Sequence[float], expected: Mapping[str, float]
) -> None:
    lists = {
        name: {"q": {str(n): float(score) for n, score in enumerate(values)}} if values else {}
        for name, values in (("dense", first), ("bm25", second))
    }
    fused = scores(system(alpha=alpha), lists)
    assert fused == pytest.approx(expected)
    assert list(fused) == list(expected)


def test_ranked_fusion() -> None:
    """By hand, by hybrid_fusion.go: weight / (60 + position), positions from 0."""
    lists = {"dense": {"q": {"a": 0.9, "b": 0.8}}, "bm25": {"q": {"b": 7.0}}}
    fused = scores(system(method="rankedFusion", alpha=0.75), lists)
    assert fused == pytest.approx({"b": 0.75 / 61 + 0.25 / 60, "a": 0.75 / 60})


def test_which_list_is_the_vector_search() -> None:
    lists = {"dense": {"q": {"a": 0.9}}, "bm25": {"q": {"b": 7.0}}}
    assert scores(system(vector="bm25"), lists) == {"b": 0.75, "a": 0.25}
    wrong = System("s", ["bm25", "hyde"], dialect="weaviate")
    assert [str(error) for _, error in wrong.find_misfits(ROLES, [])]
    with pytest.raises(ConfigError, match="vector"):
        Weaviate.write(system())


@pytest.mark.parametrize(
    ("fusion", "fidelity", "alpha"),
    [
        ({"method": "rrf", "k": 59, "weights": {"dense": 3.0}}, "exact", 0.75),
        ("rrf", "approximate", 0.5),
        ("convex", "exact", 0.5),
        ({"method": "convex", "normalize": "l2"}, "unsupported", None),
    ],
)
def test_what_is_lost(fusion: str | Mapping[str, Any], fidelity: str, alpha: float | None) -> None:
    translation = Weaviate.translate(System("s", ["bm25", "dense"], fusion, depth=50), ROLES)
    assert translation.fidelity == fidelity
    if translation.system is not None:
        assert translation.system.fusion.model_dump()["alpha"] == alpha
        files = Weaviate.write(translation.system).files
        assert files["weaviate.env"] == "QUERY_HYBRID_MAXIMUM_RESULTS=50\n"


def test_three_lists_are_refused() -> None:
    translation = Weaviate.translate(System("s", list(ROLES)), ROLES)
    assert translation.fidelity == "unsupported"
    assert "one keyword search" in translation.reasons[-1]
