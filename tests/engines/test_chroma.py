"""Chroma's numbers.

From https://docs.trychroma.com/cloud/search-api/hybrid-search and …/ranking (August 2026), and
test_rrf_to_dict in chromadb/test/test_api.py (1.3).
"""

from __future__ import annotations

import ast

import pytest

from fusion_bench.engines.dialects.vector_databases import Chroma
from fusion_bench.experiment.system import System
from tests.engines.cases import ROLES, scores

LISTS = {
    "bm25": {"q": {"a": 9.0, "b": 8.0, "c": 7.0}},
    "dense": {"q": {"b": 0.9, "x": 0.8, "a": 0.7}},
}


def system(**fusion: object) -> System:
    return System("s", ["bm25", "dense"], dialect="chroma", fusion=fusion)


def test_the_documented_example() -> None:
    """Document A at ranks 0 and 2: −0.0328; document B at ranks 1 and 0: −0.0331.

    The page calls A the better one, but Chroma sorts by ascending score, so B is.
    """
    fused = scores(system(), LISTS)
    assert list(fused) == ["b", "a"]
    assert fused["a"] == pytest.approx(1 / 60 + 1 / 62)
    assert -fused["a"] == pytest.approx(-0.0328, abs=5e-5)
    assert -fused["b"] == pytest.approx(-0.0331, abs=5e-5)


def test_without_a_default_documents_must_be_in_all_lists() -> None:
    """ "Documents must also appear in ALL Knn results where default=None" (…/ranking)."""
    assert set(scores(system(), LISTS)) == {"a", "b"}


def test_a_default_is_the_position_of_a_missing_document() -> None:
    """ "Documents missing from a Knn with a default value get that default score" (…/ranking)."""
    fused = scores(system(default=1000), LISTS)
    assert fused["c"] == pytest.approx(1 / 62 + 1 / 1060)
    assert fused["x"] == pytest.approx(1 / 61 + 1 / 1060)


def test_normalized_weights() -> None:
    """Weights [3.0, 1.0] "will be normalized to [0.75, 0.25]" (docstring of Rrf), k = 100."""
    fused = scores(system(k=100, weights={"bm25": 3.0, "dense": 1.0}, normalize=True), LISTS)
    assert fused["a"] == pytest.approx(0.75 / 100 + 0.25 / 102)


def test_our_k_is_one_less() -> None:
    fusion = {"method": "rrf", "k": 60, "weights": {"dense": 2.0}}
    ours = System("s", ["bm25", "dense"], fusion, depth=30)
    translation = Chroma.translate(ours, ROLES)
    assert translation.fidelity == "exact"
    assert translation.system is not None
    assert translation.system.fusion.model_dump()["k"] == 61
    assert scores(translation.system, LISTS) == pytest.approx(scores(ours, LISTS))
    code = Chroma.write(translation.system).files["search.py"]
    assert ast.parse(code)
    assert "limit=30, default=1000000000000.0, return_rank=True" in code
    assert "weights=[1.0, 2.0]" in code
