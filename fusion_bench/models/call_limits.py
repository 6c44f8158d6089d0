"""The costs of calls: their limits, a circuit breaker, the ledger of what they did cost.

- Closed: calls pass. The fifth failure in a row opens it; a success resets the count.
- Open: no call passes for 30 seconds.
- Half-open: after that, at most three calls pass. It closes when all three have succeeded and
  opens again at the first failure.
- The result of a call that was admitted before the last change of phase is ignored.

Of the libraries, pybreaker, circuitbreaker and purgatory admit any number of calls half-open and
take no clock, which the third rule and the simulation need.
"""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from fusion_bench.errors import CostLimitError, ProviderError
from fusion_bench.models.answer_stores import RecentScores, ScoreStore
from fusion_bench.models.endpoints import RetryRules
from fusion_bench.models.rerank_config import BreakerRules
from fusion_bench.models.reranker_protocol import Identity, Reply, Usage
from fusion_bench.models.rerankers import Price, Provider


class Budget:
    """Cost so far, cost reserved for running calls, and a limit of both.

    Args:
        limit: Highest total cost; None = no limit.
        spent: Cost of earlier runs.
    """

    def __init__(self, limit: float | None = None, spent: float = 0.0) -> None:
        self._limit = limit
        self._reserved = 0.0
        self.spent = spent

    def reserve_cost(self, estimate: float) -> None:
        """Reserve the estimated cost of a call before it is made.

        Raises:
            CostLimitError: The total could exceed the limit.
        """
        planned = self.spent + self._reserved + estimate
        if self._limit is not None and not planned <= self._limit:  # nor if either is NaN
            raise CostLimitError(
                f"the next call could raise the cost to {planned:.4f}, and the limit is "
                f"{self._limit:g} ({self.spent:.4f} spent): scores are stored; raise --max-cost "
                "and run the same command again to resume"
            )
        self._reserved += estimate

    def settle_cost(self, estimate: float, booked: float) -> None:
        """Replace a reserved estimate by the cost that is booked."""
        self._reserved -= estimate
        self.spent += booked


BreakerPhase: TypeAlias = Literal["closed", "open", "half_open"]


class CircuitBreaker:
    """A circuit breaker with its clock.

    The ticket of a call is the number of the phase that admitted it.

    Args:
        rules: When it opens and closes.
        clock: Monotonic clock in seconds.
    """

    def __init__(self, rules: BreakerRules, clock: Callable[[], float]) -> None:
        self._rules, self._clock, self._phases = rules, clock, 0
        self._enter_phase("closed")

    def _enter_phase(self, phase: BreakerPhase) -> None:
        self.phase, self._since = phase, self._clock()
        self._phases += 1
        self._admitted = self._failures = self._successes = 0

    def admit_call(self) -> int | None:
        """A ticket for one call; None = do not call."""
        rules = self._rules
        if self.phase == "open" and self._clock() - self._since >= rules.open_seconds:
            self._enter_phase("half_open")
        is_full = self.phase == "half_open" and self._admitted >= rules.half_open_calls
        if is_full or self.phase == "open":
            return None
        self._admitted += 1
        return self._phases

    def open_now(self) -> None:
        """Stop calls to a provider of which it is known that it does not answer."""
        self._enter_phase("open")

    def record_success(self, ticket: int) -> None:
        """The call succeeded."""
        if ticket == self._phases:
            self._failures = 0
            self._successes += 1
            if self.phase == "half_open" and self._successes >= self._rules.half_open_calls:
                self._enter_phase("closed")

    def record_failure(self, ticket: int) -> None:
        """The call failed."""
        if ticket == self._phases:
            self._failures += 1
            if self.phase == "half_open" or self._failures >= self._rules.failures:
                self._enter_phase("open")

    def abandon_call(self, ticket: int) -> None:
        """The call ended without a result, such as a cancelled one."""
        if ticket == self._phases:
            self._admitted -= 1


