"""CONV-07-05's interfaces and its own test cases (section 6), by name."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from fusion_bench import Pipeline
from fusion_bench.config.query_types import CONV_03_05
from fusion_bench.errors import ConfigError, ProviderError, UnknownNameError
from fusion_bench.serving.live.conv_07_05 import (
    CohereReranker,
    FusedSearchResult,
    FusedSource,
    LLMReranker,
    NoOpReranker,
    RRFFusion,
    VoyageReranker,
    WeightedScoreFusion,
)
from tests.models.rerank.server import Loopback, serving

Json = Any
EQUAL = {"keyword": 0.33, "semantic": 0.33, "graph": 0.34}


def mock_results(strategy: str, count: int) -> list[dict[str, Any]]:
    return [
        {
            "chunkId": f"chunk-{strategy}-{i}",
            "content": f"Content {strategy} {i}",
            "score": 1 - i * 0.1,
            "source": strategy,
            "metadata": {},
        }
        for i in range(count)
    ]


def mock_fused(count: int) -> list[FusedSearchResult]:
    return [FusedSearchResult(f"c{i}", f"content {i}", 0.9 - 0.01 * i) for i in range(count)]


def rerank(reranker: Any, candidates: Sequence[FusedSearchResult], limit: int) -> list[Any]:  # noqa: ANN401
    result: list[Any] = asyncio.run(reranker.rerank("test query", candidates, limit))
    return result


# ── RRFFusion


def test_rrf_fusion_a_chunk_of_two_lists_is_there_once() -> None:
    shared = {"chunkId": "shared-chunk", "content": "Shared content", "score": 0.9, "metadata": {}}
    sets = {
        "keyword": [{**shared, "metadata": {"a": 1, "b": 1}}, *mock_results("keyword", 2)],
        "semantic": [{**shared, "metadata": {"b": 2}}, *mock_results("semantic", 2)],
    }
    fused = RRFFusion().fuse(sets, {"keyword": 0.5, "semantic": 0.5, "graph": 0})
    [result] = [item for item in fused if item.chunk_id == "shared-chunk"]
    assert result.sources == (FusedSource("keyword", 1, 0.9), FusedSource("semantic", 1, 0.9))
    assert result.metadata == {"a": 1, "b": 2}
    assert result.to_dict() == {
        "chunkId": "shared-chunk",
        "content": "Shared content",
        "fusedScore": pytest.approx(1 / 3),
        "sources": [
            {"strategy": "keyword", "rank": 1, "score": 0.9},
            {"strategy": "semantic", "rank": 1, "score": 0.9},
        ],
        "metadata": {"a": 1, "b": 2},
    }


def test_ranks_and_means_of_the_lists_that_returned_a_chunk() -> None:
    sets = {"keyword": [("b", 0.1), ("a", 0.9)], "other": [("c", 5.0)]}
    fused = RRFFusion(k=1).fuse(sets, {"keyword": 1.0, "semantic": 1.0, "graph": 1.0})
    assert [result.chunk_id for result in fused] == ["b", "c", "a"]  # another strategy weighs 1
    assert fused[2].sources == (FusedSource("keyword", 2, 0.9),)
    sets = {"keyword": [("a", 0.9), ("b", 0.9)], "semantic": [("b", 0.7)]}
    fused = WeightedScoreFusion().fuse(sets, {"keyword": 0.5, "semantic": 0.5, "graph": 0})
    assert {r.chunk_id: r.fused_score for r in fused} == pytest.approx({"a": 0.9, "b": 0.8})
    assert [r.chunk_id for r in fused] == ["a", "b"]
    assert RRFFusion().fuse({}, EQUAL) == []
    assert RRFFusion().fuse({"keyword": []}, EQUAL) == []


# ── rerankers


#: What the document's mock of the endpoint answers.
MOCK_RESULTS = [
    {"index": 2, "relevance_score": 0.95},
    {"index": 0, "relevance_score": 0.85},
    {"index": 1, "relevance_score": 0.75},
]
SERVERS: Mapping[str, tuple[Any, str, str]] = {
    "cohere_v1": (CohereReranker, "results", "top_n"),
    "voyage": (VoyageReranker, "data", "top_k"),
}


@contextmanager
def mocked(dialect: str, results: Json) -> Iterator[tuple[Any, Loopback]]:
    model, key, _ = SERVERS[dialect]
    with serving(Loopback(dialect, reply={key: results})) as state:
        yield model(base_url=state.url, key=None), state


@pytest.mark.parametrize("dialect", SERVERS)
def test_cohere_reranker_reranks(dialect: str) -> None:
    with mocked(dialect, MOCK_RESULTS) as (reranker, state):
        result = rerank(reranker, mock_fused(10), 3)
    assert len(result) == 3
    assert [(item.chunk_id, item.reranked_score) for item in result] == [
        ("c2", 0.95),
        ("c0", 0.85),
        ("c1", 0.75),
    ]
    assert result[0].fused_score == 0.88
    [request] = state.requests
    assert request[SERVERS[dialect][2]] == 3
    assert request["documents"] == [f"content {i}" for i in range(10)]
    assert request["model"] == {
        "cohere_v1": "rerank-multilingual-v3.0", "voyage": "rerank-2"
    }[dialect]  # fmt: skip


@pytest.mark.parametrize("dialect", SERVERS)
@pytest.mark.parametrize("status", ["500", "429", "401"])
def test_cohere_reranker_an_api_error_is_an_error(dialect: str, status: str) -> None:
    with serving(Loopback(dialect, reply={}, fail=lambda _: status)) as state:
        reranker = SERVERS[dialect][0](base_url=state.url, key=None)
        with pytest.raises(ProviderError, match=status):
            rerank(reranker, mock_fused(5), 3)
    assert len(state.requests) == 1


def test_cohere_reranker_always_asks_and_asks_for_nothing_without_candidates() -> None:
    with mocked("cohere_v1", MOCK_RESULTS) as (reranker, state):
        assert rerank(reranker, [], 3) == []
        assert len(rerank(reranker, mock_fused(3), 3)) == 3
    assert len(state.requests) == 1


def test_llm_reranker_keeps_what_could_not_be_read_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving(Loopback("chat", say=lambda _: "I cannot rate these documents.")) as state:
        keys: Json = {"base_url": state.url, "key": None}
        result = rerank(LLMReranker("m", **keys), mock_fused(10), 3)
    assert [(item.chunk_id, item.reranked_score) for item in result] == [
        ("c0", 0.5),
        ("c1", 0.5),
        ("c2", 0.5),
    ]
    assert "10 of 10 scores" in caplog.text


def test_llm_reranker_leaves_as_many_as_are_wanted_alone() -> None:
    with serving(Loopback("chat")) as state:
        few = rerank(LLMReranker("m", base_url=state.url, key=None), mock_fused(5), 5)
        assert (few, state.requests) == (mock_fused(5), [])
        always = LLMReranker("m", base_url=state.url, key=None, always_rerank=True)
        assert rerank(always, mock_fused(5), 5)[0].reranked_score is not None


@pytest.mark.parametrize("how", ["500", "close", "text"])
def test_llm_reranker_a_failure_keeps_the_fused_order(how: str) -> None:
    with serving(Loopback("chat", fail=lambda _: how)) as state:
        result = rerank(LLMReranker("m", base_url=state.url, key=None), mock_fused(10), 3)
    assert result == mock_fused(3)


class Client:
    def __init__(self, answer: str, *, is_async: bool = False) -> None:
        self.answer, self.is_async = answer, is_async
        self.calls: list[dict[str, Any]] = [{}]

    def complete(self, **call: Any) -> Any:  # noqa: ANN401 - text, or what is awaited for it
        self.calls.append(call)
        return asyncio.sleep(0, self.answer) if self.is_async else self.answer


@pytest.mark.parametrize("is_async", [False, True])
def test_llm_reranker_takes_a_client_and_asks_it_as_the_document_does(is_async: bool) -> None:
    client = Client("8,7,9,6,5", is_async=is_async)
    result = rerank(LLMReranker(client, batch_size=5), mock_fused(10), 3)
    assert [item.reranked_score for item in result[:2]] == [0.9, 0.9]
    _, first, second = client.calls
    assert (first["max_tokens"], first["temperature"]) == (100, 0)
    assert first["prompt"].startswith('Query: "test query"\n\nRate the relevance of each document')
    assert "\n[1] content 0\n\n[2] content 1\n" in first["prompt"]
    assert first["prompt"].endswith('Scores (comma-separated, e.g., "8,5,9,3"):')
    assert "[5] content 9" in second["prompt"]


def test_llm_reranker_a_client_that_fails_keeps_the_fused_order() -> None:
    client = Client("")
    client.complete = lambda **_: 1 / 0  # type: ignore[method-assign]
    assert rerank(LLMReranker(client), mock_fused(10), 3) == mock_fused(3)


def test_a_server_reranker_takes_the_key_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the document's tests have it; the key is in no text of the object."""
    monkeypatch.delenv("COHERE_API_KEY", raising=False)
    server = Loopback("cohere_v1", reply={"results": MOCK_RESULTS}, key="test-api-key")
    with serving(server) as state:
        reranker = CohereReranker("test-api-key", base_url=state.url)
        result = rerank(reranker, mock_fused(10), 3)
    [request] = state.requests
    assert request["model"] == "rerank-multilingual-v3.0"
    assert len(result) == 3
    assert "test-api-key" not in repr(vars(reranker))
    with pytest.raises(ConfigError, match="at least 8"):
        VoyageReranker("short")


