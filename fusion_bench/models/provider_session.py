"""Sessions of providers: connected, limited, retried, in a chain where another fails.

=================  ==================================================================
connection, 5xx    the next provider; after the last, the fused order
timeout            the fused order, or the next provider with ``on_timeout: next``
429                waits and retries; then the fused order
malformed answer   the fused order, logged as an error
breaker open       the next provider
=================  ==================================================================

All scores of a query come from one provider: the next one scores all of its documents.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final
from weakref import WeakValueDictionary

from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError, FailureKind, FusionBenchError, ProviderError
from fusion_bench.io.provenance import FUSED_ORDER
from fusion_bench.methods.blend import to_unit_scale
from fusion_bench.models.answer_stores import RecentScores, ScoreStore
from fusion_bench.models.call_limits import Budget, CallCosts, CallState, CircuitBreaker
from fusion_bench.models.endpoints import call_with_retries
from fusion_bench.models.rerank_config import RerankSettings
from fusion_bench.models.reranker_protocol import Identity, Reply, Reranker, check_reply
from fusion_bench.models.rerankers import Provider
from fusion_bench.models.rerankers.local import NoOp
from fusion_bench.util.calls import RateLimiter, call_function

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
        """The provider's identity, with the model that was resolved last."""
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
            if self.identity.space != "order":
                return await self._score_missing(query, texts, until)
            # Scores of one list cannot be compared with another's.
            async with self._guard_call(until) as state:
                reply = await self._call_once(query, texts, state)
            return RerankAnswer(
                reply.scores, self.identity, documents_asked=len(texts), unread=reply.unread
            )
        finally:
            turn.release()

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
                size = int(min(self._reranker.batch, self._largest_batch))
                batches = [distinct[i : i + size] for i in range(0, len(distinct), size)]
                calls = (self._call_in_parts(query, batch, state) for batch in batches)
                for outcome in await asyncio.gather(*calls, return_exceptions=True):
                    if isinstance(outcome, BaseException):
                        raise outcome
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
        started = asyncio.get_running_loop().time()
        state = CallState(self.identity.label, until, self._settings.retry)
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
        return reply

    async def _call_with_retries(
        self, query: str, texts: Sequence[str], state: CallState
    ) -> tuple[Reply, Mapping[str, Any]]:
        """The reply, and usage, cost, latency and failed calls as its event holds them."""
        calls = 0

        async def call_provider() -> tuple[Reply, Mapping[str, Any]]:
            nonlocal calls
            calls += 1
            if calls > 1:
                await self._rate_limiter.wait_for_spacing()
            with self._costs.reserve(query, texts) as call:
                started, state.is_sent = self._clock(), True
                call.reply = reply = await self._request_scores(query, texts)
                took = self._clock() - started
            latency = {"latency_ms": 1e3 * took, "retries": calls - 1}
            return reply, {**self._costs.describe_call(call), **latency}

        return await call_with_retries(call_provider, state.choose_wait)

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


def _timeout_error(label: str, seconds: float) -> ProviderError:
    return ProviderError(f"{label}: no answer within {1e3 * seconds:.0f} ms", kind="timeout")


#: Share of the time limit of a call within which a provider is connected during that call.
CONNECTING_SHARE: Final = 0.5


async def connect_provider(
    provider: Provider, seconds: float | None, stack: AsyncExitStack
) -> Reranker:
    """Connect a provider within a time.

    Args:
        provider: The provider.
        seconds: The time limit, as some servers are asked for their model; None = none.
        stack: Releases the connection.

    Raises:
        ProviderError: It cannot be connected: kind ``refused`` or ``connection``. The call that
            tried is not repeated.
        ConfigError: A key is missing.
        MissingExtraError: A library is.
    """
    try:
        async with asyncio.timeout(seconds):
            return await stack.enter_async_context(provider.open_reranker())
    except TimeoutError:
        limit = 1e3 * (seconds or 0.0)
        reason = f"{provider.model_identity.label}: not connected within {limit:.0f} ms"
    except ProviderError as error:
        if error.kind == "refused":
            raise
        reason = str(error)
    raise ProviderError(reason, kind="connection", retry_after=math.inf, is_billable=False)


