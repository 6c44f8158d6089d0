"""The live pipeline: one query, from lists to results."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.live_replay import Replay, list_replays
from fusion_bench import Pipeline, Query, System, read_experiment
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError, DataError, FusionBenchError, ProviderError
from fusion_bench.models.endpoints import RetryRules
from fusion_bench.models.rerank_config import Deadline, RerankSettings
from fusion_bench.models.reranker_protocol import Identity, Reply
from fusion_bench.ranking.plain_systems import needs_fitting
from fusion_bench.serving.live.final_list import LiveResult, SourceHit
from tests.models.rerank.server import Loopback, serving
from tests.models.rerank.standing_clock import StandingClock

Anything = Any
RUNS = ["bm25", "dense"]
LISTS: Mapping[str, Any] = {
    "bm25": [("a", 9.0, "0.2", {"page": 1, "from": "bm25"}), ("b", 8.0, "0.9"), ("c", 1.0, "0.4")],
    "dense": [("b", 0.9, "0.9"), ("d", 0.8, "0.7", {"from": "dense"}), ("a", 0.7, "no")],
}
REPLACE = {"method": "replace", "reranker": "r"}
PATIENT = RerankSettings(strict=False, retry=RetryRules(attempts=1))


class Numbers:
    """Scores a document by the number that it consists of."""

    batch = 100

    def __init__(
        self, space: ScoreSpace = "unit", seconds: float = 0.0, kind: Anything = None
    ) -> None:
        self.identity = Identity("numbers", "m", space)
        self.seconds, self.kind = seconds, kind
        self.seen: list[list[str]] = []

    async def score(self, _query: str, documents: Sequence[str]) -> Reply:
        self.seen.append(list(documents))
        await asyncio.sleep(self.seconds)
        if self.kind is not None:
            raise ProviderError("on purpose", kind=self.kind)
        return Reply(tuple(float(document) for document in documents))


def search(
    system: Mapping[str, Any] | System,
    lists: Mapping[str, Any] = LISTS,
    query: str | Query = "q",
    *,
    given: Mapping[str, Any] | None = None,
    **options: Anything,
) -> LiveResult:
    async def go() -> LiveResult:
        async with Pipeline(system, **options) as pipeline:
            return await pipeline.search(query, lists, **(given or {}))

    return asyncio.run(go())


def reranked(
    blend: Mapping[str, Any], reranker: Anything = None, **options: Anything
) -> LiveResult:
    system = {"runs": RUNS, "blend": {**REPLACE, **blend}}
    chain = {"r": reranker or Numbers()}
    return search(system, rerankers=chain, **{"settings": PATIENT, **options})


# ── fusion


def test_each_result_says_where_it_comes_from() -> None:
    found = search({"runs": RUNS, "fusion": {"method": "rrf", "weights": {"dense": 2.0}}})
    assert [document.id for document in found.documents] == ["b", "a", "d", "c"]
    best = found.documents[0]
    assert best.sources == (SourceHit("bm25", 2, 8.0, 1.0), SourceHit("dense", 1, 0.9, 2.0))
    assert best.fused_score == best.score == pytest.approx(1 / 62 + 2 / 61)
    assert best.rerank_score is None
    a = found.documents[1]
    assert (a.text, a.metadata) == ("0.2", {"page": 1, "from": "bm25"})
    assert (found.provider, found.degraded, found.skipped) == ("fused order", "", False)
    assert dict(found.ranked)["c"] == pytest.approx(1 / 63)


def test_metadata_are_merged_in_the_callers_order_and_later_values_win() -> None:
    lists = {
        "dense": [("a", 1.0, None, {"x": 1, "y": 1})],
        "bm25": [("a", 1.0, "text", {"x": 2, "z": 2})],
    }
    [document] = search({"runs": RUNS}, lists).documents
    assert document.metadata == {"x": 2, "y": 1, "z": 2}
    assert document.text == "text"
    assert [hit.list for hit in document.sources] == RUNS  # in the system's order


@pytest.mark.parametrize(
    "given",
    [
        [("x", 2), ("y", 1.0)],
        [["x", 2.0, "text"], ["y", 1.0, None, None]],
        [{"id": "x", "score": 2}, {"id": "y", "score": 1, "metadata": {"k": 1}}],
        {"x": 2.0, "y": 1.0},
        ["x", "y"],
        [("x", np.float32(2)), ("y", np.int64(1))],
        iter([("x", 2.0), ("y", 1.0)]),
        lambda _: [("x", 2.0), ("y", 1.0)],
    ],
)
def test_a_list_may_have_many_forms(given: Anything) -> None:
    assert [name for name, _ in search({"runs": ["s"]}, {"s": given}).ranked] == ["x", "y"]


def test_lists_have_unique_documents_by_score_and_may_be_empty() -> None:
    found = search({"runs": ["s"]}, {"s": [("a", 1.0), ("b", 2.0), ("a", 3.0)]})
    assert found.documents[0].sources == (SourceHit("s", 1, 3.0, 1.0),)
    assert [document.sources[0].rank for document in found.documents] == [1, 2]
    lists = {"s": [("a", 1.0), ("c", 5.0), ("b", 1.0)]}
    assert [name for name, _ in search({"runs": ["s"]}, lists).ranked] == ["c", "b", "a"]
    found = search({"runs": RUNS}, {"bm25": [], "dense": []})
    assert (found.documents, found.skipped, found.degraded) == ((), True, "")
    one = search({"runs": RUNS}, {"bm25": [], "dense": [("a", 1.0)]})
    assert one.documents[0].sources == (SourceHit("dense", 1, 1.0, 1.0),)


def test_types_intents_and_confidence_choose_the_numbers() -> None:
    weights = {"local": {"bm25": 1.0, "dense": 0.0}, "hybrid": {"bm25": 0.0, "dense": 1.0}}
    system = {"runs": RUNS, "weights_by_type": weights}
    local = search(system, given={"query_type": "local"})
    unsure = search(system, given={"query_type": "local", "confidence": 0.6})
    assert [name for name, _ in local.ranked] == ["a", "b", "c"]
    assert [name for name, _ in unsure.ranked] == ["b", "d", "a"]
    assert (local.query_type, unsure.query_type) == ("local", "hybrid")
    known = search(system, query=Query("7", "q", type="local", confidence=0.9))
    assert known.ranked == local.ranked
    by_intent = {"bm25": {"by_intent": {"meta": 1, "default": 0}}, "dense": 1}
    system = {"runs": RUNS, "fusion": {"method": "rrf", "weights": by_intent}}
    other = search(system, given={"intent": "rules", "confidence": 0.1})
    meta = search(system, given={"intent": "meta", "confidence": 0.1})
    assert [name for name, _ in other.ranked] == ["b", "d", "a"]
    assert {name for name, _ in meta.ranked} == {"a", "b", "c", "d"}
    assert (meta.intent, other.intent, meta.query_type) == ("meta", "default", None)


def test_a_source_that_is_off_weighs_nothing_and_is_not_asked() -> None:
    def meta(_: str) -> list[tuple[str, float]]:
        asked.append("meta")
        return [("m", 9.0)]

    asked: list[str] = []
    system = {"runs": ["bm25", "meta"], "fusion": {"method": "rrf", "normalize": "max_possible"}}
    options: Mapping[str, Any] = {
        "retrievers": {"meta": meta},
        "when": {"meta": {"intent": ("meta",)}},
    }
    lists = {"bm25": [("a", 1.0)]}
    off = search(system, lists, given={"intent": "rules"}, **options)
    assert (off.ranked, asked) == ((("a", 1.0),), [])
    assert off.switched_off == {"meta": "intent is rules"}
    assert search(system, lists, **options).switched_off == {"meta": "intent is not known"}
    on = search(system, lists, given={"intent": "meta"}, **options)
    assert (dict(on.ranked), asked) == ({"m": 0.5, "a": 0.5}, ["meta"])
    alone = {**system, "runs": ["meta"]}
    assert search(alone, {}, given={"intent": "rules"}, **options).documents == ()


def test_roles_thresholds_and_limits() -> None:
    system = {"runs": RUNS, "fusion": "rrf_v2", "min_relevance": 0.03, "top_k": 3}
    roles = {"dense": ["question"]}
    found = search(system, roles=roles)
    assert [name for name, _ in found.ranked] == ["b", "a", "d"]
    assert [name for name, _ in search(system, roles=roles, given={"limit": 1}).ranked] == ["b"]


# ── retrievers


def test_retrievers_are_asked_at_once_and_may_be_async() -> None:
    both = asyncio.Barrier(2)

    async def dense(query: str) -> list[tuple[str, float]]:
        await asyncio.wait_for(both.wait(), 120)
        return [(f"{query}-d", 1.0)]

    class Bm25:
        async def __call__(self, query: str) -> list[tuple[str, float]]:
            await asyncio.wait_for(both.wait(), 120)
            return [(f"{query}-b", 1.0)]

    found = search({"runs": RUNS}, {"bm25": Bm25()}, retrievers={"dense": dense})
    assert {name for name, _ in found.ranked} == {"q-b", "q-d"}


def test_a_retriever_that_fails_is_named_and_the_others_answer() -> None:
    reason = "index is closed"

    def broken(_: str) -> list[Any]:
        raise OSError(reason)

    lists = {"bm25": broken, "dense": [("a", 1.0)]}
    found = search({"runs": RUNS}, lists)
    assert [name for name, _ in found.ranked] == ["a"]
    assert found.degraded == f"source bm25: {found.source_failures['bm25']}"
    assert found.source_failures == {"bm25": f"OSError: {reason}"}
    assert found.failures == ()
    with pytest.raises(DataError, match=f"'bm25' failed: OSError: {reason}"):
        search({"runs": RUNS}, lists, settings={"strict": True})


#: What a worker may raise that neither a task nor a future can hold.
NOT_HELD = [StopIteration("x"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()]


class Raises:
    identity, batch = Identity("raises", "m", "unit"), 100

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __iter__(self) -> Iterator[Any]:
        raise self.error

    def in_thread(self, _: str) -> list[Any]:
        raise self.error

    async def in_loop(self, _: str) -> list[Any]:
        raise self.error

    def lazily(self, _: str) -> Raises:
        return self

    async def score(self, _query: str, _documents: Sequence[str]) -> Reply:
        raise self.error


class RaisesAtOnce(Raises):
    def score(self, _query: str, _documents: Sequence[str]) -> Any:  # noqa: ANN401
        raise self.error


@pytest.mark.parametrize("error", NOT_HELD, ids=repr)
@pytest.mark.parametrize("how", ["in_thread", "in_loop", "lazily"])
def test_a_retriever_that_raises_anything_is_a_failed_source(
    how: str, error: BaseException
) -> None:
    lists = {"bm25": getattr(Raises(error), how), "dense": [("a", 1.0)]}
    with Pipeline({"runs": RUNS}) as pipeline:
        for _ in range(2):  # the loop still runs
            found = pipeline.search_sync("q", lists)
            assert [name for name, _ in found.ranked] == ["a"]
            assert type(error).__name__ in found.source_failures["bm25"]


@pytest.mark.parametrize("error", [*NOT_HELD, ValueError("bug")], ids=repr)
@pytest.mark.parametrize("reranker", [Raises, RaisesAtOnce])
def test_a_reranker_that_raises_anything_leaves_the_fused_order(
    reranker: type[Raises], error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    system = {"runs": RUNS, "blend": REPLACE}
    with Pipeline(system, rerankers={"r": reranker(error)}, settings=PATIENT) as pipeline:
        found = pipeline.search_sync("q", LISTS)
    assert [name for name, _ in found.ranked] == ["b", "a", "d", "c"]
    assert found.degraded.endswith("raises/m: server")
    assert type(error).__name__ in caplog.text


def test_what_a_handed_over_list_raises_reaches_the_caller() -> None:
    with Pipeline({"runs": ["s"]}) as pipeline:
        with pytest.raises(SystemExit):
            pipeline.search_sync("q", {"s": Raises(SystemExit(3))})
        assert pipeline.search_sync("q", {"s": [("a", 1.0)]}).ranked


def test_the_callers_cancellation_ends_the_search() -> None:
    async def go() -> None:
        began = asyncio.Event()

        async def waits(_: str) -> list[Any]:
            began.set()
            await asyncio.Event().wait()
            return []

        async with Pipeline({"runs": ["s"]}) as pipeline:
            search = asyncio.ensure_future(pipeline.search("q", {"s": waits}))
            await began.wait()
            search.cancel()
            with pytest.raises(asyncio.CancelledError):
                await search

    asyncio.run(go())


CTRL_C = """
import signal, threading
import fusion_bench as fb