def test_no_op_reranker_cuts_and_changes_nothing() -> None:
    assert rerank(NoOpReranker(), mock_fused(10), 5) == mock_fused(5)


# ── the pipeline


def test_the_profile_is_the_dialect_with_the_requested_limit() -> None:
    pipeline = Pipeline.profile("conv-07-05", reranker="noop")
    blend = pipeline.system.blend.model_dump()
    assert (pipeline.system.dialect, pipeline.system.top_k) == ("conv-07-05", 20)
    assert (blend["depth"], blend["tail"], blend["always_rerank"]) == (50, "drop", False)
    lists = {name: [(f"{name}{i}", 1.0 - i / 10, "text") for i in range(5)] for name in EQUAL}
    with pipeline:
        few = pipeline.search_sync("q", lists)
        cut = pipeline.search_sync("q", lists, limit=5)
        assert pipeline.search_sync("q", lists, limit=15).skipped
    assert (few.skipped, len(few.documents)) == (True, 15)
    assert (cut.skipped, cut.provider, len(cut.documents)) == (False, "noop/order", 5)
    assert [document.id for document in few.documents[:3]] == ["semantic0", "semantic1", "keyword0"]


def test_profiles_without_a_reranker_or_a_name() -> None:
    pipeline = Pipeline.profile("conv-07-05", fusion="WeightedScoreFusion")
    assert pipeline.system.fusion.method == "WeightedScoreFusion"
    with pytest.raises(UnknownNameError, match=r"'conv'.* conv-07-05, nablarch"):
        Pipeline.profile("conv")
    with pytest.raises(ConfigError, match="fusion"):
        Pipeline.profile("conv-07-05", fusion="rrf")


@pytest.mark.parametrize(
    ("query_type", "first"), [("local", "keyword0"), ("global", "graph0"), (None, "semantic0")]
)
def test_the_profile_takes_the_weights_of_the_classifiers_type(
    query_type: str | None, first: str
) -> None:
    lists = {name: [(f"{name}0", 1.0)] for name in EQUAL}
    with Pipeline.profile("conv-07-05") as pipeline:
        found = pipeline.search_sync("q", lists, query_type=query_type, confidence=0.9)
        assert found.documents[0].id == first
        unsure = pipeline.search_sync("q", lists, query_type=query_type, confidence=0.6)
        assert unsure.documents[0].id == "semantic0"
        weights = {source.list: source.weight for d in found.documents for source in d.sources}
        assert weights == CONV_03_05[query_type or "hybrid"]
        with pytest.raises(UnknownNameError, match="nonsense"):
            pipeline.search_sync("q", lists, query_type="nonsense")
