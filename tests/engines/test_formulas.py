"""Each engine's own numbers: of its tests, its documentation, or by hand from its source."""

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import pytest

from fusion_bench.engines.dialects.opensearch import ScoreRankerProcessor, ZScore
from fusion_bench.experiment.system import System
from tests.engines.cases import Lists, align_lists, scores

#: A method, or its keys.
Keys: TypeAlias = str | Mapping[str, Any]
#: Source → document → score.
OneQuery: TypeAlias = Mapping[str, Mapping[str, float]]


def score(engine: str, fusion: Keys, lists: OneQuery, **settings: Any) -> dict[str, float]:  # noqa: ANN401 - of any system
    """Document → fused score, best first; the sources stand in the order of their lists."""
    keys = {"depth": None, "top_k": None, **settings}
    system = System("s", [*lists], dialect=engine, fusion=fusion, **keys)
    return scores(system, {name: {"q": run} if run else {} for name, run in lists.items()})


PAIR = {"bm25": {"a": 9.0, "b": 8.0}, "dense": {"b": 0.9, "c": 0.8}}
AZURE = {"bm25": {"a": 9.0, "b": 8.0}, "dense": {"a": 0.9, "c": 0.8}}
CHROMA = {"bm25": {"a": 9.0, "b": 8.0, "c": 7.0}, "dense": {"b": 0.9, "x": 0.8, "a": 0.7}}
DENSE_RANKS = {"bm25": {"a": 5.0, "b": 5.0, "c": 1.0}, "dense": {"c": 0.9, "a": 0.8}}
THREE = {"a": 3.0, "b": 2.0, "c": 1.0}
ELASTIC = {"bm25": {"a": 3.0, "b": 2.0}, "dense": {"b": 0.9, "c": 0.8}}
CONSTANT = {"bm25": {"one": 5.0}, "dense": {"four": 12.0}}
SIMPLE = {"bm25": THREE, "dense": {"b": 0.9, "d": 0.9}}
LANCE = {"bm25": {"a": 9.0, "b": 5.0, "c": 1.0}, "dense": {"c": 0.9, "d": 0.8}}
VESPA = {"bm25": {"a": 5.0, "b": 3.0, "c": 1.0}, "dense": {"c": 0.9, "a": 0.5}}
SQL = {"bm25": {"a": 4.0, "b": 3.0, "c": 2.0}, "dense": {"b": 0.5, "d": 0.5}}
HAYSTACK = {"bm25": THREE, "dense": {"b": 4.0, "c": 3.0, "a": 2.0, "f": 1.0}}
SAME = {"bm25": {"a": 1.0}, "dense": {"a": 1.0}}
ADR = {
    "dense": {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6},
    "hyde": {"a": 0.9, "e": 0.8},
    "bm25": {"a": 9.0, "d": 8.0},
}
STRATEGIES = ("keyword", "semantic", "graph")
SHARED = {"bm25": {"shared": 0.9, "k": 0.8}, "dense": {"shared": 0.9, "s": 0.8}}


def count_down(*numbers: int) -> OneQuery:
    """Lists of the documents 0 to n-1, each with its number as its score."""
    return {
        name: {str(n): float(n) for n in range(number)}
        for name, number in zip(("bm25", "dense"), numbers, strict=True)
    }


def chunks(count: int) -> OneQuery:
    """createMockResults of CONV-07-05: own documents of each strategy, scores 1, 0.9, 0.8, …"""
    return {name: {f"{name}-{n}": 1 - n * 0.1 for n in range(count)} for name in STRATEGIES}


def unit_rrf(count: int, *weights: float) -> dict[str, float]:
    """w/(60 + rank) · 61/3 of :func:`chunks`."""
    return {
        f"{name}-{n}": weight / (61 + n) * 61 / 3
        for name, weight in zip(STRATEGIES, weights, strict=True)
        for n in range(count)
    }