def waits(query):
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    threading.Event().wait()

with fb.Pipeline({"runs": ["s"]}) as pipeline:
    try:
        pipeline.search_sync("q", {"s": waits})
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.slow
def test_ctrl_c_ends_the_search_and_the_process() -> None:
    words = [sys.executable, "-c", CTRL_C]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr


# ── reranking


def test_a_reranker_replaces_the_order_and_says_who_it_was() -> None:
    found = reranked({})
    assert found.ranked == (("b", 0.9), ("d", 0.7), ("c", 0.4), ("a", 0.2))
    assert [document.rerank_score for document in found.documents] == [0.9, 0.7, 0.4, 0.2]
    assert (found.provider, found.degraded, found.skipped) == ("numbers/m", "", False)
    assert 0 <= found.rerank_ms <= found.total_ms


def test_only_the_depth_is_asked_for_best_first() -> None:
    reranker = Numbers()
    found = reranked({"depth": 2}, reranker)
    assert reranker.seen == [["0.9", "0.2"]]  # b, a
    assert [name for name, _ in found.ranked] == ["b", "a", "d", "c"]
    assert found.documents[2].rerank_score is None
    dropped = reranked({"depth": 2, "tail": "drop"})
    assert [name for name, _ in dropped.ranked] == ["b", "a"]


