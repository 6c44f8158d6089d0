"""CONV-07-05's own test cases (its section 6), by name, on real lists and a real server."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import ProviderError
from fusion_bench.experiment.system import System
from fusion_bench.explain.explanation import ScoreTrace, explain_ranking
from fusion_bench.models.reranker_protocol import Reply
from fusion_bench.models.rerankers import providers
from tests.models.rerank.server import Loopback, serving

STRATEGIES = ("keyword", "semantic", "graph")
EQUAL = {"keyword": 0.33, "semantic": 0.33, "graph": 0.34}


def made_results(strategy: str, count: int) -> dict[str, float]:
    """``chunk-STRATEGY-0`` and so on; scores of 1, 0.9, 0.8, …"""
    return {f"chunk-{strategy}-{i}": 1 - i * 0.1 for i in range(count)}


def fuse(
    result_sets: Mapping[str, Mapping[str, float]], weights: Mapping[str, float], **keys: object
) -> tuple[ScoreTrace, ...]:
    """The fused documents with their terms, best first, by the profile's fusion."""
    fusion = {"method": "rrf", "k": 60, "weights": weights, "normalize": "three_lists"}
    system = System.model_validate(
        {"name": "s", "runs": tuple(result_sets), "fusion": fusion, **keys}
    )
    lists = [
        Run.from_dict(name, {"q": scores}, roles=frozenset({name}))
        for name, scores in result_sets.items()
    ]
    runs = align(Qrels.from_dict({"q": {"none": 1}}), lists, ties="first_seen")
    traces = explain_ranking(system, runs, "q").traces
    return tuple(trace for trace in traces if trace.rank is not None)


def rerank(dialect: str, scores: Sequence[float], **server: object) -> Reply:
    """Ten candidates (five for a language model) through a server that gives these scores."""

    async def ask() -> Reply:
        config = {"method": dialect, "base_url": state.url, "key": None, "model": "m"}
        async with providers.build(config).open_reranker() as reranker:
            return await reranker.score("test query", [f"Content {i}" for i in range(len(scores))])

    with serving(Loopback(dialect, score=lambda *_: list(scores), **server)) as state:  # type: ignore[arg-type]
        return asyncio.run(ask())


def best_first(reply: Reply) -> list[tuple[int, float]]:
    return sorted(enumerate(reply.scores), key=lambda pair: -pair[1])


# RRFFusion


def test_three_search_results_are_merged() -> None:
    fused = fuse({name: made_results(name, 5) for name in STRATEGIES}, EQUAL)
    assert len(fused) == 15
    assert fused[0].score == pytest.approx((0.34 / 61) / (3 / 61))
    assert all(trace.score is not None for trace in fused)


def test_a_duplicate_chunk_is_merged() -> None:
    shared = {"shared-chunk": 1.9}
    result_sets = {name: shared | made_results(name, 2) for name in ("keyword", "semantic")}
    fused = fuse(result_sets, {"keyword": 0.5, "semantic": 0.5})
    [merged] = [trace for trace in fused if trace.document == "shared-chunk"]
    sources = [term.source for term in merged.terms if term.rank is not None]
    assert sources == ["keyword", "semantic"]
    assert [term.rank for term in merged.terms] == [1, 1]
    assert merged is fused[0]


def test_weights_are_applied() -> None:
    weights = {"keyword": 0.1, "semantic": 0.1, "graph": 0.8}
    fused = fuse({name: made_results(name, 3) for name in STRATEGIES}, weights)
    [first] = [term for term in fused[0].terms if term.rank == 1]
    assert first.source == "graph"


def test_the_fused_score_lies_between_0_and_1() -> None:
    fused = fuse({name: made_results(name, 10) for name in STRATEGIES}, EQUAL)
    assert len(fused) == 30
    assert all(0 <= trace.score <= 1 for trace in fused)
    everywhere = {name: {"chunk": 1.0} for name in STRATEGIES}
    assert fuse(everywhere, dict.fromkeys(STRATEGIES, 5))[0].score == 1


# CohereReranker


def test_cohere_reranks_candidates() -> None:
    scores = [0.1] * 10
    scores[2], scores[0], scores[1] = 0.95, 0.85, 0.75
    reply = rerank("cohere", scores)
    assert best_first(reply)[:3] == [(2, 0.95), (0, 0.85), (1, 0.75)]


def test_an_api_error_is_an_error() -> None:
    with pytest.raises(ProviderError) as caught:
        rerank("cohere", [0.1] * 5, fail=lambda _: "500")
    assert caught.value.kind == "server"


# LLMReranker


def test_a_language_model_scores_a_batch() -> None:
    reply = rerank("chat", [0.8, 0.7, 0.9, 0.6, 0.5])
    assert best_first(reply)[:3] == [(2, 0.9), (0, 0.8), (1, 0.7)]


# NoOpReranker


def test_no_op_keeps_the_order_and_applies_the_limit() -> None:
    result_sets = {name: made_results(name, 5) for name in STRATEGIES}
    whole = [trace.document for trace in fuse(result_sets, EQUAL)]
    limited = [trace.document for trace in fuse(result_sets, EQUAL, top_k=5)]
    assert limited == whole[:5]
