"""Failures by the design's table, on real servers."""

import asyncio
import logging
import threading
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from fusion_bench.errors import ConfigError, CostLimitError, ProviderError
from fusion_bench.models.answer_stores import ScoreStore
from fusion_bench.models.call_limits import (
    Budget,
    CircuitBreaker,
    latency_by_candidates,
    latency_by_documents,
    latency_percentiles,
    summarize_events,
)
from fusion_bench.models.endpoints import RetryRules
from fusion_bench.models.provider_session import ProviderChain, ProviderSession, RerankAnswer
from fusion_bench.models.rerank_config import BreakerRules, RerankSettings
from fusion_bench.models.reranker_protocol import Identity, Reply
from fusion_bench.models.rerankers import Provider, providers
from fusion_bench.util.calls import RateLimiter
from tests.examples import examples
from tests.models.rerank.server import Loopback, plain_score, serving
from tests.models.rerank.standing_clock import StandingClock

T = TypeVar("T")
DOCUMENTS = ["alpha", "beta", "gamma"]
FAST = RetryRules(attempts=3, wait_initial=0.001, wait_max=0.2, wait_jitter=0)
PATIENT = RerankSettings(retry=FAST)
#: No stall of the machine is as long as this limit of a call.
LONG = PATIENT.model_copy(update={"timeout_ms": 600_000.0})


@asynccontextmanager
async def sessions(
    servers: Sequence[Loopback],
    settings: RerankSettings,
    config: Mapping[str, object] | None = None,
    **options: object,
) -> AsyncIterator[list[ProviderSession]]:
    async with AsyncExitStack() as stack:
        opened = []
        for state in servers:
            where = {"base_url": state.url, "key": None, "timeout": 600, "concurrency": 64}
            built = providers.build({"method": state.dialect, **where, **(config or {})})
            reranker = await stack.enter_async_context(built.open_reranker())
            opened.append(ProviderSession(reranker, settings, provider=built, **options))  # type: ignore[arg-type]
        yield opened


def score(
    servers: Sequence[Loopback],
    settings: RerankSettings = PATIENT,
    deadline: float | None = None,
    documents: Sequence[str] = DOCUMENTS,
) -> RerankAnswer:
    async def go() -> RerankAnswer:
        async with sessions(servers, settings) as opened:
            return await ProviderChain(opened, settings).score_documents("q", documents, deadline)

    return asyncio.run(go())


def ask(
    state: Loopback,
    work: Callable[[ProviderSession], Awaitable[T]],
    settings: RerankSettings = PATIENT,
    config: Mapping[str, object] | None = None,
    **options: object,
) -> T:
    async def go() -> T:
        async with sessions([state], settings, config, **options) as opened:
            return await work(opened[0])

    with serving(state):
        return asyncio.run(go())


def answered_by(
    *fails: str | Callable[[int], str] | None, settings: RerankSettings = PATIENT
) -> RerankAnswer:
    """A Jina server and a Cohere server that fail in these ways."""
    with ExitStack() as stack:
        servers = [
            stack.enter_context(
                serving(Loopback(dialect, fail=how if callable(how) else lambda _, how=how: how))  # type: ignore[misc]
            )
            for dialect, how in zip(("jina", "cohere"), fails, strict=False)
        ]
        return score(servers, settings)


JINA = "jina/jina-reranker-v2-base-multilingual"
COHERE = "cohere/rerank-multilingual-v3.0"