def test_few_candidates_are_not_reranked_and_min_score_drops() -> None:
    assert [n for n, _ in reranked({"min_score": 0.4}).ranked] == ["b", "d", "c"]
    few = reranked({"always_rerank": False, "skip_limit": 4})
    assert (few.skipped, few.provider) == (True, "fused order")
    assert [name for name, _ in few.ranked] == ["b", "a", "d", "c"]
    enough = reranked({"always_rerank": False, "skip_limit": 3})
    assert (enough.skipped, enough.provider) == (False, "numbers/m")
    lazy = {"always_rerank": False}
    assert reranked(lazy, given={"limit": 4}).skipped
    assert not reranked(lazy, given={"limit": 3}).skipped
    assert not reranked({}, given={"limit": 4}).skipped


@pytest.mark.parametrize("kind", ["connection", "server", "rate_limit", "malformed", "refused"])
def test_a_failure_leaves_the_fused_order(kind: str) -> None:
    found = reranked({"tail": "drop"}, Numbers(kind=kind))
    assert [name for name, _ in found.ranked] == ["b", "a", "d", "c"]
    assert found.documents[0].score == found.documents[0].fused_score
    assert (found.provider, found.degraded) == (
        "fused order", f"fused order after numbers/m: {kind}",
    )  # fmt: skip