FUSED: dict[str, list[tuple[Any, ...]]] = {
    "azure": [
        # The published 2/60 has 32 bits; ranks count from 0, and the text query weighs 1.
        # https://learn.microsoft.com/en-us/azure/search/hybrid-search-how-to-query
        ({}, AZURE, {"a": 0.03333333507180214, "b": 1 / 61, "c": 1 / 61}),
        ({"weights": {"dense": 0.5}}, AZURE, {"a": 1.5 / 60, "b": 1 / 61, "c": 0.5 / 61}),
    ],
    "chroma": [
        # https://docs.trychroma.com/cloud/search-api/hybrid-search: −0.0331 and −0.0328. Without a
        # default, documents must be in all lists.
        ({}, CHROMA, {"b": 1 / 60 + 1 / 61, "a": 1 / 60 + 1 / 62}),
        # …/ranking: "Documents missing from a Knn with a default value get that default score".
        (
            {"default": 1000},
            CHROMA,
            {
                "b": 1 / 60 + 1 / 61,
                "a": 1 / 60 + 1 / 62,
                "c": 1 / 62 + 1 / 1060,
                "x": 1 / 61 + 1 / 1060,
            },
        ),
        # Docstring of Rrf: [3.0, 1.0] "will be normalized to [0.75, 0.25]".
        (
            {"k": 100, "weights": {"bm25": 3.0, "dense": 1.0}, "normalize": True},
            CHROMA,
            {"a": 0.75 / 100 + 0.25 / 102, "b": 0.75 / 101 + 0.25 / 100},
        ),
    ],
    "cosmos": [
        # Azure/azure-cosmos-dotnet-v3, pull request 5064, and hybrid_search_aggregator.py: equal
        # scores share a rank, none is missing, a negative weight reverses the list.
        (
            {"weights": {"bm25": 2.0}},
            DENSE_RANKS,
            {"a": 2 / 61 + 1 / 62, "b": 2 / 61 + 1 / 63, "c": 2 / 62 + 1 / 61},
        ),
        (
            {"weights": {"bm25": -2.0}},
            DENSE_RANKS,
            {"a": 2 / 62 + 1 / 62, "b": 2 / 62 + 1 / 63, "c": 2 / 61 + 1 / 61},
        ),
    ],
    "langchain": [
        # langchain-ai/langchain, test_ensemble.py, test_invoke; _set_weights by hand.
        (
            {"weights": {"bm25": 0.5, "dense": 0.5}},
            {"bm25": THREE, "dense": {"b": 1.0}},
            {"b": 0.5 / 62 + 0.5 / 61, "a": 0.5 / 61, "c": 0.5 / 63},
        ),
        (
            {},
            {"bm25": THREE, "dense": {"d": 1.0}},
            {"a": 0.5 / 61, "d": 0.5 / 61, "b": 0.5 / 62, "c": 0.5 / 63},
        ),
        (
            {"c": 1},
            {"bm25": THREE, "dense": {"a": 1.0}},
            {"a": 2 * 0.5 / 2, "b": 0.5 / 3, "c": 0.5 / 4},
        ),
    ],
    "llamaindex": [
        # By hand from llama_index/core/retrievers/fusion_retriever.py (0.14): k = 60 from 0, and
        # issue 21444: the weights are ignored; equal scores count 1, or 0 if not positive.
        ("simple", SIMPLE, {"a": 3.0, "b": 2.0, "c": 1.0, "d": 0.9}),
        (
            {"method": "reciprocal_rerank", "weights": {"bm25": 9.0}},
            SIMPLE,
            {"d": 1 / 60, "b": 2 / 61, "a": 1 / 60, "c": 1 / 62},
        ),
        (
            {"method": "relative_score", "weights": {"bm25": 3.0}},
            SIMPLE,
            {"a": 0.75, "b": 0.625, "d": 0.25, "c": 0.0},
        ),
        # Mean 2, population sd √(2/3): −0.449 … 4.449.
        (
            "dist_based_score",
            SIMPLE,
            pytest.approx({"a": 0.352062, "b": 0.75, "c": 0.147938, "d": 0.5}, abs=1e-6),
        ),
        *(
            (
                method,
                {"bm25": {"a": 0.0, "b": 0.0}, "dense": {"c": 0.2}},
                {"c": 0.5, "b": 0.0, "a": 0.0},
            )
            for method in ("relative_score", "dist_based_score")
        ),
    ],
    "lancedb": [
        # By hand from lancedb's rerankers and query.py (August 2026).
        ({}, LANCE, {"c": 1 / 61 + 1 / 63, "a": 1 / 61, "b": 1 / 62, "d": 1 / 62}),
        ({"K": 1}, LANCE, {"c": 1 / 2 + 1 / 4, "a": 1 / 2, "b": 1 / 3, "d": 1 / 3}),
        (
            {"method": "MRRReranker", "weight_vector": 0.75, "weight_fts": 0.25},
            LANCE,
            {"c": 0.75 + 0.25 / 3, "a": 0.25, "b": 0.125, "d": 0.375},
        ),
        ("LinearCombinationReranker", LANCE, {"c": 0.7, "a": 0.3, "b": 0.15, "d": 0.0}),
        (
            {"method": "LinearCombinationReranker", "fill": 0.5},
            LANCE,
            {"c": 0.7, "a": 0.3 + 0.35, "b": 0.15 + 0.35, "d": 0.15},
        ),
        # _normalize_scores: equal values become 0; a distance of 0 is a score of 1.
        (
            "LinearCombinationReranker",
            {"bm25": {"a": 3.0}, "dense": {"b": 0.5}},
            {"b": 0.7, "a": 0.0},
        ),
        # A list counts alone where the other one is empty.
        (
            {"method": "LinearCombinationReranker", "fill": 0.5},
            {"bm25": {"a": 3.0, "b": 1.0}, "dense": {}},
            {"a": 1.0, "b": 0.0},
        ),
    ],
    "manticore": [
        # https://manual.manticoresearch.com/Searching/Hybrid_search (August 2026).
        (
            {"rank_constant": 10, "weights": {"bm25": 0.7, "dense": 0.3}},
            PAIR,
            {"b": 0.7 / 12 + 0.3 / 11, "a": 0.7 / 11, "c": 0.3 / 12},
        ),
    ],
    "milvus": [
        # internal/util/function/rerank (2.6): TestWeightedFuctionProcess, TestRRFFuctionProcess.
        (
            {"method": "weighted", "norm_score": False, "weights": {"bm25": 0.1, "dense": 0.9}},
            count_down(10, 4),
            {str(n): 0.1 * n + 0.9 * n * (n < 4) for n in range(10)},
        ),
        (
            {"k": 100},
            {name: {n: -x for n, x in run.items()} for name, run in count_down(10, 4).items()},
            {str(n): (1 + (n < 4)) / (101 + n) for n in range(10)},
        ),
        # By hand, by getNormalizeFunc in util.go; L2 is a distance of 1.
        *(
            (
                {"method": "weighted", "metric": metric},
                {"bm25": {"a": given}, "dense": {}},
                {"a": expected},
            )
            for metric, given, expected in (
                ("COSINE", 0.5, 0.75),
                ("IP", 1.0, 0.75),
                ("BM25", 1.0, 0.5),
                ("L2", -1.0, 0.5),
                ("BM25", 10.0, 2 * math.atan(10) / math.pi),
            )
        ),
        # A distance beside a similarity is always scaled.
        (
            {"method": "weighted", "metric": {"bm25": "BM25", "dense": "L2"}, "norm_score": False},
            {"bm25": {"a": 3.0}, "dense": {"b": -1.0}},
            {"a": 3.0, "b": 0.5},
        ),
    ],
    "qdrant": [
        # reciprocal_rank_fusion.rs (1.19), test_rrf_scoring and …_weighted; score_fusion.rs.
        (
            {},
            {
                "bm25": {"2": 0.9, "1": 0.8},
                "dense": {"1": 0.7, "2": 0.6, "3": 0.5},
                "hyde": {"5": 0.9, "3": 0.5, "1": 0.4},
            },
            pytest.approx({"1": 1.0833334, "2": 0.8333334, "3": 0.5833334, "5": 0.5}, abs=1e-6),
        ),
        (
            {"weights": {"bm25": 3.0, "dense": 1.0}},
            {"bm25": {"1": 0.9, "2": 0.8}, "dense": {"2": 0.9, "1": 0.8}},
            {"2": 1 / (2 / 3 + 1) + 1 / 2, "1": 1 / (1 / 3 + 1) + 1 / 3},
        ),
        # Sample sd, 0.5 for one document: mean 2, sd 1: -1 … 5.
        ("dbsf", {"bm25": THREE, "dense": {"b": 0.9}}, {"b": 1.0, "a": 4 / 6, "c": 2 / 6}),
    ],
    "semche": [
        # The specification of semche 0.4.0: weights by role, or by name.
        ({}, PAIR, {"b": 0.5 / 62 + 0.5 / 61, "a": 0.5 / 61, "c": 0.5 / 62}),
        *(
            (
                {"dense_weight": 0.8, "sparse_weight": 0.2, "rrf_constant": 10, **vector},
                PAIR,
                {"b": 0.2 / 12 + 0.8 / 11, "a": 0.2 / 11, "c": 0.8 / 12},
            )
            for vector in ({}, {"vector": "dense"})
        ),
    ],
    "vespa": [
        # com.yahoo.search.ranking (8): ReciprocalRankNormalizer, LinearNormalizer; here the mean.
        (
            {"weights": {"bm25": 2.0}},
            VESPA,
            {"a": 2 / 61 + 1 / 62, "b": 2 / 62, "c": 2 / 63 + 1 / 61},
        ),
        ("normalize_linear", VESPA, {"a": 0.5, "c": 0.5, "b": 0.25}),
        ("normalize_linear", {"bm25": {"a": 5.0}, "dense": {}}, {"a": 0.25}),
    ],
    "weaviate": [
        # TestFusionRelativeScore, usecases/traverser/hybrid/hybrid_fusion_test.go (2026).
        *(
            (
                {"alpha": alpha},
                {name: dict(zip("012", run, strict=False)) for name, run in given.items()},
                expected,
            )
            for alpha, given, expected in (
                (0.5, {"dense": [1, 2, 3], "bm25": [0, 1, 2]}, {"2": 1, "1": 0.5, "0": 0}),
                (
                    0.5,
                    {"dense": [0, 2, 0.1], "bm25": [0, 0.2, 2]},
                    {"1": 0.55, "2": 0.525, "0": 0},
                ),
                (
                    0.75,
                    {"dense": [0.5, 0.5, 0], "bm25": [0, 0.01, 0.001]},
                    {"1": 1, "0": 0.75, "2": 0.025},
                ),
                (0.75, {"dense": [1.0], "bm25": []}, {"0": 0.75}),
            )
        ),
        # hybrid_fusion.go: weight / (60 + position), positions from 0.
        (
            {"method": "rankedFusion", "alpha": 0.75},
            {"dense": {"a": 0.9, "b": 0.8}, "bm25": {"b": 7.0}},
            {"b": 0.75 / 61 + 0.25 / 60, "a": 0.75 / 60},
        ),
        ({"vector": "bm25"}, {"dense": {"a": 0.9}, "bm25": {"b": 7.0}}, {"b": 0.75, "a": 0.25}),
    ],
    "haystack": [
        # deepset-ai/haystack, test_document_joiner.py (2.20): …_with_merge_join_mode,
        # …_distribution_based_rank_fusion_join_mode (cut to two digits) and …_same_scores, …_rrf.
        (
            {"method": "merge", "weights": {"bm25": 1.5, "dense": 0.5}},
            {"bm25": {"a": 1.0, "b": 2.0}, "dense": {"a": 0.5, "b": 3.0, "f": 4.0}},
            {"b": 2.25, "f": 1.0, "a": 0.875},
        ),
        *(
            (
                "distribution_based_rank_fusion",
                {"bm25": first, "dense": {"d": 0.5, "e": 0.8, "f": 1.1, "g": 0.3, "a": 0.3}},
                pytest.approx({"f": 0.76, "e": 0.60, "d": 0.44, "g": 0.33, **rest}, abs=0.0101),
            )
            for first, rest in (
                ({"a": 0.6, "b": 0.2, "c": 0.5}, {"a": 0.66, "c": 0.56, "b": 0.27}),
                ({"a": 0.2, "b": 0.2, "c": 0.2}, {"a": 0.33, "b": 0.0, "c": 0.0}),
            )
        ),
        (
            "reciprocal_rank_fusion",
            HAYSTACK,
            {
                "b": (61 / 62 + 1) / 2,
                "a": (1 + 61 / 63) / 2,
                "c": (61 / 63 + 61 / 62) / 2,
                "f": 61 / 64 / 2,
            },
        ),
        *(
            ({"method": "reciprocal_rank_fusion", "weights": weights}, SAME, {"a": 1.0})
            for weights in ({"bm25": 0.7, "dense": 0.3}, {"bm25": 7.0, "dense": 3.0})
        ),
        # max(docs, key=lambda doc: doc.score if doc.score else -inf)
        (
            "concatenate",
            {"bm25": {"a": 0.3, "b": 0.0, "c": 0.0}, "dense": {"a": 0.2, "b": -1.0}},
            {"a": 0.3, "c": 0.0, "b": -1.0},
        ),
    ],
    "pgvector": [
        # pgvector-python, examples/hybrid_search/rrf.py, and by hand.
        ({}, SQL, {"b": 2 / 62, "d": 1 / 61, "a": 1 / 61, "c": 1 / 63}),
        (
            {"method": "convex", "weights": {"bm25": 0.5}},
            SQL,
            {"b": 1.25, "d": 1.0, "a": 0.5, "c": 0.0},
        ),
    ],
    "qmd": [
        # tobi/qmd (2.8), test/store.test.ts: the bonus, and weights [2, 1, 2] by query type.
        (
            {"weights": {}},
            {"bm25": {"doc1": 0.9, "doc2": 0.8}, "dense": {"doc3": 0.85}},
            {"doc3": 1 / 61 + 0.05, "doc1": 1 / 61 + 0.05, "doc2": 1 / 62 + 0.02},
        ),
        (
            {"weights": {"bm25": 2.0, "question": 2.0}},
            {"bm25": {"fts": 0.95}, "hyde": {"lex": 0.95}, "dense": {"vec": 0.95}},
            {"vec": 2 / 61 + 0.05, "fts": 2 / 61 + 0.05, "lex": 1 / 61 + 0.05},
        ),
    ],
    "adr-005": [
        # ADR-005, decisions 1 and 2: v2, then v1.
        (
            {},
            ADR,
            {
                "a": 4 / 61 + 0.05,
                "b": 2 / 62 + 0.02,
                "c": 2 / 63 + 0.02,
                "d": 2 / 64 + 1 / 62 + 0.02,
                "e": 1 / 62 + 0.02,
            },
        ),
        ("rrf", ADR, {"a": 3 / 61, "b": 1 / 62, "c": 1 / 63, "d": 1 / 64 + 1 / 62, "e": 1 / 62}),
    ],
    "elasticsearch": [
        # https://www.elastic.co/docs/reference/elasticsearch/rest-apis/reciprocal-rank-fusion (9.2)
        (
            {"rank_constant": 1, "weights": {"bm25": 2.0}},
            ELASTIC,
            {"b": 2 / 3 + 1 / 2, "a": 2 / 2, "c": 1 / 3},
        ),
        # x-pack/plugin/rank-rrf/…/linear/10_linear_retriever_normalizers.yml (9.1); a single
        # document of a list: 1.0 since pull request 128689 (8.18.3, 9.0.3).
        *(
            ({"method": "linear", "normalizer": normalizer}, CONSTANT, expected)
            for normalizer, expected in (
                ("l2_norm", {"one": 1.0, "four": 1.0}),
                ("minmax", {"one": 1.0, "four": 1.0}),
                ("none", {"four": 12.0, "one": 5.0}),
                ({"dense": "l2_norm"}, {"one": 5.0, "four": 1.0}),
            )
        ),
        (
            {"method": "linear", "normalizer": "l2_norm"},
            {"bm25": {"1": 5.0, "4": 12.0}, "dense": {}},
            {"4": 12 / 13, "1": 5 / 13},
        ),
        # MinMaxScoreNormalizer: the last document 0, as if missing; scores within 1e-6 are equal.
        (
            {"method": "linear", "normalizer": "minmax", "weights": {"bm25": 0.5}},
            {"bm25": {"a": 4.0, "b": 3.0, "c": 2.0}, "dense": {"b": 0.5, "d": 0.5 + 5e-7}},
            {"b": 1.25, "d": 1.0, "a": 0.5, "c": 0.0},
        ),
    ],
    "opensearch": [
        # MinMaxScoreNormalizationTechnique: 0 becomes 0.001; a single document is 1.
        (
            {},
            {"bm25": {"a": 5.0, "b": 3.0}, "dense": {"c": 0.2}},
            {"a": 0.5, "c": 0.5, "b": 0.0005},
        ),
        # RRFNormalizationTechnique: BigDecimal.ONE.divide(60 + rank, 10, HALF_UP).
        (
            "score-ranker-processor",
            {"bm25": {"a": 2.0, "b": 1.0}, "dense": {"b": 2.0}},
            pytest.approx({"b": 0.0161290323 + 0.0163934426, "a": 0.0163934426}, rel=1e-15),
        ),
    ],
    "lucene": [
        # Lucene's TestTopDocsRRF.testBasics (10.x): k = 20.
        (
            {"k": 20},
            {"bm25": {"42": 10.0, "10": 5.0, "20": 3.0}, "dense": {"10": 10.0, "20": 5.0}},
            {"10": 1 / 22 + 1 / 21, "20": 1 / 23 + 1 / 22, "42": 1 / 21},
        ),
    ],
    "conv-07-05": [
        # CONV-07-05, section 6: 重みが正しく適用される, fusedScoreが0-1の範囲,
        # 重複するチャンクが正しく統合される.
        (
            {"weights": dict(zip(STRATEGIES, (0.1, 0.1, 0.8), strict=True))},
            chunks(3),
            unit_rrf(3, 0.1, 0.1, 0.8),
        ),
        (
            {"weights": dict(zip(STRATEGIES, (0.33, 0.33, 0.34), strict=True))},
            chunks(10),
            unit_rrf(10, 0.33, 0.33, 0.34),
        ),
        *(
            (
                {"method": method, "weights": {"keyword": 0.5, "semantic": 0.5, "graph": 0.0}},
                SHARED,
                expected,
            )
            for method, expected in (
                ("RRFFusion", {"shared": 1 / 3, "k": 0.5 / 3 * 61 / 62, "s": 0.5 / 3 * 61 / 62}),
                ("WeightedScoreFusion", {"shared": 0.9, "k": 0.8, "s": 0.8}),
            )
        ),
        (
            {"method": "WeightedScoreFusion", "weights": {"keyword": 0.5, "semantic": 0.5}},
            {"bm25": {"a": 0.9, "b": 0.9}, "dense": {"b": 0.7}},
            {"a": 0.9, "b": 0.8},
        ),
        # getWeight: default: return 1
        ({}, {"hyde": {"a": 1.0}}, {"a": 1 / 3}),
    ],
}


