"""LangChain's numbers.

From libs/langchain/tests/unit_tests/retrievers/test_ensemble.py of langchain-ai/langchain, and by
hand from langchain_classic/retrievers/ensemble.py (1.0).
"""

from __future__ import annotations

import ast

import pytest

from fusion_bench.engines.dialects.frameworks import LangChain
from fusion_bench.experiment.system import System
from tests.engines.cases import ROLES, scores

FIRST = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}


def system(**fusion: object) -> System:
    return System("s", ["bm25", "dense"], dialect="langchain", fusion=fusion)


def test_a_document_of_both_lists_is_first() -> None:
    """test_invoke, weights [0.5, 0.5]: of three documents, b is first."""
    fused = scores(
        system(weights={"bm25": 0.5, "dense": 0.5}), {"bm25": FIRST, "dense": {"q": {"b": 1.0}}}
    )
    assert list(fused) == ["b", "a", "c"]
    assert fused == pytest.approx({"b": 0.5 / 62 + 0.5 / 61, "a": 0.5 / 61, "c": 0.5 / 63})


def test_the_first_documents_of_both_lists_tie() -> None:
    """test_invoke: a and d "will have the same score"."""
    fused = scores(system(), {"bm25": FIRST, "dense": {"q": {"d": 1.0}}})
    assert fused["a"] == fused["d"] == pytest.approx(1 / 2 / 61)


def test_without_weights_each_list_has_one_in_n() -> None:
    """_set_weights, c = 1, by hand."""
    fused = scores(system(c=1), {"bm25": FIRST, "dense": {"q": {"a": 1.0}}})
    assert fused["a"] == pytest.approx(2 * 0.5 / 2)
    assert fused["c"] == pytest.approx(0.5 / 4)


def test_what_is_written() -> None:
    ours = System(
        "s", ["bm25", "dense"], {"method": "rrf", "k": 20, "weights": {"dense": 2}}, depth=9
    )
    translation = LangChain.translate(ours, ROLES)
    assert translation.fidelity == "exact"
    assert translation.system is not None
    code = LangChain.write(translation.system).files["retriever.py"]
    assert ast.parse(code)
    assert "weights=[1.0, 2.0],\n    c=20," in code
    assert "WINDOWS = {'bm25': 9, 'dense': 9}\nTOP_K = 18" in code


def test_scores_cannot_be_fused() -> None:
    translation = LangChain.translate(System("s", ["bm25", "dense"], "convex"), ROLES)
    assert translation.fidelity == "unsupported"
    assert "weighted_reciprocal_rank" in translation.reasons[-1]