class Unread(Numbers):
    """A language model of whose answer only some scores could be read."""

    def __init__(self, *unread: int) -> None:
        super().__init__()
        self.unread = unread

    async def score(self, query: str, documents: Sequence[str]) -> Reply:
        scores = (await super().score(query, documents)).scores
        filled = (0.5 if i in self.unread else score for i, score in enumerate(scores))
        return Reply(tuple(filled), unread=self.unread)


def test_no_score_that_could_be_read_leaves_the_fused_order() -> None:
    found = reranked({}, Unread(0, 1, 2, 3), crag={})
    assert [name for name, _ in found.ranked] == ["b", "a", "d", "c"]
    assert found.failures == (("numbers/m", "malformed"),)
    assert found.degraded.endswith("numbers/m: malformed")
    assert (found.crag, found.crag_unknown) == (None, True)
    assert {document.rerank_score for document in found.documents} == {None}


def test_some_scores_that_could_not_be_read_are_said_and_say_nothing_to_crag() -> None:
    found = reranked({}, Unread(0), crag={})  # "b", the best
    assert [name for name, _ in found.ranked] == ["d", "b", "c", "a"]
    assert found.degraded.startswith("1 of 4 scores")
    assert (found.failures, found.crag_unknown) == ((), False)
    assert found.crag is not None
    assert (found.crag.relevance, found.crag.confidence) == ("correct", 0.7)
    best = reranked({}, Unread(0, 2), crag={}).crag
    assert best is not None
    assert (best.relevance, best.confidence) == ("ambiguous", 0.4)


def test_the_next_provider_scores_everything() -> None:
    class Spare(Numbers):
        def __init__(self) -> None:
            super().__init__("logit")

        async def score(self, _query: str, documents: Sequence[str]) -> Reply:
            return Reply(tuple(0.0 for _ in documents))

    found = reranked({}, [Numbers(kind="connection"), Spare()])
    assert {score for _, score in found.ranked} == {0.5}  # on the chain's common scale
    assert found.degraded.endswith("numbers/m: connection")


def test_a_refusal_is_an_error_where_settings_are_strict() -> None:
    with pytest.raises(ProviderError, match="on purpose"):
        reranked({}, Numbers(kind="refused"), settings=RerankSettings())