@dataclass
class CallState:
    """The calls of one query to one provider.

    Attributes:
        label: ``provider/model``.
        until: Time of the event loop at which the deadline ends; None = never.
        rules: When a call is repeated.
        is_sent: Whether any call has left.
        is_throttled: Whether the provider has asked to wait.
    """

    label: str
    until: float | None
    rules: RetryRules
    is_sent: bool = field(default=False, init=False)
    is_throttled: bool = field(default=False, init=False)

    def choose_wait(self, error: ProviderError, failed: int) -> float | None:
        """Seconds to wait before the next call; None = there is none.

        A wait that does not end before the deadline is not begun. Arguments as of the rules.
        """
        self.is_throttled |= error.kind == "rate_limit" and error.kind in self.rules.failure_kinds
        wait = self.rules.choose_wait(error, failed)
        if wait is None or self.until is None:
            return wait
        return wait if asyncio.get_running_loop().time() + wait < self.until else None

    def deadline_error(self, seconds: float) -> ProviderError:
        """The error of a deadline that has ended.

        After a 429, or before a slot was free, it is a rate limit: the provider is not slow.

        Args:
            seconds: The deadline's length.
        """
        limit = f"within {1e3 * seconds:.0f} ms"
        if self.is_throttled:
            message = f"{self.label}: asked to wait, and no answer {limit}"
            return ProviderError(message, kind="rate_limit")
        if not self.is_sent:
            return ProviderError(f"{self.label}: no call could start {limit}", kind="rate_limit")
        return ProviderError(f"{self.label}: no answer {limit}", kind="timeout")


@dataclass
class Call:
    """One call under way.

    Attributes:
        counted: Its usage by the client's count.
        reserved: The cost of that.
        reply: Set when the call has succeeded.
    """

    counted: Usage
    reserved: float
    reply: Reply | None = None


class CallCosts:
    """The costs of one provider's calls.

    The client counts what each call should be billed. No call is booked at less: a server may bill
    nothing, or a negative number, and ``--max-cost`` must hold.

    Args:
        provider: Its price, and its count of usage.
        budget: Limit of the total cost.
        store: Where calls that failed and may be billed are recorded.
        run: Key of the run in the store.
    """

    def __init__(
        self, provider: Provider, budget: Budget, store: ScoreStore | RecentScores, run: str
    ) -> None:
        self._provider, self._budget, self._store, self._run = provider, budget, store, run
        self._price = provider.price or Price()

    @contextmanager
    def reserve(self, query: str, texts: Sequence[str]) -> Iterator[Call]:
        """Reserve the cost of one call while it is made.

        Raises:
            CostLimitError: The total could exceed the limit.
        """
        call = Call(Usage(), 0.0)
        if self._provider.price is not None:
            call.counted = self._provider.estimate_usage(query, texts)
            call.reserved = self._price.cost_of(call.counted)
        self._budget.reserve_cost(call.reserved)
        booked = call.reserved  # a call that was cut off is usually billed
        try:
            yield call
            booked = self._booked_cost(call)
        except ProviderError as error:
            booked = call.reserved if error.is_billable else 0.0
            raise
        finally:
            self._budget.settle_cost(call.reserved, booked)
            if call.reply is None and booked:
                self._store.record_event(self._run, {"kind": "unanswered", "booked": booked})

    def describe_call(self, call: Call) -> Mapping[str, Any]:
        """Usage and cost of a call that succeeded, as its event holds them."""
        usage = self._complete_usage(call)
        cost = None if self._provider.price is None else self._price.cost_of(usage)
        return {
            "searches": usage.searches,
            "tokens": usage.tokens,
            "output_tokens": usage.output_tokens,
            "cost": cost,
            "booked": self._booked_cost(call),
        }

    def _booked_cost(self, call: Call) -> float:
        return max(call.reserved, self._price.cost_of(self._complete_usage(call)))

    def _complete_usage(self, call: Call) -> Usage:
        """What the server bills; the client's count where it bills nothing and has a price."""
        billed = Usage() if call.reply is None else call.reply.usage
        if not call.reserved:
            return billed
        return Usage(
            max(0, billed.searches) or call.counted.searches,
            max(0, billed.tokens) or call.counted.tokens,
            max(0, billed.output_tokens) or call.counted.output_tokens,
        )


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
        trials: Repeats whose candidates are asked for together.
    """

    provider: str
    queries: int
    documents: int
    stored: int
    calls: int
    usage: Usage
    cost: float | None
    trials: int = 1


def run_key(identity: Identity, *facts: object) -> str:
    """Key of a model's runs in the ledger, the same when one is resumed.

    Args:
        identity: The model as configured.
        facts: What the runs are about.
    """
    return json.dumps([*facts, identity.provider, identity.model, identity.endpoint])


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
