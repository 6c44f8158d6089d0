"""What a run would cost, and what it did cost by the events that it left in the store."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fusion_bench.models.answer_stores import ScoreStore
from fusion_bench.models.candidates import ScoringRequest
from fusion_bench.models.reranker_protocol import Usage
from fusion_bench.models.rerankers import Provider

#: Upper ends of the classes in tables of latency.
SIZE_CLASSES = (10, 20, 30, 50, 100)


@dataclass(frozen=True)
class CostEstimate:
    """What a run would ask for and cost.

    Attributes:
        provider: ``provider/model`` of the provider.
        queries: Queries with candidates.
        documents: Pairs of query and document.
        stored: Pairs whose score is stored.
        calls: Calls to make.
        usage: What the provider would bill; tokens are estimated.
        cost: The price; None = the provider's price is not known.
        trials: Trials whose candidates are asked for together.
    """

    provider: str
    queries: int
    documents: int
    stored: int
    calls: int
    usage: Usage
    cost: float | None
    trials: int = 1


def estimate_cost(work: ScoringRequest, provider: Provider, store: ScoreStore) -> CostEstimate:
    """Estimate the cost of all candidates whose score is not stored.

    Args:
        work: What is to be scored.
        provider: The provider to ask.
        store: The stored scores.
    """
    configured = provider.model_identity
    identity = replace(configured, model=store.resolved_model(configured))
    cut = provider.truncation
    pairs, stored, calls, usage = 0, 0, 0, Usage()
    for question in work.queries:
        texts = [cut(candidate.text) for candidate in question.candidates]
        known = store.read_scores(identity, question.text, texts)
        missing = [text for text, score in zip(texts, known, strict=True) if score is None]
        pairs += len(texts)
        stored += len(texts) - len(missing)
        distinct = list(dict.fromkeys(missing))
        for start in range(0, len(distinct), provider.batch):
            calls += 1
            batch = distinct[start : start + provider.batch]
            usage += provider.estimate_usage(question.text, batch)
    cost = None if provider.price is None else provider.price.cost_of(usage)
    return CostEstimate(
        configured.label, len(work.queries), pairs, stored, calls, usage, cost, trials=work.trials
    )


def summarize_events(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Totals over a run and all its interruptions.

    Returns:
        Numbers of calls, queries that needed a call, documents, search units, tokens, retries and
        scores that could not be read; cost, None where a provider's price is not known; latency of
        calls and of queries that needed a call, also by size; degraded queries by reason; the
        1-based positions without a readable score by query; the largest call.
    """
    every = list(events)
    calls = [event for event in every if event["kind"] == "call"]
    queries = [event for event in every if event["kind"] == "query"]
    sums = ("documents", "searches", "tokens", "output_tokens", "retries", "filled")
    costs = [event["cost"] for event in calls]
    live = [event for event in queries if event["asked"]]
    unread = {event["query"]: event["unread"] for event in queries if "unread" in event}
    return {
        "calls": len(calls),
        **{key: sum(event[key] for event in calls) for key in sums},
        "cost": None if None in costs else sum(costs),
        "call_ms": latency_percentiles(calls),
        "query_ms": latency_percentiles(live),
        "by_candidates": latency_by_candidates(live),
        "by_documents": latency_by_documents(calls),
        "largest_call": max((event["documents"] for event in calls), default=0),
        "queries_answered": len(live),
        "fallbacks": dict(Counter(e["degraded"] for e in queries if e["degraded"])),
        "unread": {query: places for query, places in unread.items() if places},
    }


def sum_booked_costs(events: Iterable[Mapping[str, Any]]) -> float:
    """What earlier runs count against a limit of the cost: calls that failed unpaid cost nothing.

    A call is booked at no less than the client's own count of its usage.
    """
    return sum(event.get("booked", event.get("cost")) or 0.0 for event in events)


def latency_percentiles(events: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """p50 and p95 of the latency in milliseconds, each of one event; None without events."""
    if not events:
        return {"p50": None, "p95": None}
    values = [event["latency_ms"] for event in events]
    p50, p95 = np.percentile(values, [50, 95], method="inverted_cdf")
    return {"p50": round(float(p50), 3), "p95": round(float(p95), 3)}


def latency_by_candidates(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Latency of queries by the number of documents that were not stored."""
    labels = (*(f"≤ {end}" for end in SIZE_CLASSES), f"> {SIZE_CLASSES[-1]}")
    return [
        {"candidates": labels[index], "queries": len(members), **latency_percentiles(members)}
        for index, members in _group_by_size(events, "asked")
    ]


def latency_by_documents(calls: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Latency of calls by their number of documents.

    Returns:
        One row per class, with the mean number of its documents.
    """
    return [
        {
            "documents": round(sum(call["documents"] for call in members) / len(members), 3),
            "calls": len(members),
            **latency_percentiles(members),
        }
        for _, members in _group_by_size(calls, "documents")
    ]


def _group_by_size(
    events: Iterable[Mapping[str, Any]], key: str
) -> list[tuple[int, list[Mapping[str, Any]]]]:
    """The events by the size class of one of their keys, the smallest class first."""
    groups: dict[int, list[Mapping[str, Any]]] = {}
    for event in events:
        groups.setdefault(bisect_left(SIZE_CLASSES, event[key]), []).append(event)
    return sorted(groups.items())