def test_the_deadline_counts_what_has_passed(clock: StandingClock) -> None:
    class Slow(Numbers):
        async def score(self, query: str, documents: Sequence[str]) -> Reply:
            clock.advance(0.2)
            return await super().score(query, documents)

    settings = RerankSettings(deadline=Deadline(rerank_ms=5_000, total_ms=10_000))
    late = Numbers()
    found = reranked({}, late, settings=settings, given={"elapsed_ms": 10_000})
    assert late.seen == []
    assert found.degraded.endswith("numbers/m: timeout")
    assert found.total_ms >= 10_000
    slow = reranked({}, Slow(seconds=60), settings=settings, given={"elapsed_ms": 9_900})
    assert slow.degraded.endswith("numbers/m: timeout")
    assert slow.rerank_ms == pytest.approx(200)


def test_retrievers_use_up_the_deadline(clock: StandingClock) -> None:
    async def slow(_: str) -> list[tuple[str, float, str]]:
        clock.advance(0.06)
        return [("a", 1.0, "0.5")]

    system = {"runs": ["s"], "blend": REPLACE}
    settings = RerankSettings(deadline=Deadline(total_ms=50))
    found = search(system, {"s": slow}, rerankers={"r": Numbers()}, settings=settings)
    assert found.degraded.endswith("numbers/m: timeout")
    assert [name for name, _ in found.ranked] == ["a"]


def test_scores_may_be_handed_over() -> None:
    system = {"runs": RUNS, "blend": REPLACE}
    lists = {**LISTS, "r": [("d", 4.0), ("a", 2.0), ("b", 0.0), ("c", 1.0), ("other", 9.0)]}
    found = search(system, lists, score_spaces={"r": "unbounded"})
    assert found.ranked == (("d", 1.0), ("a", 0.5), ("c", 0.25), ("b", 0.0))
    assert (found.provider, found.skipped) == ("r", False)
    few = {**system, "blend": {**REPLACE, "always_rerank": False}}
    kept = search(few, lists, score_spaces={"r": "unbounded"}, given={"limit": 10})
    assert [name for name, _ in kept.ranked] == ["b", "a", "d", "c"]
    assert (kept.provider, kept.skipped) == ("fused order", True)
    assert found.documents[0].sources == (SourceHit("dense", 2, 0.8, 1.0),)


@pytest.mark.parametrize(
    ("space", "score", "problem"),
    [
        ("unit", 5.0, "'unit' is 0 to 1"),
        ("log_prob", 0.5, "'log_prob'"),
        ("unit", 1.0, "'q' (2 of 4 "),
        (None, 1.0, "r' has no score_space: declare what its scores mean (unit, logit, log_prob, "
         "unbounded, order), with score_spaces={'r': …} in Python, with score_space in"),
    ],
)  # fmt: skip
def test_handed_over_scores_that_do_not_fit(space: Anything, score: float, problem: str) -> None:
    lists = {**LISTS, "r": [("a", 0.0), ("b", score), *([("c", 0), ("d", 0)] * (space is None))]}
    system = {"runs": RUNS, "blend": REPLACE}
    with pytest.raises(FusionBenchError) as caught:
        search(system, lists, score_spaces={} if space is None else {"r": space})
    assert problem in str(caught.value)
    assert "live query" not in str(caught.value)


@pytest.mark.parametrize("missing", ["zero", "below"])
def test_candidates_without_a_text(missing: str) -> None:
    lists = {"s": [("a", 3.0), ("b", 2.0, "0.5"), ("c", 1.0, "0.7")]}
    system = {"runs": ["s"], "blend": {**REPLACE, "missing": missing}}
    found = search(system, lists, rerankers={"r": Numbers()}, settings=PATIENT)
    assert [name for name, _ in found.ranked] == ["c", "b", "a"]
    assert found.documents[2].rerank_score is None
    none = search(
        system, {"s": [("a", 1.0), ("b", 2.0)]}, rerankers={"r": Numbers()}, settings=PATIENT
    )
    assert [name for name, _ in none.ranked] == ["b", "a"]
    strict = {"runs": ["s"], "blend": REPLACE}
    with pytest.raises(DataError, match=r"'a', .*'q', has no text"):
        search(strict, lists, rerankers={"r": Numbers()})


def test_stages_are_reranked_first() -> None:
    stage = {"runs": RUNS, "blend": {**REPLACE, "tail": "drop", "depth": 3}}
    system = {
        "runs": ["inner", "extra"],
        "stages": {"inner": stage},
        "blend": {**REPLACE, "depth": 10, "method": "linear", "beta": 0.5},
    }
    lists = {**LISTS, "extra": [("e", 1.0, "0.1")]}
    reranker = Numbers()
    found = search(system, lists, rerankers={"r": reranker}, settings=PATIENT)
    assert reranker.seen == [["0.9", "0.2", "0.7"], ["0.1"]]  # known scores are kept
    assert [hit.list for hit in found.documents[0].sources] == ["inner"]
    assert [name for name, _ in found.ranked] == ["b", "d", "a", "e"]
    failed = search(system, lists, rerankers={"r": Numbers(kind="server")}, settings=PATIENT)
    assert len(failed.documents) == 5
    assert failed.degraded.endswith("numbers/m: server")


