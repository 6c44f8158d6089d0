"""Sources that are off for some queries: the obvious loop over queries is the oracle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.assessment import assess_system
from fusion_bench.experiment.system import System
from fusion_bench.measures import parse_measure
from fusion_bench.ranking.system_scores import evaluate_systems
from tests.ranking.systems.switched_cases import (
    LISTS,
    NAMES,
    QRELS,
    QUERIES,
    RERANK,
    ROLES,
    aligned,
    final_scores,
    is_on,
    make_run,
)


def rrf_by_hand(query: str, weights: dict[str, float], *, divide: bool) -> dict[str, float]:
    on = [name for name in NAMES if is_on(name, QUERIES[query])]
    scores: dict[str, float] = {}
    for name in on:
        ranked = sorted(LISTS[name][query], key=lambda d: (-LISTS[name][query][d], d))
        for rank, document in enumerate(ranked, start=1):
            term = weights.get(name, 1.0) / (60 + rank)
            scores[document] = scores.get(document, 0.0) + term
    greatest = sum(weights.get(name, 1.0) / 61 for name in on)
    return {document: score / (greatest if divide else 1) for document, score in scores.items()}


@pytest.mark.parametrize("normalize", ["none", "max_possible"])
def test_rrf_counts_only_the_sources_that_are_on(normalize: str) -> None:
    weights = {"dense": 2.0, "meta": 3.0, "synergy": 0.5}
    fusion = {"method": "rrf", "weights": weights, "normalize": normalize}
    system = System("s", NAMES, fusion)
    scores = final_scores(system, aligned())
    for query in QUERIES:
        expected = rrf_by_hand(query, weights, divide=normalize == "max_possible")
        assert scores[query] == pytest.approx(expected, rel=1e-12)


SYSTEMS: dict[str, dict[str, Any]] = {
    "rrf": {"fusion": {"method": "rrf", "weights": {"dense": 2, "synergy": 0.5}}},
    "one k a source": {"fusion": {"method": "rrf", "k": {"meta": 10, "dense": 30}}},
    "weight of a role": {"fusion": {"method": "rrf", "weights": {"notes": 3}}},
    "three lists": {"fusion": {"method": "rrf", "normalize": "three_lists"}},
    "rrf_v2": {"fusion": {"method": "rrf_v2", "normalize": "max_possible"}},
    "convex": {"fusion": {"method": "convex", "weights": {"meta": 2}}},
    "weighted_sum": {"fusion": {"method": "weighted_sum", "normalize": "min_max"}},
    "a scale a source": {
        "fusion": {
            "method": "weighted_sum",
            "normalize": {"method": "by_source", "sources": {"meta": "l2", "dense": "min_max"}},
        }
    },
    "borda": {"fusion": "borda"},
    "condorcet": {"fusion": "condorcet"},
    "log_odds": {"fusion": "log_odds"},
    "comb_mnz": {"fusion": "comb_mnz"},
    "threshold": {"fusion": {"method": "rrf", "normalize": "max_possible"}, "min_relevance": 0.5},
    "blend": {
        "fusion": {"method": "rrf", "weights": {"meta": 2}},
        "blend": {
            "method": "linear",
            "beta": 0.4,
            "reranker": "ce",
            "retrieval": "fused_max_possible",
        },
        "depth": {"meta": 3},
        "top_k": 5,
    },
}


def keep_keys(keys: dict[str, Any], on: list[str]) -> dict[str, Any]:
    """The keys of a system without what is said of sources that are off."""
    present = {*on, *(role for name in on for role in ROLES[name])}

    def keep(part: dict[str, Any], *fields: str) -> dict[str, Any]:
        return {
            key: {name: v for name, v in value.items() if name in present}
            if key in fields and isinstance(value, dict)
            else value
            for key, value in part.items()
        }

    kept = keep(keys, "depth")
    if isinstance(kept["fusion"], dict):
        kept["fusion"] = fusion = keep(kept["fusion"], "weights", "k")
        if isinstance(fusion.get("normalize"), dict):
            fusion["normalize"] = keep(fusion["normalize"], "sources")
    return kept


@pytest.mark.parametrize("keys", SYSTEMS.values(), ids=SYSTEMS.keys())
def test_a_query_is_ranked_as_by_a_system_of_the_sources_that_are_on(keys: dict[str, Any]) -> None:
    together = final_scores(System("s", NAMES, **keys), aligned())
    for query in QUERIES:
        on = [name for name in NAMES if is_on(name, QUERIES[query])]
        cut = keep_keys(keys, on)
        qrels = Qrels.from_dict({query: QRELS.to_dict()[query]})
        lists = [Run.from_dict(n, {query: LISTS[n][query]}, roles=make_run(n).roles) for n in on]
        alone = align(qrels, lists, rerankers=[RERANK])
        assert together[query] == final_scores(System("s", on, **cut), alone)[query]


@pytest.mark.parametrize("keys", SYSTEMS.values(), ids=SYSTEMS.keys())
def test_every_path_gives_the_same_values(keys: dict[str, Any]) -> None:
    system, runs = System("s", NAMES, **keys), aligned()
    measures = [parse_measure(name) for name in ("nDCG@5", "RR@10", "R@100")]
    [scores] = evaluate_systems([system], runs, measures, spaces={"ce": "unit"}, qrels=QRELS)
    assessed = assess_system(system, replace(runs, spaces={"ce": "unit"}), measures)
    assert scores.values.tolist() == assessed.values.tolist()


def test_a_stage_is_off_where_all_of_its_sources_are_off() -> None:
    inner = {"runs": ["meta", "synergy"], "fusion": "rrf"}
    fusion = {"method": "rrf", "weights": {"inner": 3}, "normalize": "max_possible"}
    scores = final_scores(
        System("s", ["dense", "inner"], fusion, stages={"inner": inner}), aligned()
    )
    lists = final_scores(System("inner", ["meta", "synergy"], "rrf"), aligned())
    for query in QUERIES:
        expected: dict[str, float] = {}
        for weight, ranked in ((1, LISTS["dense"][query]), (3, lists[query])):
            for rank, document in enumerate(sorted(ranked, key=lambda d: (ranked[d], d))[::-1], 1):
                expected[document] = expected.get(document, 0.0) + weight / (60 + rank)
        greatest = (4 if lists[query] else 1) / 61
        expected = {document: score / greatest for document, score in expected.items()}
        assert scores[query] == pytest.approx(expected, rel=1e-12)


def test_alpha_stays_the_weight_of_its_source() -> None:
    system = System(
        "s", ["dense", "meta"], {"method": "weighted_sum", "alpha": 0.7, "normalize": "none"}
    )
    scores = final_scores(system, aligned())
    for query, known in QUERIES.items():
        if not is_on("meta", known):
            weighed = {document: 0.7 * score for document, score in LISTS["dense"][query].items()}
            assert scores[query] == pytest.approx(weighed)


def test_a_query_without_any_source_gets_an_empty_list() -> None:
    scores = final_scores(System("s", ["meta", "synergy"], "rrf"), aligned())
    assert [bool(scores[query]) for query in QUERIES] == [
        is_on("meta", known) or is_on("synergy", known) for known in QUERIES.values()
    ]


def test_rrf_v2_needs_a_question_for_every_query() -> None:
    meta = make_run("meta")
    question = Run.from_dict("asked", LISTS["meta"], roles=frozenset({"question"}))
    assert meta.switch is not None
    runs = align(QRELS, [make_run("bm25"), question.switched(meta.switch)], queries=QUERIES)
    with pytest.raises(ConfigError, match=r"18.*'q01'\): rrf_v2"):
        final_scores(System("s", ["bm25", "asked"], "rrf_v2"), runs)