class LateReranker:
    """A provider that could not be connected before the first query; its calls try again.

    Args:
        provider: The provider.
        seconds: Time limit of a call.
        stack: Releases the connection.
    """

    def __init__(self, provider: Provider, seconds: float, stack: AsyncExitStack) -> None:
        self.identity, self.batch = provider.model_identity, provider.batch
        self._provider, self._stack = provider, stack
        self._seconds = CONNECTING_SHARE * seconds
        self._opened: Reranker | None = None
        self._lock = asyncio.Lock()  # or each of the calls at once would connect

    async def score(self, query: str, documents: Sequence[str]) -> Reply:
        """Connect, then score.

        Raises:
            ProviderError: It cannot be connected, or the call failed.
        """
        async with self._lock:
            if self._opened is None:
                self._opened = await connect_provider(self._provider, self._seconds, self._stack)
                self.batch = self._opened.batch
        reply = await self._opened.score(query, documents)
        return replace(reply, model=reply.model or self._opened.identity.model)


log = logging.getLogger("fusion_bench.rerank")

#: Failures after which the next provider is asked.
PASSED_ON: frozenset[FailureKind] = frozenset({"connection", "server", "breaker"})


class ProviderChain:
    """Providers in the order they are asked.

    Args:
        sessions: The first one is preferred.
        settings: What happens on a timeout and on a refusal.

    Raises:
        ConfigError: No provider, or score spaces that cannot share a list.
    """

    def __init__(self, sessions: Sequence[ProviderSession], settings: RerankSettings) -> None:
        if not sessions:
            raise ConfigError("a chain of rerankers needs at least one provider")
        self.sessions, self._settings = tuple(sessions), settings
        spaces = {session.identity.space for session in sessions}
        if len(spaces) > 1 and not spaces <= {"unit", "logit", "log_prob"}:
            raise ConfigError(
                f"the score spaces of a chain have no common scale: {', '.join(sorted(spaces))}; "
                "choose providers of one space, or of unit, logit and log_prob"
            )

    @property
    def first_identity(self) -> Identity:
        """Identity of the first provider."""
        return self.sessions[0].identity

    @property
    def score_space(self) -> ScoreSpace:
        """The score space of the list: the providers' own, or ``unit``."""
        spaces = {session.identity.space for session in self.sessions}
        return spaces.pop() if len(spaces) == 1 else "unit"

    async def score_documents(
        self, query: str, documents: Sequence[str], deadline: float | None = None
    ) -> RerankAnswer:
        """Ask the providers in order until one returns scores.

        Args:
            query: The query.
            documents: Texts of the candidates, best first.
            deadline: Seconds for all providers together, waiting and retries included.

        Raises:
            ProviderError: A refusal, when settings are strict.
            CostLimitError: A call could exceed the cost limit.
        """
        failures: list[tuple[str, FailureKind]] = []
        started = time.monotonic()
        for session in self.sessions:
            left = None if deadline is None else started + deadline - time.monotonic()
            if left is not None and left <= 0:
                log.warning("%s: no time left to ask", session.identity.label)
                failures.append((session.identity.label, "timeout"))
                break
            try:
                answer = await session.score_documents(query, documents, left)
                return replace(answer, failures=tuple(failures))
            except ProviderError as error:
                if error.kind in {"refused", "too_large"} and self._settings.strict:
                    raise
                is_mistake = error.kind in {"malformed", "refused"}
                log.log(logging.ERROR if is_mistake else logging.WARNING, "%s", error)
                failures.append((session.identity.label, error.kind))
                is_passed_on = error.kind == "timeout" and self._settings.on_timeout == "next"
                if not is_passed_on and error.kind not in PASSED_ON:
                    break
        return RerankAnswer(failures=tuple(failures))