def test_reranking_can_be_switched_off() -> None:
    reranker = Numbers()
    found = reranked({}, reranker, enabled=False)
    assert [name for name, _ in found.ranked] == ["b", "a", "d", "c"]
    assert reranker.seen == []


@pytest.mark.parametrize(
    ("signal", "above", "expected"),
    [
        ("top:bm25", 8.5, (True, 9.0)),
        ("top:bm25", 9.0, (False, 9.0)),  # equal is not above
        ("rerank top", 0.75, (True, 0.9)),
        ("agreement", 0.2, (False, 0.2)),
    ],
)
def test_a_query_below_the_threshold_keeps_its_list(
    signal: str, above: float, expected: tuple[bool, float]
) -> None:
    abstain = {"signal": signal, "above": above}
    found = search({"runs": RUNS, "blend": REPLACE, "abstain": abstain}, rerankers={"r": Numbers()})
    assert (found.answered, found.signal, found.signal_value) == (expected[0], signal, expected[1])
    assert found.ranked == reranked({}).ranked
    assert found.to_dict()["answered"] is expected[0]


def test_without_a_rerank_score_or_a_document_nothing_is_answered() -> None:
    abstain = {"signal": "rerank top", "above": 0.1}
    system = {"runs": RUNS, "blend": REPLACE, "abstain": abstain}
    failed = search(system, rerankers={"r": Numbers(kind="server")})
    assert (failed.answered, failed.signal_value, len(failed.documents)) == (False, None, 4)
    empty = search(system, {"bm25": [], "dense": []}, rerankers={"r": Numbers()})
    assert (empty.answered, empty.signal, empty.signal_value) == (False, "rerank top", None)


def test_without_abstain_every_query_is_answered() -> None:
    found = search({"runs": RUNS}, {"bm25": [], "dense": []})
    assert (found.answered, found.signal, found.signal_value) == (True, None, None)


# ── use


def test_without_an_event_loop() -> None:
    system = {"runs": RUNS, "blend": REPLACE}
    pipeline = Pipeline(system, rerankers={"r": Numbers()}, settings=PATIENT)
    with pipeline:
        assert pipeline.search_sync("q", LISTS).provider == "numbers/m"
        calls = pipeline.summarize_calls()["r"]
        assert (calls["calls"], calls["documents"], calls["cost"]) == (1, 4, None)
        assert pipeline.search_sync("q", LISTS).provider == "numbers/m"
        assert pipeline.summarize_calls()["r"]["calls"] == 1  # the scores were known
    with pipeline:  # again
        assert len(pipeline.search_sync("q", LISTS).documents) == 4


def test_results_are_plain_data_for_json() -> None:
    said = search({"runs": RUNS}).to_dict()
    assert said["documents"][0]["id"] == "b"
    assert said["documents"][0]["sources"][0] == {
        "list": "bm25", "rank": 2, "score": 8.0, "weight": 1.0,
    }  # fmt: skip


# ── errors


TRAINED = {"runs": RUNS, "fusion": {"method": "map_fuse"}}


