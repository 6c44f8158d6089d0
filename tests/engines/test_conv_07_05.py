"""CONV-07-05's own test cases (section 6), and numbers by hand from its code (5.1, 5.2)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from fusion_bench.engines.dialects.conv_07_05 import Conv0705
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from tests.engines.blend_cases import final_scores
from tests.engines.cases import ROLES, scores

STRATEGIES = ("keyword", "semantic", "graph")
OWN_ROLES = {name: frozenset({name}) for name in STRATEGIES}


def make_lists(count: int) -> dict[str, dict[str, dict[str, float]]]:
    """createMockResults: own documents of each strategy, scores 1, 0.9, 0.8, …"""
    return {
        name: {"q": {f"chunk-{name}-{n}": 1 - n * 0.1 for n in range(count)}} for name in STRATEGIES
    }


def system(*runs: str, **settings: Any) -> System:  # noqa: ANN401 - of any system
    return System("s", runs, **{"dialect": "conv-07-05", "top_k": None, **settings})


def fuse(method: str, weights: Mapping[str, float], lists: Any) -> dict[str, float]:  # noqa: ANN401 - nested
    fusion = {"method": method, "weights": weights}
    return scores(system(*lists, fusion=fusion), lists)


def test_heavy_graph_is_first() -> None:
    """重みが正しく適用される: weights .1, .1, .8; the first of the graph list is on top."""
    weights = {"keyword": 0.1, "semantic": 0.1, "graph": 0.8}
    assert next(iter(fuse("RRFFusion", weights, make_lists(3)))) == "chunk-graph-0"


def test_scores_are_in_the_unit_interval() -> None:
    """fusedScoreが0-1の範囲: three lists of ten, weights .33, .33, .34."""
    fused = fuse("RRFFusion", {"keyword": 0.33, "semantic": 0.33, "graph": 0.34}, make_lists(10))
    assert all(0 <= score <= 1 for score in fused.values())
    assert fused["chunk-graph-0"] == pytest.approx(0.34 / 3)  # w/(k+1) · (k+1)/3


def test_a_shared_chunk_occurs_once() -> None:
    """重複するチャンクが正しく統合される: weights .5 and .5."""
    lists = {
        "bm25": {"q": {"shared": 0.9, "k0": 0.8}},
        "dense": {"q": {"shared": 0.9, "s0": 0.8}},
    }
    weights = {"keyword": 0.5, "semantic": 0.5, "graph": 0.0}
    assert fuse("RRFFusion", weights, lists)["shared"] == pytest.approx(1 / 3)
    assert fuse("WeightedScoreFusion", weights, lists)["shared"] == pytest.approx(0.9)


def test_a_document_of_one_list_beats_one_of_two() -> None:
    lists = {"bm25": {"q": {"a": 0.9, "b": 0.9}}, "dense": {"q": {"b": 0.7}}}
    fused = fuse("WeightedScoreFusion", {"keyword": 0.5, "semantic": 0.5}, lists)
    assert fused == pytest.approx({"a": 0.9, "b": 0.8})


def test_other_strategies_weigh_1_and_scores_are_clamped() -> None:
    """getWeight: ``default: return 1``; normalizeScore: ``Math.min(1, …)``."""
    lists = {"hyde": {"q": {"a": 1.0}}}
    assert scores(system("hyde"), lists) == pytest.approx({"a": 1 / 3})
    heavy = system("hyde", fusion={"weights": {"hyde": 9.0}}, min_relevance=1.5)
    assert scores(heavy, lists) == {}


def test_the_reranker_replaces_and_is_skipped_for_few_candidates() -> None:
    """LLMReranker: ``candidates.length <= limit && !alwaysRerank`` keeps the fused order."""
    lists = {"bm25": {"q": {f"d{n}": 9.0 - n for n in range(4)}}}
    rerank = {f"d{n}": n / 10 for n in range(4)}
    few = system("bm25", blend={"reranker": "ce"}, top_k=20)
    assert list(final_scores(few, lists, rerank)) == ["d0", "d1", "d2", "d3"]
    many = system("bm25", blend={"reranker": "ce", "skip_limit": 3}, top_k=3)
    assert list(final_scores(many, lists, rerank)) == ["d3", "d2", "d1"]


REPLACE = {"method": "replace", "reranker": "ce", "tail": "drop"}


@pytest.mark.parametrize(
    ("fusion", "blend", "fidelity", "reason"),
    [
        (
            {"method": "rrf", "normalize": "three_lists"},
            {"method": "none"},
            "rank-equivalent",
            "thr",
        ),
        ({"method": "rrf", "weights": {"semantic": 2.0}}, {"method": "none"}, "exact", ""),
        ("weighted_score", {"method": "none"}, "exact", ""),
        ("rrf", REPLACE, "exact", ""),
        ("rrf", {**REPLACE, "always_rerank": False, "skip_limit": 5}, "approximate", "skip_limit"),
        ("rrf", {**REPLACE, "min_score": 0.1}, "approximate", "blend.min_score"),
        ("rrf", {"method": "linear", "reranker": "ce", "beta": 0.7}, "approximate", "blend"),
        ("convex", {"method": "none"}, "unsupported", "normalize"),
        ({"method": "rrf", "k": 0}, {"method": "none"}, "approximate", "k:"),
    ],
)
def test_translation_and_round_trip(
    fusion: Any,  # noqa: ANN401 - as YAML says it
    blend: Mapping[str, Any],
    fidelity: str,
    reason: str,
) -> None:
    ours = System("s", ["dense", "bm25"], fusion, blend, depth=20, top_k=3)
    translation = Conv0705.translate(ours, ROLES)
    assert translation.fidelity == fidelity
    assert any(reason in text for text in translation.reasons) == bool(reason)
    if translation.system is None:
        return
    files = Conv0705.write(translation.system).files
    settings = json.loads(files["search.json"])
    assert settings["strategies"]["semantic"] == {"source": "dense", "limit": 20}
    assert sum(settings["weights"].values()) == pytest.approx(1)
    lists = {
        "bm25": {"q": {f"d{n}": 9.0 - n for n in range(9)}},
        "dense": {"q": {f"d{n}": n / 9 for n in range(2, 9)}},
    }
    rerank = {f"d{n}": n % 5 / 7 for n in range(9)}
    again = System.model_validate({"name": "s", **Conv0705.read(files)})
    assert final_scores(again, lists, rerank) == final_scores(translation.system, lists, rerank)
    if fidelity == "exact":
        expected = final_scores(ours, lists, rerank)
        assert list(final_scores(again, lists, rerank)) == list(expected)


def test_at_most_three_lists() -> None:
    roles = {name: frozenset[str]() for name in "abcd"}
    assert Conv0705.translate(System("s", list(roles), "rrf"), roles).fidelity == "unsupported"
    with pytest.raises(ConfigError, match="at most 3 lists"):
        Conv0705.write(system(*roles))
