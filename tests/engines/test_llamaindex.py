"""LlamaIndex's numbers, by hand from llama_index/core/retrievers/fusion_retriever.py (0.14).

Its own tests state no score.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

import pytest

from fusion_bench.engines.dialects.frameworks import LlamaIndex
from fusion_bench.experiment.system import System
from tests.engines.cases import ROLES, scores

LISTS = {
    "bm25": {"q": {"a": 3.0, "b": 2.0, "c": 1.0}},
    "dense": {"q": {"b": 0.9, "d": 0.9}},
}


def system(method: str, **fusion: object) -> System:
    return System(
        "s",
        ["bm25", "dense"],
        dialect="llamaindex",
        fusion={"method": method, **fusion},
        depth=None,
        top_k=None,
    )


@pytest.mark.parametrize(
    ("method", "weights", "expected"),
    [
        ("simple", {}, {"a": 3.0, "b": 2.0, "c": 1.0, "d": 0.9}),
        # k = 60.0 and enumerate from 0; issue 21444: the weights are ignored.
        ("reciprocal_rerank", {"bm25": 9.0}, {"d": 1 / 60, "b": 2 / 61, "a": 1 / 60, "c": 1 / 62}),
        # (x − min) / (max − min) · weight; equal scores above 0 count 1.
        ("relative_score", {"bm25": 3.0}, {"a": 0.75, "b": 0.625, "d": 0.25, "c": 0.0}),
        # mean 2, population sd √(2/3): −0.449 … 4.449.
        ("dist_based_score", {}, {"a": 0.352062, "b": 0.75, "c": 0.147938, "d": 0.5}),
    ],
)
def test_modes(method: str, weights: Mapping[str, float], expected: Mapping[str, float]) -> None:
    assert scores(system(method, weights=weights), LISTS) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("method", ["relative_score", "dist_based_score"])
def test_equal_scores_that_are_not_positive_count_0(method: str) -> None:
    """``1.0 if max_score > 0 else 0.0``."""
    lists = {"bm25": {"q": {"a": 0.0, "b": 0.0}}, "dense": {"q": {"c": 0.2}}}
    assert scores(system(method), lists) == pytest.approx({"c": 0.5, "b": 0.0, "a": 0.0})


@pytest.mark.parametrize(
    ("k", "weights", "fidelity"),
    [(59, {}, "exact"), (60, {}, "approximate"), (59, {"dense": 2.0}, "approximate")],
)
def test_our_k_is_59(k: int, weights: Mapping[str, float], fidelity: str) -> None:
    ours = System("s", ["bm25", "dense"], {"method": "rrf", "k": k, "weights": weights})
    assert LlamaIndex.translate(ours, ROLES).fidelity == fidelity


def test_what_is_written() -> None:
    translation = LlamaIndex.translate(System("s", ["bm25", "dense"], "convex", depth=7), ROLES)
    assert translation.fidelity == "approximate"
    assert translation.system is not None
    code = LlamaIndex.write(translation.system).files["retriever.py"]
    assert ast.parse(code)
    assert "mode='relative_score'" in code
    assert "retriever_weights=[0.5, 0.5]" in code