@pytest.mark.parametrize(
    ("system", "options", "problem"),
    [
        (TRAINED, {}, "Pipeline.from_experiment"),
        ({"runs": RUNS, "fusoin": "rrf"}, {}, "live.fusoin: unknown"),
        ({"runs": RUNS, "fusion": "rrf_v2"}, {}, "live.fusion: rrf_v2"),
        ("rrf", {}, "YAML, not 'rrf'"),
        ({}, {}, "live.runs: is"),
        ({"runs": RUNS}, {"ties": "x"}, "tie rule 'x'"),
        ({"runs": RUNS}, {"score_spaces": {"r": "units"}}, "score_spaces: r: unknown"),
        ({"runs": RUNS}, {"settings": {"deadline": {"rerank_ms": 500}}}, "exceeds total_ms 300"),
        ({"runs": RUNS}, {"settings": {"deadline": 5}}, "settings.deadline: a"),
        ({"runs": RUNS}, {"roles": {"bm25": "keyword"}}, "roles: bm25: give"),
        ({"runs": RUNS}, {"rerankers": {"r": "jina"}}, "rerankers: unknown reranker 'r'"),
        ({"runs": RUNS, "blend": REPLACE}, {"rerankers": {"r": "jinna"}}, "mean 'jina'"),
        ({"runs": RUNS, "blend": REPLACE}, {"rerankers": {"r": []}}, "chain is empty"),
        ({"runs": RUNS, "blend": REPLACE}, {"rerankers": {"r": 7}}, "7 is no reranker"),
        ({"runs": RUNS}, {"retrievers": {"bm": []}}, "unknown list 'bm'"),
        ({"runs": RUNS}, {"settings": {"top_k": 3}}, "'top_k' is now"),
        (
            {"runs": RUNS, "abstain": {"signal": "fused top", "false_answers": 0.1}},
            {},
            "abstain",
        ),
        (
            {
                "runs": RUNS,
                "blend": REPLACE,
                "abstain": {"signal": "rerank top", "above": 0.5},
            },
            {"enabled": False},
            "abstain needs",
        ),
    ],
)
def test_what_a_pipeline_refuses(
    system: Mapping[str, Any], options: Mapping[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        Pipeline(system, **options)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("lists", "given", "problem"),
    [
        ({"bm25": []}, {}, "no list 'dense': "),
        ({**LISTS, "graph": []}, {}, "(known: bm25, dense)"),
        ({**LISTS, "bm25": None}, {}, "score), not NoneType"),
        ({**LISTS, "bm25": [("a",)]}, {}, "item 1: 1 fields"),
        ({**LISTS, "bm25": [("a", math.nan)]}, {}, "finite number, given nan"),
        ({**LISTS, "bm25": [("a", "9")]}, {}, "finite number, given '9'"),
        ({**LISTS, "bm25": [("", 1)]}, {}, "whole number, given ''"),
        ({**LISTS, "bm25": [("a", 10**5000)]}, {}, "more than 4,300 digits"),
        ({**LISTS, "bm25": [(10**5000, 1)]}, {}, "number, given a whole"),
        ({**LISTS, "bm25": [("a\ud800", 1.0)]}, {}, "whole number, given 'a"),
        ({**LISTS, "bm25": [("a\0", 1)]}, {}, "id holds NUL"),
        ({**LISTS, "bm25": [("a", 1, 2)]}, {}, "or None, given 2"),
        ({**LISTS, "bm25": [("a", 1, "", 2)]}, {}, "metadata is a mapping"),
        ({**LISTS, "bm25": [{"id": "a"}]}, {}, "'score' are needed"),
        ({**LISTS, "bm25": [{"id": 1, "scores": 1}]}, {}, "mean 'score'?"),
        ({**LISTS, "bm25": ["a", ("b", 1)]}, {}, "item 1: 'id'"),
        (LISTS, {"limit": 0}, "needed, given 0"),
        (LISTS, {"confidence": math.nan}, "confidence: a number"),
        (LISTS, {"confidence": "x"}, "needed, given 'x'"),
        (LISTS, {"query_type": 5}, "query_type: a name"),
        (LISTS, {"intent": 5}, "intent: a name"),
        (LISTS, {"confidence": 10**400}, "needed, given 1000"),
        (LISTS, {"elapsed_ms": -2}, "elapsed_ms: a finite"),
    ],
)
def test_what_a_query_refuses(
    lists: Mapping[str, Any], given: Mapping[str, Any], problem: str
) -> None:
    with pytest.raises(FusionBenchError) as caught:
        search({"runs": RUNS}, lists, given=given)
    assert problem in str(caught.value)


def test_an_empty_text_and_an_unknown_type_are_refused() -> None:
    for text in ("", " ", Query("7", "")):
        with pytest.raises(ConfigError, match="not empty"):
            search({"runs": RUNS}, query=text)
    weights = {"local": {"bm25": 1.0}, "mine": {"bm25": 1.0}, "hybrid": {"dense": 1.0}}
    system = {"runs": RUNS, "weights_by_type": weights}
    with pytest.raises(ConfigError, match=r"'lcoal'; .*'local'"):
        search(system, given={"query_type": "lcoal"})
    assert search(system, given={"query_type": "mine"}).query_type == "mine"
    assert search(system, given={"query_type": "global"}).query_type == "hybrid"


def test_a_pipeline_has_to_be_open_and_its_total_may_be_below_the_default() -> None:
    pipeline = Pipeline({"runs": RUNS}, settings={"deadline": {"total_ms": 50}})
    assert pipeline.system.base_runs == tuple(RUNS)
    pipeline = Pipeline({"runs": RUNS})
    with pytest.raises(ConfigError, match="'async with pipeline'"):
        asyncio.run(pipeline.search("q", LISTS))
    with pytest.raises(ConfigError, match="'with pipeline'"):
        pipeline.search_sync("q", LISTS)


def test_a_misspelt_option_names_the_known_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        Pipeline.from_experiment("experiments/default.yaml", rerankes={})
    assert "unknown option 'rerankes'" in str(caught.value)
    for known in ("crag", "enabled", "rerankers", "retrievers", "score_spaces", "settings"):
        assert known in str(caught.value)


def test_missing_rerankers_and_keys_are_said_before_the_first_query(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.WARNING)
    with pytest.raises(ConfigError, match=r"'r': .*rerankers="):
        search({"runs": RUNS, "blend": REPLACE})
    monkeypatch.delenv("JINA_API_KEY", raising=False)
    with pytest.raises(ConfigError, match=r"JINA_API_KEY"):
        reranked({}, "jina")


SEARCH = """
import json, sys
import fusion_bench as fb

keys, provider = json.loads(sys.argv[1])
patient = {"timeout_ms": 6e5, "deadline": {"rerank_ms": 6e5, "total_ms": 6e5}}
retrievers = {"b": lambda query: [("d2", 0.5, "z")]}
pipeline = fb.Pipeline(
    {"runs": ["a", "b"], **keys}, rerankers={"r": provider} if provider else None,
    retrievers=retrievers, settings=patient, crag={},
)
with pipeline:
    known = set(sys.modules)
    found = pipeline.search_sync("q", {"a": [("d1", 1.0, "x"), ("d2", 0.5, "y")]})
    print(json.dumps([found.provider, found.degraded, sorted(set(sys.modules) - known)]))
"""
BLEND = {"blend": {"method": "replace", "reranker": "r"}}


def search_and_report(keys: Mapping[str, Any], provider: Mapping[str, Any] | None) -> list[Any]:
    """Provider, what degraded, and what was imported, of the first query of a process."""
    words = [sys.executable, "-c", SEARCH, json.dumps([keys, provider])]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    result: list[Any] = json.loads(done.stdout)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("method", ["jina", "chat", "tei"])
def test_a_reranker_behind_http(method: str) -> None:
    with serving(Loopback(method)) as state:
        url = state.url.replace("127.0.0.1", "localhost")
        model = {"model": "m"} if method == "chat" else {}
        found = search_and_report(BLEND, {"method": method, "base_url": url, "key": None, **model})
    assert found[0].startswith(f"{method}/resolved-model")
    assert found[1:] == ["", []]


@pytest.mark.slow
@pytest.mark.parametrize(
    "keys",
    [{}, {"fusion": "log_odds"}],
)
def test_without_a_reranker(keys: Mapping[str, Any]) -> None:
    assert search_and_report(keys, None) == ["fused order", "", []]


ROOT = Path(__file__).parents[3]
SYSTEMS = dict(list_replays(ROOT))
#: The systems of a collection are dealt into so many tests.
PARTS = 5


@cache
def replay_of(path: Path) -> Replay:
    return Replay.load(path)


@pytest.mark.slow
def test_every_collection_with_an_experiment_is_replayed() -> None:
    named = {
        name
        for path in (ROOT / "experiments").glob("*.yaml")
        for name in read_experiment(path)[0].dataset_names
    }
    shipped = {path.parent.name for path in (ROOT / "datasets").glob("*/dataset.yaml")}
    assert {path.parent.name for path in SYSTEMS} == named & shipped >= {"attack"}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("path", SYSTEMS, ids=lambda path: path.parent.name)
def test_the_live_order_is_that_of_eval(path: Path, part: int) -> None:
    replay = replay_of(path)
    systems = [system for system in SYSTEMS[path] if not needs_fitting(system)]
    every = len(replay.runs.queries) // 3
    different = {}
    for number, system in enumerate(systems[part::PARTS], start=part):
        compared, names = replay.find_differences(system, every=every, first=7 * number % every)
        assert compared >= 3
        if names:
            different[system.name] = names
    assert different == {}


@pytest.mark.slow
def test_trained_parts_are_out_of_fold_in_both() -> None:
    path = ROOT / "datasets/attack/dataset.yaml"
    replay = replay_of(path)
    [system] = [system for system in SYSTEMS[path] if system.name == "map_fuse"]
    assert needs_fitting(system)
    few = replay.runs.subset(np.arange(len(replay.runs.queries)) < 120)
    assert replay.find_differences(system, every=40, fit_to=few) == (80, [])
