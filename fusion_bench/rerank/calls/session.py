"""A provider with its score store, rate limit, budget, retries and circuit breaker."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakValueDictionary

from fusion_bench.blend import to_unit_scale
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import FailureKind, FusionBenchError, ProviderError
from fusion_bench.io.provenance import FUSED_ORDER
from fusion_bench.rerank.calls.breaker import CircuitBreaker
from fusion_bench.rerank.calls.call_costs import CallCosts
from fusion_bench.rerank.calls.call_state import CallState
from fusion_bench.rerank.calls.limits import Budget
from fusion_bench.rerank.clients import Provider
from fusion_bench.rerank.clients.noop import NoOp
from fusion_bench.rerank.protocol import Identity, Reply, Reranker, check_reply
from fusion_bench.rerank.recent_scores import RecentScores
from fusion_bench.rerank.settings import RerankSettings
from fusion_bench.rerank.store import ScoreStore
from fusion_bench.util.calls.rate_limiter import RateLimiter
from fusion_bench.util.calls.user_code import call_function
from fusion_bench.util.optional_imports import import_optional

#: Attempts per query while the provider changes its model between calls.
MAX_MODEL_CHANGES = 3
#: Failures that say nothing about a provider's health.
HARMLESS = {"refused", "too_large", "breaker"}
#: Neither truncates documents nor charges for them.
UNLIMITED = NoOp(max_tokens=None, price=None)


@dataclass(frozen=True)
class RerankAnswer:
    """One query's scores, all by one model, and how they came about.

    Attributes:
        scores: One per document; None = keep the fused order.
        identity: The model that gave them, with its resolved name; None = no provider did.
        failures: Providers that failed before, and how.
        documents_asked: Documents that were not in the store.
        unread: The 0-based positions of scores that could not be read and are filled in.
    """

    scores: tuple[float, ...] | None = None
    identity: Identity | None = None
    failures: tuple[tuple[str, FailureKind], ...] = ()
    documents_asked: int = 0
    unread: tuple[int, ...] = ()

    @property
    def provider_label(self) -> str:
        """``provider/model``, or ``fused order``."""
        return FUSED_ORDER if self.identity is None else self.identity.label

    @property
    def degraded_reason(self) -> str:
        """Why these are not the first provider's scores; empty if they are."""
        failures = ", ".join(f"{who}: {kind}" for who, kind in self.failures)
        return f"{self.provider_label} after {failures}" if failures else ""

    @property
    def unread_reason(self) -> str:
        """How many scores are filled in; empty if none is."""
        if not self.unread or self.scores is None:
            return ""
        counts = f"{len(self.unread)} of {len(self.scores)}"
        return f"{counts} scores of {self.provider_label} could not be read"

    def scores_in(self, space: ScoreSpace) -> Sequence[float]:
        """The scores in their own space, or in ``unit``; empty if no provider gave any."""
        if self.scores is None or self.identity is None:
            return ()
        is_given = space == self.identity.space
        return self.scores if is_given else to_unit_scale(self.scores, self.identity.space).tolist()


