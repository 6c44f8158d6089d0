"""A whole run: every query of a dataset scored, and the list that the bench replays."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import DataError, FusionBenchError
from fusion_bench.rerank.candidates import Question, Work
from fusion_bench.rerank.chain import Answer, Chain
from fusion_bench.rerank.clients import Provider
from fusion_bench.rerank.ledger import query_event
from fusion_bench.rerank.limits import Pace, Spend
from fusion_bench.rerank.score_scales import on_unit_scale
from fusion_bench.rerank.session import Session
from fusion_bench.rerank.settings import Settings
from fusion_bench.rerank.store import Store

__all__ = ["Result", "run_name", "score"]

#: Called with queries done, queries in all, and the price so far.
Told = Callable[[int, int, float], None]


def _silent(done: int, total: int, spent: float) -> None:
    """No progress."""


@dataclass(frozen=True)
class Result:
    """What a run found.

    Attributes:
        asked: ``provider/model`` that was wanted.
        space: What the scores mean.
        scores: Query → document → score, in fused order; a query that nobody scored is missing.
        providers: ``provider/model`` → the queries that it scored.
        degraded: Query → why its scores are not those of ``asked``.
        spent: The price of this run and of those it goes on from.
    """

    asked: str
    space: ScoreSpace
    scores: dict[str, dict[str, float]]
    providers: dict[str, tuple[str, ...]]
    degraded: dict[str, str]
    spent: float


def run_name(work: Work, provider: Provider) -> str:
    """What the ledger of a run is found by when it is resumed."""
    who = provider.identity
    facts = [work.dataset, work.fingerprint, work.system.name, work.depth, work.split]
    return json.dumps([*facts, who.provider, who.model, who.endpoint])


async def score(
    work: Work,
    providers: Sequence[Provider],
    settings: Settings,
    store: Store,
    *,
    max_cost: float | None = None,
    told: Told = _silent,
) -> Result:
    """Score everything that is not in the store yet.

    Args:
        work: What is to be scored.
        providers: In the order they are asked.
        settings: Timeouts, retries, breaker.
        store: Where scores are kept.
        max_cost: Stop before the price, earlier runs included, goes beyond this.
        told: Called as the work goes on.

    Raises:
        CostLimitError: It did; what was scored is kept.
        ProviderError: A refusal, when settings are strict.
        DataError: Nobody scored anything.
    """
    run = run_name(work, providers[0])
    before = sum(event.get("cost", 0.0) for event in store.events(run))
    spend = Spend(max_cost, before)
    async with AsyncExitStack() as stack:
        sessions = [
            await _opened(stack, provider, settings, store, run, spend) for provider in providers
        ]
        chain = Chain(sessions, settings)
        total = len(work.questions)
        limit = None if settings.budget is None else settings.budget.left(0.0) / 1e3
        job = _Job(work, chain, store, run, limit, lambda n: told(n, total, spend.spent))
        # As many queries at once as fill the first provider's places, and one to come after each.
        await job.all(2 * providers[0].concurrency)
        return _result(job, chain, spend.spent)


async def _opened(
    stack: AsyncExitStack,
    provider: Provider,
    settings: Settings,
    store: Store,
    run: str,
    spend: Spend,
) -> Session:
    reranker = await stack.enter_async_context(provider.open())
    if reranker.identity.model != provider.model and provider.identity != reranker.identity:
        store.resolve(provider.identity, reranker.identity.model)
    return Session(
        reranker,
        settings,
        store=store,
        run=run,
        truncation=provider.truncation,
        pace=Pace(provider.concurrency, provider.requests_per_minute),
        spend=spend,
        price=provider.price,
        estimate=provider.estimate,
    )


class _Job:
    """Workers that take one query after the other until something forbids to go on."""

    def __init__(
        self,
        work: Work,
        chain: Chain,
        store: Store,
        run: str,
        deadline: float | None,
        told: Callable[[int], None],
    ) -> None:
        self.work, self.chain = work, chain
        self.answers: dict[str, Answer] = {}
        self._store, self._run, self._told = store, run, told
        self._deadline = deadline
        self._waiting = list(reversed(work.questions))
        self._stopped: FusionBenchError | None = None

    async def all(self, workers: int) -> None:
        """Score every question; what is under way when an error comes up is waited for."""
        self._told(0)
        await asyncio.gather(*(self._worker() for _ in range(workers)))
        if self._stopped is not None:
            raise self._stopped

    async def _worker(self) -> None:
        while self._waiting and self._stopped is None:
            question = self._waiting.pop()
            try:
                await self._one(question)
            except FusionBenchError as error:
                self._stopped = error
            self._told(len(self.answers))

    async def _one(self, question: Question) -> None:
        started = time.monotonic()
        texts = [candidate.text for candidate in question.candidates]
        answer = await self.chain.score(question.text, texts, self._deadline)
        self.answers[question.id] = answer
        if answer.asked or answer.failures:
            event = query_event(
                label=answer.label,
                candidates=len(question.candidates),
                asked=answer.asked,
                latency_ms=1e3 * (time.monotonic() - started),
                degraded=answer.degraded,
            )
            self._store.record(self._run, event)


def _result(job: _Job, chain: Chain, spent: float) -> Result:
    asked, space = chain.identity.label, chain.space
    scores: dict[str, dict[str, float]] = {}
    providers: dict[str, list[str]] = {}
    degraded: dict[str, str] = {}
    for question in job.work.questions:
        answer = job.answers[question.id]
        providers.setdefault(answer.label, []).append(question.id)
        if answer.label != asked or answer.degraded:
            degraded[question.id] = answer.degraded or f"{answer.label}, not {asked}"
        if answer.scores is not None and answer.identity is not None:
            values = list(answer.scores)
            if space != answer.identity.space:
                values = on_unit_scale(values, answer.identity.space).tolist()
            names = (candidate.id for candidate in question.candidates)
            scores[question.id] = dict(zip(names, values, strict=True))
    if not scores:
        why = next(iter(degraded.values()), "there was nothing to score")
        raise DataError(f"{job.work.dataset}: no query was scored: {why}")
    listed = {label: tuple(queries) for label, queries in providers.items()}
    return Result(asked, space, scores, listed, degraded, spent)