@pytest.mark.parametrize(
    ("first", "second", "answered", "degraded"),
    [
        (None, None, "jina/resolved-model", ""),
        ("close", None, COHERE, f"{COHERE} after {JINA}: connection"),
        ("503", None, COHERE, f"{COHERE} after {JINA}: server"),
        ("close", "close", "fused order", f"after {JINA}: connection, {COHERE}: connection"),
        ("429", None, "fused order", f"fused order after {JINA}: rate_limit"),
        ("text", None, "fused order", f"fused order after {JINA}: malformed"),
        ("drop", None, "fused order", f"fused order after {JINA}: malformed"),
        ("hang", None, "fused order", f"fused order after {JINA}: timeout"),
    ],
)
def test_the_table(
    first: str | None,
    second: str | None,
    answered: str,
    degraded: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hangs = StandingClock(monkeypatch).hang if first == "hang" else first
    found = answered_by(hangs, second, settings=LONG)
    assert found.provider_label == answered
    assert found.degraded_reason.endswith(degraded)
    assert bool(found.degraded_reason) == bool(degraded)
    assert (found.scores is None) == (answered == "fused order")
    if found.scores is not None:
        assert list(found.scores) == plain_score("q", DOCUMENTS)


def test_on_a_timeout_the_next_provider_is_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = PATIENT.model_copy(update={"timeout_ms": 2_000.0, "on_timeout": "next"})
    hangs = StandingClock(monkeypatch).hang
    assert answered_by(hangs, None, settings=settings).provider_label == COHERE


def test_waits_of_a_rate_limit_fit_the_deadline_and_are_no_timeout() -> None:
    rules = RetryRules(attempts=50, wait_initial=0.01, wait_max=3600, wait_jitter=0)
    settings = LONG.model_copy(update={"retry": rules})
    waits = {0: "429", 1: "429 retry-after=1200"}  # 10 ms fit into the deadline; 1200 s do not
    with serving(Loopback("jina", fail=waits.get)) as state:
        found = score([state], settings, deadline=600)
    assert [kind for _, kind in found.failures] == ["rate_limit"]
    assert len(state.requests) == 2


def test_a_rate_limit_whose_wait_takes_the_time_is_no_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second call hangs, but only because of the wait has it so little time."""
    clock = StandingClock(monkeypatch)
    at_once = RetryRules(wait_initial=1e-12, wait_jitter=0)  # the clock stands
    slow = PATIENT.model_copy(update={"retry": at_once})
    with serving(Loopback("jina", fail=lambda n: clock.hang(n) if n else "429")) as state:
        found = score([state], slow, deadline=2)
    assert [kind for _, kind in found.failures] == ["rate_limit"]
    assert len(state.requests) == 2


def test_a_query_that_waits_for_a_slot_says_nothing_about_the_provider(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = PATIENT.model_copy(update={"breaker": BreakerRules(failures=2)})

    async def work(session: ProviderSession) -> tuple[list[str], str]:
        chain = ProviderChain([session], settings)
        limits = [2.0, *[0.2] * 4]  # the first query holds the only slot for longer
        calls = [chain.score_documents(f"q{i}", DOCUMENTS, each) for i, each in enumerate(limits)]
        answers = await asyncio.gather(*calls)
        return [a.failures[0][1] for a in answers], session.breaker.phase

    hanging = Loopback("jina", fail=StandingClock(monkeypatch).hang)
    kinds, phase = ask(hanging, work, settings, {"concurrency": 1})
    assert kinds == ["timeout", *["rate_limit"] * 4]
    assert phase == "closed"


def test_all_providers_share_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = PATIENT.model_copy(update={"on_timeout": "next"})
    with (
        serving(Loopback("jina", fail=StandingClock(monkeypatch).hang)) as first,
        serving(Loopback("cohere")) as second,
    ):
        found = score([first, second], settings, deadline=0.2)
    assert found.failures == ((JINA, "timeout"), (COHERE, "timeout"))
    assert second.requests == []


def test_one_query_asked_twice_at_once_keeps_the_deadline_of_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = Loopback("jina", fail=StandingClock(monkeypatch).hang)

    async def work(session: ProviderSession) -> list[str]:
        chain = ProviderChain([session], PATIENT)
        calls = [chain.score_documents("q", DOCUMENTS, 1.0) for _ in range(10)]
        return [answer.failures[0][1] for answer in await asyncio.gather(*calls)]

    kinds = ask(state, work)
    assert kinds[0] == "timeout"
    # A waiting call may get its turn in the last moment, too late to be sent.
    assert set(kinds) <= {"timeout", "rate_limit"}
    assert len(state.requests) == 1  # each of ten, one after the other, would hang again


def test_a_malformed_answer_is_logged_as_an_error(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "fusion_bench.rerank")
    answered_by("text")
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    caplog.clear()
    answered_by("429")
    assert [r.levelname for r in caplog.records if r.name == "fusion_bench.rerank"] == ["WARNING"]


def test_a_refusal_is_an_error_or_the_fused_order() -> None:
    with pytest.raises(ProviderError, match="status 403"):
        answered_by("403")
    lenient = PATIENT.model_copy(update={"strict": False})
    assert answered_by("403", None, settings=lenient).provider_label == "fused order"


def test_a_rate_limit_is_waited_for_as_long_as_allowed() -> None:
    waits = {0: "429", 1: "429 retry-after-ms=30"}
    with serving(Loopback("jina", fail=waits.get)) as state:
        found = score([state])
    assert found.degraded_reason == ""
    assert len(state.requests) == 3
    with serving(Loopback("jina", fail=lambda _: "429 retry-after=3600")) as state:
        assert score([state]).provider_label == "fused order"
    assert len(state.requests) == 1


def test_scores_of_two_providers_are_never_mixed() -> None:
    """The first provider dies in the middle of a query: the second scores all of it."""
    documents = [f"d{i}" for i in range(70)]
    with (
        serving(Loopback("tei", fail={1: "close", 2: "close", 3: "close"}.get)) as first,
        serving(Loopback("jina", score=lambda _, d: [0.5] * len(d))) as second,
    ):
        once = RerankSettings(retry=RetryRules(attempts=1))
        found = score([first, second], once, documents=documents)
    assert found.provider_label == "jina/resolved-model"
    assert found.scores == (0.5,) * 70


def test_the_breaker_spares_a_dead_provider_and_tries_it_again() -> None:
    now = [0.0]
    dead = [True]
    settings = RerankSettings(retry=RetryRules(attempts=1), breaker=BreakerRules(failures=2))
    state = Loopback("jina", fail=lambda _: "503" if dead[0] else None)

    async def work(session: ProviderSession) -> list[str]:
        chain, seen = ProviderChain([session], settings), list[str]()
        for i in range(6):
            if i == 4:
                now[0], dead[0] = 30.0, False
            answer = await chain.score_documents(f"q{i}", DOCUMENTS)
            seen.append(answer.failures[0][1] if answer.failures else "answered")
        return seen

    kinds = ask(state, work, settings, clock=lambda: now[0])
    assert kinds == ["server", "server", "breaker", "breaker", "answered", "answered"]
    assert len(state.requests) == 4


def test_many_queries_at_once() -> None:
    together = threading.Barrier(32, timeout=60)  # only passed by 32 requests at once

    def fail(number: int) -> str | None:
        if number < 32:
            together.wait()
        return "429 retry-after-ms=5" if number % 7 == 0 else None

    s, store = Loopback("jina", fail=fail), ScoreStore()
    rules = RetryRules(attempts=9, wait_initial=0.001)
    settings = PATIENT.model_copy(update={"retry": rules})

    async def work(session: ProviderSession) -> list[RerankAnswer]:
        chain = ProviderChain([session], settings)
        asks = (chain.score_documents(f"q{i}", DOCUMENTS) for i in range(80))
        return await asyncio.gather(*asks)

    found = ask(s, work, settings, store=store, run="r")
    for i, answer in enumerate(found):
        assert list(answer.scores or ()) == plain_score(f"q{i}", DOCUMENTS)
    assert s.complaints == []
    assert set(s.paid.values()) == {1}
    assert 32 <= s.most_at_once <= 64
    told = summarize_events(store.read_events("r"))
    assert told["calls"] == 80
    assert told["retries"] == len(s.requests) - 80 > 0
    assert told["call_ms"]["p95"] >= told["call_ms"]["p50"] > 0
    assert [row["calls"] for row in told["by_documents"]] == [80]
    assert told["largest_call"] == len(DOCUMENTS)


# ── one session


def test_what_is_stored_is_not_asked_again() -> None:
    store, state = ScoreStore(), Loopback("jina")

    async def work(session: ProviderSession) -> list[int]:
        asked = [(await session.score_documents("q", ["a", "b", "a"])).documents_asked]
        asked.append((await session.score_documents("q", ["b", "c"])).documents_asked)
        both = await asyncio.gather(
            session.score_documents("r", ["a"]), session.score_documents("r", ["a"])
        )
        return asked + [found.documents_asked for found in both]

    assert ask(state, work, store=store) == [2, 1, 1, 0]
    assert set(state.paid.values()) == {1}


def test_a_model_that_was_replaced_scores_everything_anew() -> None:
    state = Loopback("jina")

    async def work(session: ProviderSession) -> tuple[str, str, int]:
        first = await session.score_documents("q", ["a", "b"])
        state.model = "next-model"
        second = await session.score_documents("q", ["a", "b", "c"])
        return first.provider_label, second.provider_label, second.documents_asked

    assert ask(state, work) == ("jina/resolved-model", "jina/next-model", 3)
    assert state.paid == Counter({("q", "a"): 2, ("q", "b"): 2, ("q", "c"): 1})


def test_a_model_that_keeps_changing_is_malformed() -> None:
    state = Loopback("jina")
    names = iter(range(1000))

    def changing(query: str, documents: list[str]) -> list[float]:
        state.model = f"m{next(names)}"
        return plain_score(query, documents)

    state.score = changing

    async def work(session: ProviderSession) -> None:
        await session.score_documents("q", ["a"])
        await session.score_documents("q", [f"d{i}" for i in range(250)])

    with pytest.raises(ProviderError, match="keeps changing") as caught:
        ask(state, work)
    assert caught.value.kind == "malformed"


def test_documents_are_cut_before_they_are_sent() -> None:
    state = Loopback("jina")
    ask(state, lambda s: s.score_documents("q", ["one two three", "x"]), config={"max_tokens": 2})
    assert state.requests[0]["documents"] == ["one two", "x"]


def test_requests_are_spaced() -> None:
    """A lower bound: however slow the machine is, no request comes sooner than it may."""

    async def go() -> list[float]:
        limit, times = RateLimiter(concurrency=5, requests_per_minute=6000), []
        for _ in range(5):
            async with limit.acquire_slot():
                times.append(asyncio.get_running_loop().time())
        return times

    times = asyncio.run(go())
    assert times[-1] - times[0] >= 0.9 * 4 * 60 / 6000


def test_money_stops_before_it_is_spent() -> None:
    state = Loopback("cohere")
    spend = Budget(limit=0.005)

    async def work(session: ProviderSession) -> None:
        for i in range(5):
            await session.score_documents(f"q{i}", DOCUMENTS)

    config = {"price": {"per_1000_searches": 2}}
    with pytest.raises(CostLimitError, match=r"0\.005 \(0\.0040 spent\)"):
        ask(state, work, config=config, budget=spend)
    assert len(state.requests) == 2


@pytest.mark.parametrize(("how", "spent"), [("429", 0.0), ("500", 0.0), ("hang", 0.004)])
def test_a_failed_call_is_booked_where_it_may_be_billed(how: str, spent: float) -> None:
    spend = Budget(limit=0.004)
    settings = PATIENT.model_copy(update={"timeout_ms": 100.0 if how == "hang" else 60_000.0})

    async def work(session: ProviderSession) -> None:
        for _ in range(2):
            with pytest.raises(ProviderError):
                await session.score_documents("q", DOCUMENTS)

    config = {"price": {"per_1000_searches": 2}}
    ask(Loopback("cohere", fail=lambda _: how), work, settings, config, budget=spend)
    assert spend.spent == spent


class Words:
    """The ten lines of the protocol's documentation."""

    identity = Identity(provider="overlap", model="words", space="unit")
    batch = 100

    async def score(self, query: str, documents: Sequence[str]) -> Reply:
        words = set(query.lower().split())
        found = [len(words & set(d.lower().split())) / len(words) for d in documents]
        return Reply(tuple(found))


def test_a_list_of_order_is_neither_split_nor_stored() -> None:
    async def go(provider: Provider) -> list[tuple[float, ...] | None]:
        async with provider.open_reranker() as reranker:
            session = ProviderSession(reranker, PATIENT)
            return [(await session.score_documents("q", d)).scores for d in (["a", "b"], ["b"])]

    assert asyncio.run(go(providers.build("noop"))) == [(2.0, 1.0), (1.0,)]


def test_chains_that_make_no_sense_are_refused() -> None:
    async def go() -> None:
        with pytest.raises(ConfigError, match="at least one"):
            ProviderChain([], PATIENT)
        async with providers.build("noop").open_reranker() as order:
            mixed = [ProviderSession(Words(), PATIENT), ProviderSession(order, PATIENT)]
            with pytest.raises(ConfigError, match="order, unit"):
                ProviderChain(mixed, PATIENT)
            assert ProviderChain(mixed[1:], PATIENT).score_space == "order"

    asyncio.run(go())


def test_the_tables_of_latency() -> None:
    calls = [{"documents": n, "latency_ms": float(t)} for n, t in ((32, 9), (32, 7), (18, 5))]
    assert latency_by_documents(calls) == [
        {"documents": 18.0, "calls": 1, "p50": 5.0, "p95": 5.0},
        {"documents": 32.0, "calls": 2, "p50": 7.0, "p95": 9.0},
    ]
    assert summarize_events([])["by_documents"] == []
    assert summarize_events([])["largest_call"] == 0
    events = [{"asked": n, "latency_ms": float(n)} for n in (1, 10, 11, 50, 51, 500)]
    rows = {
        row["candidates"]: (row["queries"], row["p50"], row["p95"])
        for row in latency_by_candidates(events)
    }
    assert rows == {
        "≤ 10": (2, 1.0, 10.0),
        "≤ 20": (1, 11.0, 11.0),
        "≤ 50": (1, 50.0, 50.0),
        "≤ 100": (1, 51.0, 51.0),
        "> 100": (1, 500.0, 500.0),
    }
    assert latency_percentiles([]) == {"p50": None, "p95": None}


# ── the circuit breaker against its written rules


RULES = BreakerRules()


class Written(RuleBasedStateMachine):
    """The rules as they are written, kept as a log of what happened, beside the real breaker.

    The model has no state of its own but the log: what each rule says is looked up there.
    """

    calls = Bundle("calls")

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.breaker = CircuitBreaker(RULES, lambda: self.now)
        self.phase, self.since, self.period = "closed", 0.0, 0
        self.results: list[bool] = []  # of this period, by those let through in it
        self.out = 0  # let through in this period and not given back

    def turn(self, phase: str) -> None:
        self.phase, self.since, self.period = phase, self.now, self.period + 1
        self.results, self.out = [], 0

    @rule(seconds=st.sampled_from([0.0, 1.0, 29.0, 30.0, 31.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(target=calls)
    def call(self):  # type: ignore[no-untyped-def] # noqa: ANN201 - hypothesis' own type
        if self.phase == "open" and self.now - self.since >= 30:
            self.turn("half_open")
        passes = self.phase == "closed" or (self.phase == "half_open" and self.out < 3)
        ticket = self.breaker.admit_call()
        assert (ticket is not None) == passes
        if ticket is None:
            return multiple()
        self.out += 1
        return (ticket, self.period)

    @rule(call=consumes(calls))
    def succeed(self, call: tuple[int, int]) -> None:
        self.breaker.record_success(call[0])
        if call[1] != self.period:
            return
        self.results.append(True)
        if self.phase == "half_open" and self.results == [True] * 3:
            self.turn("closed")

    @rule(call=consumes(calls))
    def fail(self, call: tuple[int, int]) -> None:
        self.breaker.record_failure(call[0])
        if call[1] != self.period:
            return
        self.results.append(False)
        in_a_row = deque(self.results, maxlen=5)
        if self.phase == "half_open" or (len(in_a_row) == 5 and not any(in_a_row)):
            self.turn("open")

    @rule(call=consumes(calls))
    def abandon(self, call: tuple[int, int]) -> None:
        self.breaker.abandon_call(call[0])
        if call[1] == self.period:
            self.out -= 1

    @invariant()
    def same_phase(self) -> None:
        assert self.breaker.phase == self.phase


Written.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40)
TestWritten = Written.TestCase


def phase(breaker: CircuitBreaker) -> str:
    return breaker.phase


def test_five_failures_thirty_seconds_three_calls() -> None:
    now = 0.0
    breaker = CircuitBreaker(RULES, lambda: now)
    for _ in range(4):
        breaker.record_failure(breaker.admit_call() or 0)
    assert phase(breaker) == "closed"
    breaker.record_failure(breaker.admit_call() or 0)
    assert breaker.admit_call() is None
    now = 29.999
    assert breaker.admit_call() is None
    now = 30.0
    tickets = [breaker.admit_call() for _ in range(4)]
    assert tickets[3] is None
    for ticket in tickets[:3]:
        assert phase(breaker) == "half_open"
        breaker.record_success(ticket or 0)
    assert phase(breaker) == "closed"


def test_late_results_of_an_earlier_state_count_for_nothing() -> None:
    now = 0.0
    breaker = CircuitBreaker(BreakerRules(failures=1, half_open_calls=1), lambda: now)
    late, first = breaker.admit_call() or 0, breaker.admit_call() or 0
    breaker.record_failure(first)
    now = 30.0
    trial = breaker.admit_call() or 0
    breaker.record_failure(late)
    assert phase(breaker) == "half_open"
    breaker.record_success(trial)
    assert phase(breaker) == "closed"
