"""OpenSearch's numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from fusion_bench.engines.dialects.opensearch import OpenSearch, ScoreRankerProcessor, ZScore
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from tests.engines.cases import ROLES, align_lists, scores

#: One document of each list; the lists' names stand for three queries of a hybrid query.
WEIGHTS = {"bm25": 0.45, "dense": 0.15, "hyde": 0.4}


def system(**fusion: object) -> System:
    return System("s", ["bm25", "dense", "hyde"], dialect="opensearch", fusion=fusion, depth=None)


def lists_of(*values: float | None) -> dict[str, Any]:
    """Lists whose min-max scores of document ``d`` are these; None = not returned."""
    return {
        name: {"q": {"top": 1.0, "low": 0.0} | ({} if value is None else {"d": value})}
        for name, value in zip(ROLES, values, strict=True)
    }


@pytest.mark.parametrize(
    ("combination", "values", "expected"),
    [
        # neural-search, GeometricMeanScoreCombinationTechniqueTests (3.x): scores 1.0, 0.5, 0.3 of
        # weights 0.45, 0.15, 0.4 give 0.5567; 1.0, 0 and 0.6 give 0.7863, for 0 is left out.
        ("geometric_mean", (1.0, 0.5, 0.3), 0.5567),
        ("geometric_mean", (1.0, None, 0.6), 0.7863),
        # By hand, by HarmonicMeanScoreCombinationTechnique: 1/(.45/1 + .15/.5 + .4/.3), and
        # .85/(.45/1 + .4/.6).
        ("harmonic_mean", (1.0, 0.5, 0.3), 0.48),
        ("harmonic_mean", (1.0, None, 0.6), 0.76119),
        # By hand: .45 + .075 + .12, and .45 + .24 over all weights: a missing document counts 0.
        ("arithmetic_mean", (1.0, 0.5, 0.3), 0.645),
        ("arithmetic_mean", (1.0, None, 0.6), 0.69),
    ],
)
def test_means(combination: str, values: tuple[float | None, ...], expected: float) -> None:
    fused = scores(system(combination=combination, weights=WEIGHTS), lists_of(*values))
    assert fused["d"] == pytest.approx(expected, abs=1e-4)


def test_z_score_of_the_engines_test() -> None:
    """neural-search, ZScoreNormalizationTechniqueTests (3.x): the sample standard deviation."""
    runs = align_lists(
        {
            "bm25": {"q": {"1": 2.0, "2": 7.0, "3": 8.0}},
            "dense": {"q": {"1": 5.0, "2": 4.0, "3": 10.0}},
            "hyde": {"q": {"1": 1.0}},
        }
    )
    scaled = ZScore().normalize_scores(runs)
    rows = {runs.vocabulary[runs.documents[n]]: n for n in range(len(runs.documents))}
    assert scaled[0, rows["2"]] == pytest.approx(0.41478074, abs=1e-6)
    assert scaled[0, rows["3"]] == pytest.approx(0.72586626, abs=1e-6)
    assert scaled[1, rows["3"]] == pytest.approx(1.1406468, abs=1e-6)
    assert scaled[0, rows["1"]] == scaled[1, rows["1"]] == scaled[1, rows["2"]] == 0.001
    assert scaled[2, rows["1"]] == 1.0


def test_min_max_has_a_floor() -> None:
    """MinMaxScoreNormalizationTechnique: 0 becomes 0.001; a single document is 1."""
    lists = {"bm25": {"q": {"a": 5.0, "b": 3.0}}, "dense": {"q": {"c": 0.2}}}
    fused = scores(System("s", ["bm25", "dense"], dialect="opensearch", fusion={}), lists)
    assert fused == pytest.approx({"a": 0.5, "c": 0.5, "b": 0.0005})


def test_ranks_are_rounded_half_up_to_ten_decimals() -> None:
    """RRFNormalizationTechnique: BigDecimal.ONE.divide(60 + rank, 10, HALF_UP)."""
    lists = {"bm25": {"q": {"a": 2.0, "b": 1.0}}, "dense": {"q": {"b": 2.0}}}
    fused = scores(
        System("s", ["bm25", "dense"], dialect="opensearch", fusion="score-ranker-processor"), lists
    )
    assert fused == {"b": 0.0161290323 + 0.0163934426, "a": 0.0163934426}
    half = ScoreRankerProcessor(rank_constant=2**10 - 1)
    assert half.fuse(align_lists({"bm25": {"q": {"a": 1.0}}}))[-1] == 0.0009765625


@pytest.mark.parametrize(
    "weights", [{"bm25": 0.5}, {"bm25": 2.0, "dense": 1.0}, {"bm25": 0.5, "dense": 0.4}]
)
def test_weights_must_add_up_to_one(weights: Mapping[str, float]) -> None:
    fusion = {"method": "score-ranker-processor", "weights": weights}
    wrong = System("s", ["bm25", "dense"], dialect="opensearch", fusion=fusion)
    (_, error), *_ = wrong.find_misfits(ROLES, [])
    assert "sum of 1" in str(error)


def test_z_score_needs_the_arithmetic_mean() -> None:
    with pytest.raises(ConfigError, match="arithmetic_mean"):
        system(normalization="z_score", combination="harmonic_mean")


@pytest.mark.parametrize(
    ("fusion", "fidelity", "reason"),
    [
        ({"method": "rrf", "weights": {"dense": 3.0}}, "exact", None),
        ({"method": "rrf", "k": 0}, "approximate", "k: 1"),
        ("convex", "approximate", "0.001"),
        ({"method": "convex", "normalize": "max"}, "unsupported", "max"),
        ("rrf_v2", "approximate", "bonus"),
    ],
)
def test_what_is_lost(fusion: str | Mapping[str, Any], fidelity: str, reason: str | None) -> None:
    ours = System("s", ["bm25", "dense"], fusion, depth=50, top_k=10)
    translation = OpenSearch.translate(ours, ROLES)
    assert translation.fidelity == fidelity
    assert reason is None or any(reason in text for text in translation.reasons)


def test_more_than_five_lists_are_refused() -> None:
    names = [f"l{n}" for n in range(6)]
    roles = dict.fromkeys(names, frozenset({"semantic"}))
    assert OpenSearch.translate(System("s", names), roles).fidelity == "unsupported"


def test_searches_go_by_role_and_replace_is_the_rerank_processor() -> None:
    blend = {"method": "replace", "reranker": "ce", "depth": 30, "missing": "below"}
    system = System("s", ["bm25", "dense"], "rrf", depth=60, top_k=10, blend=blend)
    translation = OpenSearch.translate(system, ROLES)
    assert translation.fidelity == "rank-equivalent"
    assert translation.system is not None
    files = OpenSearch.write_by_role(translation.system, ROLES).files
    request = json.loads(files["search.json"])
    bm25, dense = request["query"]["hybrid"]["queries"]
    assert bm25 == {"match": {"FIELD": {"query": "QUERY", "_name": "bm25"}}}
    vector = {"vector": "QUERY_VECTOR", "k": 60, "_name": "dense"}
    assert dense == {"knn": {"VECTOR_FIELD": vector}}
    assert request["size"] == 30  # what the processor reranks
    assert request["ext"]["rerank"]["query_context"] == {"query_text": "QUERY"}
    rerank, cut = json.loads(files["search-pipeline.json"])["response_processors"]
    assert rerank["rerank"]["ml_opensearch"] == {"model_id": "ce"}
    assert cut == {"truncate_hits": {"target_size": 10}}
    again = System.model_validate({"name": "s", **OpenSearch.read(files)})
    assert (again.depth, again.top_k) == (60, 10)
    assert again.blend == translation.system.blend
