"""Rerankers of a pipeline: how they are named, and servers that are down when it opens."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fusion_bench import Pipeline
from fusion_bench.errors import ConfigError, ProviderError
from fusion_bench.models.answer_stores import RecentScores
from fusion_bench.models.rerank_config import RerankConfig
from fusion_bench.models.reranker_protocol import Identity, Reply
from fusion_bench.models.rerankers import providers
from tests.models.rerank.server import Loopback, closed_port, plain_score, serving

SYSTEM = {"runs": ["s"], "blend": {"method": "replace", "reranker": "r"}}
LISTS = {"s": [("a", 2.0, "alpha"), ("b", 1.0, "beta")]}
WHO = Identity("p", "m", "unit")
#: Long enough for a busy machine.
PATIENT: dict[str, Any] = {
    "timeout_ms": 600_000, "deadline": {"rerank_ms": 600_000, "total_ms": 600_000}
}  # fmt: skip


def best(scores: Sequence[float]) -> str:
    return "a" if scores[0] >= scores[1] else "b"


def test_a_reranker_may_be_named_in_many_ways(tmp_path: Path) -> None:
    with serving(Loopback("jina")) as state:
        keys = {"method": "jina", "base_url": state.url, "key": None}
        path = tmp_path / "rerank.yaml"
        path.write_text(
            f"providers:\n  x: {{method: jina, base_url: '{state.url}', key: null}}\nchain: [x]\n"
            "settings: {timeout_ms: 600000, deadline: {rerank_ms: 600000, total_ms: 600000}}\n"
        )
        config = RerankConfig.model_validate(
            {"providers": {"x": keys}, "chain": ["x"], "settings": PATIENT}
        )
        for given in (keys, [keys], providers.build(keys), path, str(path), config):
            with Pipeline(SYSTEM, rerankers={"r": given}, settings=PATIENT) as pipeline:
                result = pipeline.search_sync("q", LISTS)
            assert result.provider == "jina/resolved-model"
            assert result.documents[0].id == best(plain_score("q", ["alpha", "beta"]))


def test_settings_of_a_file_are_its_own_and_start_from_the_production_profile() -> None:
    given = {"providers": {"x": {"method": "noop"}}, "chain": ["x"]}
    for profile, strict in ((None, False), ("bench", True), ("production", False)):
        config = RerankConfig.model_validate({**given, **({"profile": profile} if profile else {})})
        assert config.live_settings().strict is strict


def test_prices_are_summed_or_not_known() -> None:
    keys: dict[str, Any] = {"method": "jina", "key": None}
    with serving(Loopback("jina")) as state:
        for price, cost in ((None, None), ({"per_1000_searches": 20}, 0.04)):
            given = {**keys, "base_url": state.url, **({"price": price} if price else {})}
            with Pipeline(SYSTEM, rerankers={"r": given}, settings=PATIENT) as pipeline:
                for query in ("q1", "q2", "q1"):
                    pipeline.search_sync(query, LISTS)
                summary = pipeline.summarize_calls()["r"]
            assert (summary["calls"], summary["searches"], summary["queries_answered"]) == (2, 2, 2)
            assert summary["cost"] == pytest.approx(cost)


def test_a_server_that_is_down_at_first_is_connected_later() -> None:
    state = Loopback("tei", url=closed_port())
    port = int(state.url.rsplit(":", 1)[1])
    given = {"method": "tei", "base_url": state.url}

    async def go() -> list[str]:
        chain = {"r": [given]}
        async with Pipeline(SYSTEM, rerankers=chain, settings=PATIENT) as pipeline:
            said = [(await pipeline.search("q", LISTS)).degraded]
            with serving(state, port):
                said.append((await pipeline.search("q", LISTS)).provider)
                said.append((await pipeline.search("q2", LISTS)).provider)
            return said

    assert asyncio.run(go()) == [
        "fused order after tei: connection",
        "tei/resolved-model@abc",
        "tei/resolved-model@abc",
    ]
    with pytest.raises(ProviderError):
        Pipeline(SYSTEM, rerankers={"r": given}, settings={"strict": True}).__enter__()


def test_spaces_without_a_common_scale_are_refused() -> None:
    class Other:
        batch = 1

        def __init__(self, space: Any) -> None:  # noqa: ANN401
            self.identity = Identity("p", "m", space)

        async def score(self, _query: str, _documents: Sequence[str]) -> Reply:
            return Reply((0.0,))

    pipeline = Pipeline(SYSTEM, rerankers={"r": [Other("unit"), Other("unbounded")]})
    with pytest.raises(ConfigError, match="scale: unbounded, unit"), pipeline:
        pass


def test_another_score_space_than_that_of_the_stored_list_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for space, count in (("order", 0), ("unbounded", 1)):
        pipeline = Pipeline(SYSTEM, rerankers={"r": "noop"}, score_spaces={"r": space})  # type: ignore[dict-item]
        with pipeline:
            assert len(caplog.records) == count
    assert "'order'" in caplog.text
    assert "'unbounded'" in caplog.text


def test_the_most_recent_scores_are_kept() -> None:
    store = RecentScores(pairs=2, events=2)
    store.save_scores(WHO, "q", {"a": 0.1, "b": 0.2, "c": 0.3}, ("r", {"n": 1}), unread={"c"})
    assert store.read_scores(WHO, "q", ["a", "b", "c"]) == [None, 0.2, 0.3]
    assert store.find_unread(WHO, "q", ["a", "b", "c"]) == (2,)
    for n in (2, 3):
        store.record_event("r" if n == 2 else "other", {"n": n})
    assert store.read_events("r") == [{"n": 2}]
    assert store.resolved_model(WHO) == "m"
    store.save_model(WHO, "m-2")
    assert store.resolved_model(WHO) == "m-2"
