"""Scoring of all queries of a dataset, concurrently."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

from fusion_bench.errors import FusionBenchError, ProviderError
from fusion_bench.rerank.calls.chain import ProviderChain
from fusion_bench.rerank.calls.limits import Budget
from fusion_bench.rerank.calls.opening import LateReranker, connect_provider
from fusion_bench.rerank.calls.session import ProviderSession, RerankAnswer
from fusion_bench.rerank.candidates import QueryCandidates, ScoringRequest
from fusion_bench.rerank.clients import HttpProvider, Provider
from fusion_bench.rerank.ledger import sum_booked_costs
from fusion_bench.rerank.protocol import Reranker
from fusion_bench.rerank.settings import RerankSettings
from fusion_bench.rerank.store import ScoreStore

log = logging.getLogger("fusion_bench.rerank")

#: Called with queries done, queries in all, and the cost so far.
OnProgress = Callable[[int, int, float], None]


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
    max_cost: float | None,
    on_progress: OnProgress,
) -> tuple[ProviderChain, dict[str, RerankAnswer]]:
    """Score everything that is not in the store yet.

    Args:
        work: What is scored.
        providers: In the order they are asked.
        settings: Timeouts, retries, breaker.
        store: Stored scores.
        max_cost: Stop before the cost, earlier runs included, exceeds this.
        on_progress: Called after each query.

    Returns:
        The chain with the models that it resolved, and the answer for each query.

    Raises:
        CostLimitError: The limit was reached; scores are stored.
        ProviderError: A refusal, when settings are strict.
    """
    run = run_key(work, providers[0])
    budget = Budget(max_cost, sum_booked_costs(store.read_events(run)))
    deadline = None if settings.deadline is None else settings.deadline.remaining_ms(0.0) / 1e3
    answers: dict[str, RerankAnswer] = {}
    errors: list[FusionBenchError] = []
    queries = iter(work.queries)

    async def score_waiting(chain: ProviderChain) -> None:
        """Take one query after the other until an error stops all workers."""
        while not errors and (query := next(queries, None)) is not None:
            try:
                answers[query.id] = await _score_query(query, chain, deadline, store, run)
            except FusionBenchError as error:
                errors.append(error)
            on_progress(len(answers), len(work.queries), budget.spent)

    async with AsyncExitStack() as stack:
        rerankers = await _open_rerankers(providers, settings, deadline, stack)
        sessions = []
        for provider, reranker in zip(providers, rerankers, strict=True):
            configured = provider.model_identity
            if reranker.identity.model != provider.model and configured != reranker.identity:
                store.save_model(configured, reranker.identity.model)
            session = ProviderSession(
                reranker, settings, provider=provider, store=store, run=run, budget=budget
            )
            if isinstance(reranker, LateReranker):
                session.breaker.open_now()
            sessions.append(session)
        chain = ProviderChain(sessions, settings)
        on_progress(0, len(work.queries), budget.spent)
        # Enough queries to keep the first provider's slots busy.
        workers = (score_waiting(chain) for _ in range(2 * providers[0].concurrency))
        await asyncio.gather(*workers)
    if errors:
        raise errors[0]
    return chain, answers


async def _open_rerankers(
    providers: Sequence[Provider],
    settings: RerankSettings,
    deadline: float | None,
    stack: AsyncExitStack,
) -> list[Reranker]:
    """Connect all providers; one that cannot be connected is an error if no other one can be.

    Args:
        providers: In the order they are asked.
        settings: Their ``timeout_ms`` is the limit of each.
        deadline: Seconds, another limit of each.
        stack: Releases the connections.
    """
    limit = settings.timeout_ms / 1e3
    rerankers: list[Reranker] = []
    errors: list[ProviderError] = []
    for provider in providers:
        is_remote = isinstance(provider, HttpProvider)  # to load a model takes its time
        seconds = min(limit, deadline or limit) if is_remote else None
        try:
            rerankers.append(await connect_provider(provider, seconds, stack))
        except ProviderError as error:
            if error.kind == "refused" and settings.strict:
                raise
            errors.append(error)
            rerankers.append(LateReranker(provider, limit, stack))
    if len(errors) == len(providers):
        raise errors[0]
    for failure in errors:
        log.warning("not connected, so another provider is asked: %s", failure)
    return rerankers


async def _score_query(
    query: QueryCandidates,
    chain: ProviderChain,
    deadline: float | None,
    store: ScoreStore,
    run: str,
) -> RerankAnswer:
    started = time.monotonic()
    texts = [candidate.text for candidate in query.candidates]
    answer = await chain.score_documents(query.text, texts, deadline)
    if answer.documents_asked or answer.failures:
        event = {
            "kind": "query",
            "query": query.id,
            "provider": answer.provider_label,
            "candidates": len(texts),
            "asked": answer.documents_asked,
            "latency_ms": 1e3 * (time.monotonic() - started),
            "degraded": answer.degraded_reason,
            "unread": [position + 1 for position in answer.unread],
        }
        store.record_event(run, event)
    return answer
