"""Numbers by intent: each query is ranked as by the plain system of its intent."""

from __future__ import annotations

from typing import Any

import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.explain.explanation import explain_ranking
from fusion_bench.measures import parse_measure
from fusion_bench.methods.fuse import CrossFitted
from fusion_bench.ranking.plain_systems import fit_system
from fusion_bench.ranking.system_scores import evaluate_systems
from tests.ranking.systems.switched_cases import NAMES, QRELS, QUERIES, aligned, final_scores

WEIGHTS = {"dense": 2, "meta": {"by_intent": {"meta": 4, "synergy": 0.5, "default": 1}}}
BY_INTENT: dict[str, dict[str, Any]] = {
    "a weight": {"fusion": {"method": "rrf", "weights": WEIGHTS}},
    "whole": {
        "by_intent": {
            "meta": {"fusion": {"method": "rrf_v2", "normalize": "max_possible"}},
            "default": {"fusion": "convex", "blend": {"method": "replace", "reranker": "ce"}},
        }
    },
    "a method": {"fusion": {"by_intent": {"rules": "rrf", "default": "comb_sum"}}},
    "a blend": {
        "blend": {
            "method": "linear",
            "reranker": "ce",
            "beta": {"by_intent": {"synergy": 0.1, "default": 0.9}},
        }
    },
}


def plain_system(whole: System, intent: str | None) -> System:
    """As the rule says: the numbers of the intent, or of ``default``."""
    configs = whole.by_intent
    assert configs is not None
    config = configs[intent if intent in configs else "default"]
    return System("plain", NAMES, config.fusion, config.blend)


@pytest.mark.parametrize("keys", BY_INTENT.values(), ids=BY_INTENT.keys())
def test_a_query_is_ranked_by_the_numbers_of_its_intent(keys: dict[str, Any]) -> None:
    system, runs = System("s", NAMES, **keys), aligned()
    together = final_scores(system, runs)
    for query, known in QUERIES.items():
        alone = final_scores(plain_system(system, known.intent), runs)
        assert together[query] == alone[query]


@pytest.mark.parametrize("keys", BY_INTENT.values(), ids=BY_INTENT.keys())
def test_the_batch_engine_gives_the_same_values(keys: dict[str, Any]) -> None:
    system, runs = System("s", NAMES, **keys), aligned()
    measures = [parse_measure("nDCG@5")]
    plain = [plain_system(system, known.intent) for known in QUERIES.values()]
    spaces = {"ce": "unit"}
    [together] = evaluate_systems([system], runs, measures, spaces=spaces, qrels=QRELS)  # type: ignore[arg-type]
    alone = evaluate_systems(plain, runs, measures, spaces=spaces, qrels=QRELS)  # type: ignore[arg-type]
    assert together.values[0].tolist() == [row.values[0, q] for q, row in enumerate(alone)]


def test_the_yaml_of_a_system_builds_it_again() -> None:
    system = System("s", NAMES, **BY_INTENT["a weight"])
    assert system.query_classes == ("default", "meta", "synergy")
    assert System.model_validate({"name": "s", **system.resolved_config}) == system
    assert "by_intent" not in System("s", NAMES).resolved_config


def test_an_explanation_names_the_intent() -> None:
    system, runs = System("s", NAMES, **BY_INTENT["a weight"]), aligned()
    explained = {
        query: explain_ranking(system, runs, query) for query in ("q00", "q01", "q02", "q03")
    }
    assert [item.intent for item in explained.values()] == ["meta", "synergy", "default", "default"]
    assert {item.query_type for item in explained.values()} == {None}
    assert explained["q02"].switched_off == {
        "meta": "intent is rules",
        "synergy": "intent is rules",
    }
    assert "language is ja" in explained["q03"].switched_off["synergy"]


def test_a_trained_fusion_learns_from_the_queries_of_its_intent() -> None:
    parts = {"meta": {"fusion": "logistic_regression"}, "default": {"fusion": "rrf"}}
    fitted = fit_system(System("s", NAMES, by_intent=parts), aligned())
    assert fitted.by_intent is not None
    learned = fitted.by_intent["meta"].fusion
    assert isinstance(learned, CrossFitted)
    asked = {query for query, known in QUERIES.items() if known.intent == "meta"}
    assert set(learned.fold_of_query) == asked


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"by_intent": {"meta": {}}}, "by_intent: intent 'default' is required"),
        (
            {"by_intent": {"default": {}}, "by_query_type": {"hybrid": {}}},
            "by_intent and by_query_type exclude each other",
        ),
        (
            {"by_intent": {"default": {}}, "weights_by_type": "conv-03-05"},
            "weights_by_type and by_intent exclude each other",
        ),
        (
            {"by_intent": {"default": {}}, "policy": "entropy_alpha"},
            "policy and by_intent exclude each other",
        ),
        ({"fusion": {"k": {"by_intent": {"meta": 1}}}}, "with a value for 'default'"),
    ],
)
def test_systems_that_break_a_rule(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        System("s", NAMES, **keys)