@pytest.mark.parametrize(
    ("engine", "fusion", "lists", "expected"),
    [(engine, *case) for engine, cases in FUSED.items() for case in cases],
)
def test_fused_scores(engine: str, fusion: Keys, lists: OneQuery, expected: Any) -> None:  # noqa: ANN401 - a mapping, or one with a tolerance
    fused = score(engine, fusion, lists)
    assert fused == (pytest.approx(expected) if isinstance(expected, Mapping) else expected)
    assert [*fused.values()] == sorted(fused.values(), reverse=True)


def test_ranks_of_cosmos_begin_anew_for_each_query() -> None:
    lists: Lists = {
        "bm25": {"p": {"x": 1.0}, "q": {"a": 5.0, "b": 4.0}},
        "dense": {"q": {"b": 1.0}},
    }
    system = System("s", ["bm25", "dense"], dialect="cosmos")
    assert scores(system, lists)["b"] == pytest.approx(1 / 62 + 1 / 61)
    assert scores(system, lists, "p") == pytest.approx({"x": 2 / 61})


def test_lists_of_qdrant_weigh_threefold_and_are_not_clipped() -> None:
    """test_rrf_scoring_weighted_ratio: k = 60, weights 3 and 1, lists without a common document."""
    lists = {
        "bm25": {f"{n}": 20.0 - n for n in range(11, 19)},
        "dense": {f"{n}": 30.0 - n for n in range(21, 29)},
    }
    top = [*score("qdrant", {"k": 60, "weights": {"bm25": 3.0}}, lists)][:10]
    heavy = sum(document.startswith("1") for document in top)
    assert heavy >= 2 * (len(top) - heavy)
    spread = {"bm25": {f"{n:02}": float(n == 0) for n in range(20)}, "dense": {}}
    assert score("qdrant", "dbsf", spread)["00"] > 1.0


