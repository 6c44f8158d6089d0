"""semche's numbers, by hand from the formula of its specification (0.4.0).

``rrf(rank) = 0 if None else 1 / (c + rank)``, rank = 1, 2, …; ``dense_weight · rrf(dense_rank) +
sparse_weight · rrf(sparse_rank)``; k·2 documents of each search, the first k returned.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import pytest

from fusion_bench.engines.dialects.pairs import Semche
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from tests.engines.cases import ROLES, scores

LISTS = {"bm25": {"q": {"a": 9.0, "b": 8.0}}, "dense": {"q": {"b": 0.9, "c": 0.8}}}


def test_defaults() -> None:
    fused = scores(System("s", ["bm25", "dense"], dialect="semche"), LISTS)
    assert fused == pytest.approx({"b": 0.5 / 62 + 0.5 / 61, "a": 0.5 / 61, "c": 0.5 / 62})


def test_weights_go_by_role_or_name() -> None:
    fusion = {"dense_weight": 0.8, "sparse_weight": 0.2, "rrf_constant": 10}
    by_role = System("s", ["bm25", "dense"], dialect="semche", fusion=fusion)
    expected = {"b": 0.2 / 12 + 0.8 / 11, "a": 0.2 / 11, "c": 0.8 / 12}
    assert scores(by_role, LISTS) == pytest.approx(expected)
    by_name = System("s", ["bm25", "dense"], dialect="semche", fusion={**fusion, "vector": "dense"})
    assert scores(by_name, LISTS) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("settings", "fidelity", "called"),
    [
        ({"depth": 20, "top_k": 5}, "exact", 10),
        ({"depth": 20, "top_k": 10}, "exact", 10),
        ({}, "exact", 5000),
        ({"depth": 5, "top_k": 2}, "approximate", 3),
        ({"depth": 10, "top_k": 10}, "approximate", 10),
        ({"depth": 10}, "approximate", 5),
        ({"runs": ["bm25", "dense", "hyde"]}, "unsupported", 0),
    ],
)
def test_the_window_is_twice_top_k(settings: Mapping[str, Any], fidelity: str, called: int) -> None:
    ours = System("s", **{"runs": ["bm25", "dense"], "fusion": "rrf", **settings})
    translation = Semche.translate(ours, ROLES)
    assert translation.fidelity == fidelity
    if translation.system is not None:
        code = Semche.write(translation.system).files["search.py"]
        assert ast.parse(code)
        assert f'search("QUERY", top_k={called}, ' in code


def test_another_window_cannot_be_written() -> None:
    system = System("s", ["bm25", "dense"], dialect="semche", fusion={"vector": "dense"}, depth=7)
    with pytest.raises(ConfigError, match="even"):
        Semche.write(system)


def test_one_weight_must_be_above_0() -> None:
    fusion = {"dense_weight": 0, "sparse_weight": 0}
    with pytest.raises(ConfigError, match="above 0"):
        System("s", ["bm25", "dense"], dialect="semche", fusion=fusion)
