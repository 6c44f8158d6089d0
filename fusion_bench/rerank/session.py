"""One provider at work: what is stored is not asked, what is asked is paced, retried and kept."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fusion_bench.errors import ProviderError
from fusion_bench.rerank.breaker import Breaker
from fusion_bench.rerank.clients import Price
from fusion_bench.rerank.limits import Pace, Spend
from fusion_bench.rerank.protocol import Identity, Reply, Reranker, Usage, checked
from fusion_bench.rerank.settings import Settings
from fusion_bench.rerank.store import Store
from fusion_bench.rerank.truncate import Truncation
from fusion_bench.util.optional_imports import require

__all__ = ["Scored", "Session"]

#: Times that a query is asked again because the provider changed its model meanwhile.
MODEL_CHANGES = 3
#: What says nothing about a provider's health.
HARMLESS = {"refused", "too_large", "breaker"}


@dataclass(frozen=True)
class Scored:
    """One query's scores, all by one model.

    Attributes:
        scores: One a document.
        identity: Who gave them; its model is the resolved one.
        asked: Documents that were not in the store.
    """

    scores: tuple[float, ...]
    identity: Identity
    asked: int


def _nothing(query: str, documents: Sequence[str]) -> Usage:  # noqa: ARG001 - as Provider.estimate
    return Usage()


class Session:
    """A reranker with its store, limits and breaker.

    Args:
        reranker: Who is asked.
        settings: Timeouts, retries, breaker.
        store: Where scores are kept; in memory by default.
        run: Name of the run whose ledger the calls go into.
        truncation: How documents are cut.
        pace: Calls at once and a minute.
        spend: Money.
        price: What the provider charges; None = nothing is known.
        estimate: What a call would be billed by.
        clock: Seconds, never going back.
    """

    def __init__(
        self,
        reranker: Reranker,
        settings: Settings,
        *,
        store: Store | None = None,
        run: str = "",
        truncation: Truncation | None = None,
        pace: Pace | None = None,
        spend: Spend | None = None,
        price: Price | None = None,
        estimate: Callable[[str, Sequence[str]], Usage] = _nothing,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reranker, self._settings, self._run = reranker, settings, run
        self._store = store or Store()
        self._truncate = truncation or Truncation(None)
        self._pace = pace or Pace(concurrency=8, requests_per_minute=None)
        self._spend = spend or Spend()
        self._price, self._estimate = price or Price(), estimate
        self._clock = clock
        self.breaker = Breaker(settings.breaker, clock)
        self._model = self._store.model(reranker.identity)
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def identity(self) -> Identity:
        """Who answers, with the model that was resolved last."""
        return replace(self._reranker.identity, model=self._model)

    async def score(
        self, query: str, documents: Sequence[str], deadline: float | None = None
    ) -> Scored:
        """Scores of all documents, from the store or the provider.

        Args:
            query: The query.
            documents: Their texts, best first.
            deadline: Seconds for the provider's part, waiting and retries included.

        Raises:
            ProviderError: It could not; what it did answer is kept.
            CostLimitError: A call could cost more than is allowed.
        """
        texts = [self._truncate(document) for document in documents]
        async with self._turns[query]:  # the same query twice at once would be paid twice
            if self.identity.space == "order":  # says nothing apart from its list
                async with self._guarded(deadline):
                    reply = await self._call(query, texts)
                return Scored(reply.scores, self.identity, len(texts))
            return await self._stored(query, texts, deadline)

    async def _stored(self, query: str, texts: Sequence[str], deadline: float | None) -> Scored:
        asked = 0
        for _ in range(MODEL_CHANGES):
            known = self._store.scores(self.identity, query, texts)
            missing = [text for text, score in zip(texts, known, strict=True) if score is None]
            scores = tuple(score for score in known if score is not None)
            if not missing:
                return Scored(scores, self.identity, asked)
            distinct = list(dict.fromkeys(missing))
            asked += len(distinct)
            async with self._guarded(deadline):
                await self._ask(query, distinct)
        raise ProviderError(
            f"{self.identity.label}: the model keeps changing between calls", kind="malformed"
        )

    def _guarded(self, deadline: float | None) -> _Guard:
        return _Guard(self.breaker, deadline, self.identity.label)

    async def _ask(self, query: str, texts: Sequence[str]) -> None:
        """Ask in batches, side by side; an error is raised when all of them have ended."""
        size = self._reranker.batch
        batches = [texts[i : i + size] for i in range(0, len(texts), size)]
        ended = await asyncio.gather(
            *(self._call(query, batch) for batch in batches), return_exceptions=True
        )
        for outcome in ended:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _call(self, query: str, texts: Sequence[str]) -> Reply:
        async with self._pace.turn():
            estimate = self._price.of(self._estimate(query, texts))
            self._spend.reserve(estimate)
            actual = estimate  # what is cut off by a deadline is billed, more often than not
            try:
                reply, took, retries = await self._tried(query, texts)
                actual = self._price.of(reply.usage)
            except ProviderError:
                actual = 0.0
                raise
            finally:
                self._spend.settle(estimate, actual)
        self._keep(query, texts, reply, {"latency_ms": 1e3 * took, "retries": retries})
        return reply

    async def _tried(self, query: str, texts: Sequence[str]) -> tuple[Reply, float, int]:
        """The answer, the seconds that the call which gave it took, and the calls before it."""
        retry = self._settings.retry
        attempts = require("stamina", extra="remote", purpose="retrying").retry_context(
            on=self._again,
            attempts=retry.attempts,
            timeout=None,
            wait_initial=retry.wait_initial,
            wait_max=retry.wait_max,
            wait_jitter=retry.wait_jitter,
        )
        async for attempt in attempts:
            with attempt:
                if attempt.num > 1:
                    await self._pace.tick()
                started = self._clock()
                reply = await self._timed(query, texts)
                took = self._clock() - started
                good = checked(reply, len(texts), self._reranker.identity)
        return good, took, attempt.num - 1

    async def _timed(self, query: str, texts: Sequence[str]) -> Reply:
        milliseconds = self._settings.timeout_ms
        try:
            async with asyncio.timeout(milliseconds / 1e3):
                return await self._reranker.score(query, texts)
        except TimeoutError:
            raise _late(self.identity.label, milliseconds) from None

    def _again(self, error: Exception) -> bool | float:
        """Whether to call again, and after how many seconds if the provider said so."""
        retry = self._settings.retry
        if not isinstance(error, ProviderError) or error.kind not in retry.failure_kinds:
            return False
        if error.retry_after is None:
            return True
        return False if error.retry_after > retry.wait_max else error.retry_after

    def _keep(self, query: str, texts: Sequence[str], reply: Reply, facts: dict[str, Any]) -> None:
        if reply.model is not None and reply.model != self._model:
            self._store.resolve(self._reranker.identity, reply.model)
            self._model = reply.model
        # A provider that does not say which model answers is taken at its configured name.
        identity = (
            self.identity if reply.model is None else replace(self.identity, model=reply.model)
        )
        event = {
            "kind": "call",
            "provider": identity.label,
            "documents": len(texts),
            "searches": reply.usage.searches,
            "tokens": reply.usage.tokens,
            "output_tokens": reply.usage.output_tokens,
            "cost": self._price.of(reply.usage),
            "filled": reply.filled,
            **facts,
        }
        scores = dict(zip(texts, reply.scores, strict=True))
        stored = {} if identity.space == "order" else scores
        self._store.save(identity, query, stored, (self._run, event))


class _Guard:
    """Asks the breaker, sets the time limit, and tells the breaker how it ended."""

    def __init__(self, breaker: Breaker, deadline: float | None, label: str) -> None:
        self._breaker, self._label = breaker, label
        self._timeout = asyncio.timeout(deadline)
        self._seconds = deadline or 0.0
        self._ticket = 0

    async def __aenter__(self) -> None:
        ticket = self._breaker.admit()
        if ticket is None:
            raise ProviderError(f"{self._label}: the circuit breaker is open", kind="breaker")
        self._ticket = ticket
        await self._timeout.__aenter__()

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:  # noqa: ANN401
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError:
            self._breaker.fail(self._ticket)
            raise _late(self._label, 1e3 * self._seconds) from None
        if error is None:
            self._breaker.succeed(self._ticket)
        elif isinstance(error, ProviderError) and error.kind not in HARMLESS:
            self._breaker.fail(self._ticket)
        else:  # cancelled, too dear, or refused: nothing about its health
            self._breaker.abandon(self._ticket)


def _late(label: str, milliseconds: float) -> ProviderError:
    return ProviderError(f"{label}: no answer within {milliseconds:.0f} ms", kind="timeout")