def test_a_window_of_elasticsearch_cuts_and_scores_of_conv_are_clamped() -> None:
    fused = score("elasticsearch", "rrf", ELASTIC, depth=1)
    assert set(fused) == {"a", "b"}
    # normalizeScore: ``Math.min(1, …)``.
    heavy = {"weights": {"hyde": 9.0}}
    assert score("conv-07-05", heavy, {"hyde": {"a": 1.0}}, min_relevance=1.5) == {}


@pytest.mark.parametrize(
    ("combination", "values", "expected"),
    [
        # neural-search, GeometricMeanScoreCombinationTechniqueTests (3.x); what is 0 is left out.
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
def test_means_of_opensearch(
    combination: str, values: tuple[float | None, ...], expected: float
) -> None:
    weights = {"bm25": 0.45, "dense": 0.15, "hyde": 0.4}
    lists = {  # of min-max scores; None = not returned
        name: {"top": 1.0, "low": 0.0} | ({} if value is None else {"d": value})
        for name, value in zip(weights, values, strict=True)
    }
    fused = score("opensearch", {"combination": combination, "weights": weights}, lists)
    assert fused["d"] == pytest.approx(expected, abs=1e-4)


def test_a_z_score_of_opensearch_and_a_rank_rounded_half_up() -> None:
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
    table = scaled[:, [rows[name] for name in "123"]]
    expected = [[0.001, 0.41478074, 0.72586626], [0.001, 0.001, 1.1406468], [1.0, np.nan, np.nan]]
    np.testing.assert_allclose(table, expected, atol=1e-6)
    half = ScoreRankerProcessor(rank_constant=2**10 - 1)
    assert half.fuse(align_lists({"bm25": {"q": {"a": 1.0}}}))[-1] == 0.0009765625


def _logit(chance: float) -> float:
    return math.log(chance / (1 - chance))


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


@pytest.mark.parametrize(
    ("options", "both", "one"),
    [
        # By hand, by LogOddsFusionScoreFunction: n = 2 lists, 0.9 and 0.2; then 0.9 alone.
        ({}, 2**0.5 * (_logit(0.9) + _logit(0.2)) / 2, 2**0.5 * _logit(0.9) / 2),
        ({"alpha": 0}, (_logit(0.9) + _logit(0.2)) / 2, _logit(0.9) / 2),
        (
            {"weights": {"bm25": 0.25, "dense": 0.75}},
            2**0.5 * (0.25 * _logit(0.9) + 0.75 * _logit(0.2)),
            2**0.5 * 0.25 * _logit(0.9),
        ),
        (
            {"gating": "softplus", "alpha": 1},
            math.log1p(math.exp(_logit(0.9))) + math.log1p(math.exp(_logit(0.2))),
            math.log1p(math.exp(_logit(0.9))),
        ),
        (
            {"signal_base_rates": {"bm25": 0.1}, "base_rate": 0.3, "alpha": 1},
            _logit(0.3) + _logit(0.9) - _logit(0.1) + _logit(0.2),
            _logit(0.3) + _logit(0.9) - _logit(0.1),
        ),
        (
            {"logit_bounds": {"bm25": (-1, 4), "dense": (0, 1)}, "alpha": 1},
            (1 + _logit(0.9)) / 5,
            (1 + _logit(0.9)) / 5,
        ),
    ],
)
def test_log_odds_of_lucene(options: Mapping[str, Any], both: float, one: float) -> None:
    lists = {"bm25": {"a": 0.9, "b": 0.9}, "dense": {"a": 0.2}}
    fused = score("lucene", {"method": "LogOddsFusionQuery", **options}, lists)
    assert fused == pytest.approx({"a": _sigmoid(both), "b": _sigmoid(one)})


def test_log_odds_of_lucene_are_kept_from_zero_and_one() -> None:
    lists = {"bm25": {"a": 1.0, "b": 0.0}, "dense": {"a": 25.0}}
    fused = score("lucene", {"method": "LogOddsFusionQuery", "alpha": 0}, lists)
    assert fused == pytest.approx({"a": 1 - 1e-7, "b": _sigmoid(_logit(1e-7) / 2)})