class ProviderSession:
    """A reranker with its store, limits and circuit breaker.

    Args:
        reranker: The reranker.
        settings: Timeouts, retries, breaker.
        provider: Its configuration: limits, price, truncation; none of them by default.
        store: Stored scores; in memory by default.
        run: Key of the run in the ledger.
        budget: Limit of the total cost.
        clock: Monotonic clock in seconds.
    """

    def __init__(
        self,
        reranker: Reranker,
        settings: RerankSettings,
        *,
        provider: Provider = UNLIMITED,
        store: ScoreStore | RecentScores | None = None,
        run: str = "",
        budget: Budget | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reranker, self._settings, self._run = reranker, settings, run
        self._provider, self._truncate = provider, provider.truncation
        self._store = store or ScoreStore()
        self._costs = CallCosts(provider, budget or Budget(), self._store, run)
        self._largest_batch = math.inf
        self._rate_limiter = RateLimiter(provider.concurrency, provider.requests_per_minute)
        self._clock = clock
        self.breaker = CircuitBreaker(settings.breaker, clock)
        self._model = self._store.resolved_model(reranker.identity)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def identity(self) -> Identity:
        """Who answers, with the model that was resolved last."""
        return replace(self._reranker.identity, model=self._model)

    async def score_documents(
        self, query: str, documents: Sequence[str], deadline: float | None = None
    ) -> RerankAnswer:
        """Scores of all documents, from the store or the provider.

        Args:
            query: The query.
            documents: Their texts, best first.
            deadline: Seconds for all calls, waiting and retries included.

        Raises:
            ProviderError: The provider failed; scores it returned before are stored.
            CostLimitError: A call could exceed the cost limit.
        """
        texts = [self._truncate(document) for document in documents]
        loop = asyncio.get_running_loop()
        until = None if deadline is None else loop.time() + deadline
        turn = self._turns.setdefault(query, asyncio.Lock())  # or a query would be paid for twice
        try:
            async with asyncio.timeout_at(until):
                await turn.acquire()
        except TimeoutError:
            raise _timeout_error(self.identity.label, deadline or 0.0) from None
        try:
            return await self._score_query(query, texts, until)
        finally:
            turn.release()

    async def _score_query(
        self, query: str, texts: Sequence[str], until: float | None
    ) -> RerankAnswer:
        # Scores of one list cannot be compared with another's.
        if self.identity.space != "order":
            return await self._score_missing(query, texts, until)
        async with self._guard_call(until) as state:
            reply = await self._call_once(query, texts, state)
        return RerankAnswer(
            reply.scores, self.identity, documents_asked=len(texts), unread=reply.unread
        )

    async def _score_missing(
        self, query: str, texts: Sequence[str], until: float | None
    ) -> RerankAnswer:
        asked = 0
        for _ in range(MAX_MODEL_CHANGES):
            known = self._store.read_scores(self.identity, query, texts)
            missing = [text for text, score in zip(texts, known, strict=True) if score is None]
            if not missing:
                scores = tuple(score for score in known if score is not None)
                unread = self._store.find_unread(self.identity, query, texts)
                return RerankAnswer(scores, self.identity, documents_asked=asked, unread=unread)
            distinct = list(dict.fromkeys(missing))
            asked += len(distinct)
            async with self._guard_call(until) as state:
                await self._ask_batches(query, distinct, state)
        raise ProviderError(
            f"{self.identity.label}: the model keeps changing between calls", kind="malformed"
        )

    @asynccontextmanager
    async def _guard_call(self, until: float | None) -> AsyncIterator[CallState]:
        """Keep the deadline, and let the circuit breaker admit the call and see how it ends."""
        ticket = self.breaker.admit_call()
        if ticket is None:
            message = f"{self.identity.label}: the circuit breaker is open"
            raise ProviderError(message, kind="breaker")
        started, state = asyncio.get_running_loop().time(), CallState(self.identity.label, until)
        try:
            async with asyncio.timeout_at(until):
                yield state
        except TimeoutError:
            if state.is_sent:
                self.breaker.record_failure(ticket)
            else:
                self.breaker.abandon_call(ticket)
            raise state.deadline_error((until or started) - started) from None
        except BaseException as error:
            if isinstance(error, ProviderError) and error.kind not in HARMLESS:
                self.breaker.record_failure(ticket)
            else:  # cancelled, over the cost limit, or refused: nothing about its health
                self.breaker.abandon_call(ticket)
            raise
        self.breaker.record_success(ticket)

    async def _ask_batches(self, query: str, texts: Sequence[str], state: CallState) -> None:
        """Call the provider for all batches; an error is raised after all have ended."""
        size = int(min(self._reranker.batch, self._largest_batch))
        batches = [texts[i : i + size] for i in range(0, len(texts), size)]
        calls = (self._call_in_parts(query, batch, state) for batch in batches)
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _call_in_parts(self, query: str, texts: Sequence[str], state: CallState) -> None:
        """Call the provider; split what it refuses as too large into halves."""
        try:
            await self._call_once(query, texts, state)
        except ProviderError as error:
            if error.kind != "too_large" or len(texts) == 1:
                raise
            half = (len(texts) + 1) // 2
            self._largest_batch = min(self._largest_batch, half)
            await self._call_in_parts(query, texts[:half], state)
            await self._call_in_parts(query, texts[half:], state)

    async def _call_once(self, query: str, texts: Sequence[str], state: CallState) -> Reply:
        async with self._rate_limiter.acquire_slot():
            reply, facts = await self._call_with_retries(query, texts, state)
        self._store_reply(query, texts, reply, facts)
        return reply

    async def _call_with_retries(
        self, query: str, texts: Sequence[str], state: CallState
    ) -> tuple[Reply, Mapping[str, Any]]:
        """The reply, and usage, cost, latency and failed calls as its event holds them."""
        retry, failed = self._settings.retry, 0
        stamina = import_optional("stamina", extra="remote", purpose="retrying")

        def choose_wait(error: Exception) -> bool | float:
            nonlocal failed
            failed += 1
            return state.choose_wait(error, failed, retry)

        # The waits are our own: they have to fit the deadline.
        async for attempt in stamina.retry_context(
            on=choose_wait, timeout=None, attempts=retry.attempts
        ):
            with attempt:
                if attempt.num > 1:
                    await self._rate_limiter.wait_for_spacing()
                with self._costs.reserve(query, texts) as call:
                    started, state.is_sent = self._clock(), True
                    call.reply = reply = await self._request_scores(query, texts)
                    took = self._clock() - started
        latency = {"latency_ms": 1e3 * took, "retries": attempt.num - 1}
        return reply, {**self._costs.describe_call(call), **latency}

    async def _request_scores(self, query: str, texts: Sequence[str]) -> Reply:
        limit = self._settings.timeout_ms / 1e3
        try:
            async with asyncio.timeout(limit):
                reply = await call_function(self._reranker.score, query, texts)
                return check_reply(reply, len(texts), self._reranker.identity)
        except TimeoutError:
            raise _timeout_error(self.identity.label, limit) from None
        except FusionBenchError:
            raise
        except Exception as error:
            message = f"{self.identity.label}: {type(error).__name__}: {error}"
            raise ProviderError(message, kind="server", retry_after=math.inf) from error

    def _store_reply(
        self, query: str, texts: Sequence[str], reply: Reply, facts: Mapping[str, Any]
    ) -> None:
        if reply.model is not None and reply.model != self._model:
            self._store.save_model(self._reranker.identity, reply.model)
            self._model = reply.model
        identity = self.identity
        event = {
            "kind": "call",
            "provider": identity.label,
            "documents": len(texts),
            "filled": len(reply.unread),
            **facts,
        }
        is_kept = identity.space != "order"
        scores = dict(zip(texts, reply.scores, strict=True)) if is_kept else {}
        unread = {texts[position] for position in reply.unread}
        self._store.save_scores(identity, query, scores, (self._run, event), unread=unread)


def _timeout_error(label: str, seconds: float) -> ProviderError:
    return ProviderError(f"{label}: no answer within {1e3 * seconds:.0f} ms", kind="timeout")
