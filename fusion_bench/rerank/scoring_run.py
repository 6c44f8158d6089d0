"""Scoring of all queries of a dataset, concurrently."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import DataError, FusionBenchError
from fusion_bench.rerank.candidates import QueryCandidates, ScoringRequest
from fusion_bench.rerank.chain import ProviderChain
from fusion_bench.rerank.clients import Provider
from fusion_bench.rerank.ledger import query_event
from fusion_bench.rerank.limits import Budget
from fusion_bench.rerank.score_spaces import to_unit_scale
from fusion_bench.rerank.session import ProviderSession, RerankAnswer
from fusion_bench.rerank.settings import RerankSettings
from fusion_bench.rerank.store import ScoreStore

#: Called with queries done, queries in all, and the cost so far.
OnProgress = Callable[[int, int, float], None]


def _ignore_progress(done: int, total: int, spent: float) -> None:
    """No progress."""


@dataclass(frozen=True)
class ScoringResult:
    """Scores of all queries.

    Attributes:
        asked: ``provider/model`` of the first provider.
        space: Score space.
        scores: Query → document → score, in fused order; without queries that have no scores.
        providers: ``provider/model`` → the queries that it scored.
        degraded: Query → why its scores are not those of ``asked``.
        spent: Cost of this run and of the interrupted ones before it.
    """

    asked: str
    space: ScoreSpace
    scores: dict[str, dict[str, float]]
    providers: dict[str, tuple[str, ...]]
    degraded: dict[str, str]
    spent: float


def run_key(work: ScoringRequest, provider: Provider) -> str:
    """Key of a run in the ledger, the same when it is resumed."""
    who = provider.model_identity
    facts = [work.dataset, work.fingerprint, work.system.name, work.depth, work.split]
    return json.dumps([*facts, who.provider, who.model, who.endpoint])


async def score_queries(
    work: ScoringRequest,
    providers: Sequence[Provider],
    settings: RerankSettings,
    store: ScoreStore,
    *,
    max_cost: float | None = None,
    on_progress: OnProgress = _ignore_progress,
) -> ScoringResult:
    """Score everything that is not in the store yet.

    Args:
        work: What is scored.
        providers: In the order they are asked.
        settings: Timeouts, retries, breaker.
        store: Stored scores.
        max_cost: Stop before the cost, earlier runs included, exceeds this.
        on_progress: Called after each query.

    Raises:
        CostLimitError: The limit was reached; scores are stored.
        ProviderError: A refusal, when settings are strict.
        DataError: No query was scored.
    """
    run = run_key(work, providers[0])
    before = sum(event.get("cost", 0.0) for event in store.read_events(run))
    budget = Budget(max_cost, before)
    async with AsyncExitStack() as stack:
        sessions = [
            await _open_session(stack, provider, settings, store, run, budget)
            for provider in providers
        ]
        chain = ProviderChain(sessions, settings)
        total = len(work.queries)
        limit = None if settings.deadline is None else settings.deadline.remaining_ms(0.0) / 1e3
        job = _ScoringRun(
            work, chain, store, run, limit, lambda n: on_progress(n, total, budget.spent)
        )
        # Enough queries to keep the first provider's slots busy.
        await job.score_all(2 * providers[0].concurrency)
        return _build_result(job, chain, budget.spent)


async def _open_session(
    stack: AsyncExitStack,
    provider: Provider,
    settings: RerankSettings,
    store: ScoreStore,
    run: str,
    budget: Budget,
) -> ProviderSession:
    reranker = await stack.enter_async_context(provider.open_reranker())
    if reranker.identity.model != provider.model and provider.model_identity != reranker.identity:
        store.save_model(provider.model_identity, reranker.identity.model)
    return ProviderSession(
        reranker,
        settings,
        provider=provider,
        store=store,
        run=run,
        budget=budget,
    )


@dataclass
class _ScoringRun:
    """Workers that take one query after the other until an error stops them."""

    work: ScoringRequest
    chain: ProviderChain
    store: ScoreStore
    run: str
    deadline: float | None
    on_progress: Callable[[int], None]
    answers: dict[str, RerankAnswer] = field(default_factory=dict)
    error: FusionBenchError | None = None

    async def score_all(self, workers: int) -> None:
        """Score every query; after an error, wait for the calls under way and raise it."""
        self.on_progress(0)
        queries = iter(self.work.queries)
        await asyncio.gather(*(self._score_waiting(queries) for _ in range(workers)))
        if self.error is not None:
            raise self.error

    async def _score_waiting(self, queries: Iterator[QueryCandidates]) -> None:
        for query in queries:
            if self.error is not None:
                return
            try:
                await self._score_query(query)
            except FusionBenchError as error:
                self.error = error
            self.on_progress(len(self.answers))

    async def _score_query(self, query: QueryCandidates) -> None:
        started = time.monotonic()
        texts = [candidate.text for candidate in query.candidates]
        answer = await self.chain.score_documents(query.text, texts, self.deadline)
        self.answers[query.id] = answer
        if answer.documents_asked or answer.failures:
            event = query_event(
                label=answer.provider_label,
                candidates=len(query.candidates),
                asked=answer.documents_asked,
                latency_ms=1e3 * (time.monotonic() - started),
                degraded=answer.degraded_reason,
            )
            self.store.record_event(self.run, event)


def _build_result(job: _ScoringRun, chain: ProviderChain, spent: float) -> ScoringResult:
    asked, space = chain.first_identity.label, chain.score_space
    scores: dict[str, dict[str, float]] = {}
    providers: dict[str, list[str]] = {}
    degraded: dict[str, str] = {}
    for query in job.work.queries:
        answer = job.answers[query.id]
        providers.setdefault(answer.provider_label, []).append(query.id)
        if answer.provider_label != asked or answer.degraded_reason:
            degraded[query.id] = answer.degraded_reason or f"{answer.provider_label}, not {asked}"
        if answer.scores is not None and answer.identity is not None:
            values = list(answer.scores)
            if space != answer.identity.space:
                values = to_unit_scale(values, answer.identity.space).tolist()
            names = (candidate.id for candidate in query.candidates)
            scores[query.id] = dict(zip(names, values, strict=True))
    if not scores:
        why = next(iter(degraded.values()), "no query has candidates")
        raise DataError(f"{job.work.dataset}: no query was scored: {why}")
    listed = {label: tuple(queries) for label, queries in providers.items()}
    return ScoringResult(asked, space, scores, listed, degraded, spent)
