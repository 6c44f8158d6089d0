"""Haystack's numbers.

From test/components/joiners/test_document_joiner.py of deepset-ai/haystack (2.20), and by hand
from haystack/components/joiners/document_joiner.py.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import pytest

from fusion_bench.engines.dialects.frameworks import Haystack
from fusion_bench.experiment.system import System
from tests.engines.cases import ROLES, scores


def system(method: str, **fusion: object) -> System:
    keys: Mapping[str, Any] = {"method": method, **fusion}
    return System("s", ["bm25", "dense"], dialect="haystack", fusion=keys)


def test_merge() -> None:
    """test_run_with_merge_join_mode, weights [1.5, 0.5]; it scores b 2.25, and f 1.0."""
    lists = {
        "bm25": {"q": {"a": 1.0, "b": 2.0}},
        "dense": {"q": {"a": 0.5, "b": 3.0, "f": 4.0}},
    }
    fused = scores(system("merge", weights={"bm25": 1.5, "dense": 0.5}), lists)
    assert fused == pytest.approx({"b": 2.25, "f": 1.0, "a": 0.875})


@pytest.mark.parametrize("constant", [False, True])
def test_distribution_based(*, constant: bool) -> None:
    """test_run_with_distribution_based_rank_fusion_join_mode, and …_same_scores.

    Its figures are cut to two digits. Document a of the second list is left out: it is not a's
    best score, but it is part of the mean.
    """
    first = {"a": 0.2, "b": 0.2, "c": 0.2} if constant else {"a": 0.6, "b": 0.2, "c": 0.5}
    second = {"d": 0.5, "e": 0.8, "f": 1.1, "g": 0.3, "a": 0.3}
    fused = scores(
        system("distribution_based_rank_fusion"), {"bm25": {"q": first}, "dense": {"q": second}}
    )
    expected = {"f": 0.76, "e": 0.60, "d": 0.44, "g": 0.33}
    expected |= {"b": 0.0, "c": 0.0} if constant else {"a": 0.66, "c": 0.56, "b": 0.27}
    assert {name: fused[name] for name in expected} == pytest.approx(expected, abs=0.0101)


def test_reciprocal_rank_fusion() -> None:
    """test_run_with_reciprocal_rank_fusion_join_mode: b, a, c, f; values by hand, k = 61."""
    lists = {
        "bm25": {"q": {"a": 3.0, "b": 2.0, "c": 1.0}},
        "dense": {"q": {"b": 4.0, "c": 3.0, "a": 2.0, "f": 1.0}},
    }
    fused = scores(system("reciprocal_rank_fusion"), lists)
    assert list(fused) == ["b", "a", "c", "f"]
    assert fused["b"] == pytest.approx((61 / 62 + 1) / 2)
    assert fused["f"] == pytest.approx(61 / 64 / 2)


def test_first_in_every_list_scores_1() -> None:
    """test_test_score_norm_with_rrf, weights [0.7, 0.3] and [7, 3]."""
    lists = {"bm25": {"q": {"a": 1.0}}, "dense": {"q": {"a": 1.0}}}
    for weights in ({"bm25": 0.7, "dense": 0.3}, {"bm25": 7.0, "dense": 3.0}):
        fused = scores(system("reciprocal_rank_fusion", weights=weights), lists)
        assert fused == pytest.approx({"a": 1.0})


def test_concatenate_keeps_the_greatest_score_but_0() -> None:
    """``max(docs, key=lambda doc: doc.score if doc.score else -inf)``."""
    lists = {
        "bm25": {"q": {"a": 0.3, "b": 0.0, "c": 0.0}},
        "dense": {"q": {"a": 0.2, "b": -1.0}},
    }
    assert scores(system("concatenate"), lists) == {"a": 0.3, "c": 0.0, "b": -1.0}


@pytest.mark.parametrize(
    ("fusion", "fidelity", "method"),
    [
        ({"method": "rrf", "weights": {"dense": 2.0}}, "exact", "reciprocal_rank_fusion"),
        ({"method": "rrf", "k": 10}, "approximate", "reciprocal_rank_fusion"),
        ({"method": "comb_sum"}, "exact", "merge"),
    ],
)
def test_what_is_written(fusion: Mapping[str, Any], fidelity: str, method: str) -> None:
    translation = Haystack.translate(System("s", ["bm25", "dense"], fusion), ROLES)
    assert translation.fidelity == fidelity
    assert translation.system is not None
    code = Haystack.write(translation.system).files["pipeline.py"]
    assert ast.parse(code)
    assert f"join_mode={method!r}" in code


def test_normalized_scores_cannot_be_fused() -> None:
    assert Haystack.translate(System("s", ["bm25", "dense"], "convex"), ROLES).system is None
