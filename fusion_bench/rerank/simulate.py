"""The degradation bench: a stored list replayed under failures, latency and a breaker.

It answers what a deadline, a breaker and a fallback are worth: the expected measure and the 95th
percentile of the reranking's latency as functions of how often the provider is down. Nothing is
measured here but the quality of the three lists a query may end with (first provider's, second
provider's, fused); the rest is a simulation on its own clock, with the real breaker.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fusion_bench.order import FloatArray, IntArray
from fusion_bench.rerank.breaker import Breaker, BreakerRules
from fusion_bench.rerank.settings import Settings
from fusion_bench.rerank.simulation import Latency, Simulation

__all__ = ["Point", "Quality", "Study", "study"]

#: What a query may end with: rows of :attr:`Quality.values`.
FIRST, SECOND, FUSED = 0, 1, 2
#: Standard normal quantile of 95 %.
Z95 = 1.6448536269514722
#: A breaker that never opens.
NEVER = BreakerRules(failures=10**9)


@dataclass(frozen=True)
class Quality:
    """The measure of each list a query may end with.

    Attributes:
        measure: Its name.
        values: Shape (3, Q): reranked by the first provider, by the second, fused order.
    """

    measure: str
    values: FloatArray


@dataclass(frozen=True)
class Point:
    """One setting at one failure rate.

    Attributes:
        failure_rate: Share of the time that the first provider is down.
        breaker: Whether there is a circuit breaker.
        fallback: Whether there is a second provider.
        budget_ms: The deadline; None = none but ``timeout_ms`` of the simulation.
        quality: Mean of the measure.
        mean: Mean of the reranking's latency, in milliseconds.
        p50: Its median.
        p95: Its 95th percentile.
        reranked: Share of the queries that some provider scored.
    """

    failure_rate: float
    breaker: bool
    fallback: bool
    budget_ms: float | None
    quality: float
    mean: float
    p50: float
    p95: float
    reranked: float


@dataclass(frozen=True)
class Study:
    """Everything that was simulated.

    Attributes:
        measure: The measure.
        reranked: Its mean when the first provider always answers.
        fused: Its mean when nobody does.
        by_failure: Each failure rate with and without breaker and fallback, with the deadline.
        by_budget: Deadlines, with breaker and fallback, at no failures.
        answer: What the deadline costs and buys, in a sentence.
    """

    measure: str
    reranked: float
    fused: float
    by_failure: tuple[Point, ...]
    by_budget: tuple[Point, ...]
    answer: str

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


def study(quality: Quality, spec: Simulation, settings: Settings) -> Study:
    """Simulate every point.

    Args:
        quality: Measured beforehand.
        spec: Traffic, failures and latencies.
        settings: Deadline, breaker, what happens on a timeout.
    """
    traffic = _Traffic.drawn(quality, spec)
    budget = None if settings.budget is None else settings.budget.left(spec.elapsed_ms)

    def at(rate: float, limit: float | None, *, breaker: bool, fallback: bool) -> Point:
        run = _Run(quality, traffic, spec, settings, rate, limit, breaker, fallback)
        return run.point()

    by_failure = tuple(
        at(rate, budget, breaker=breaker, fallback=fallback)
        for rate in spec.failure_rates
        for breaker in (False, True)
        for fallback in (False, True)
    )
    limits: tuple[float | None, ...] = (*spec.budgets_ms, None)
    by_budget = tuple(at(0.0, limit, breaker=True, fallback=True) for limit in limits)
    reranked, fused = float(quality.values[FIRST].mean()), float(quality.values[FUSED].mean())
    chosen = at(0.0, budget, breaker=True, fallback=True)
    answer = _answer(quality.measure, chosen, by_budget[-1], reranked - fused)
    return Study(quality.measure, reranked, fused, by_failure, by_budget, answer)


def _answer(measure: str, chosen: Point, free: Point, gain: float) -> str:
    if chosen.budget_ms is None:
        return "There is no deadline: nothing to weigh."
    cost = free.quality - chosen.quality
    share = f", {cost / gain:.0%} of what reranking wins" if gain > 0 else ""
    judged = "" if gain > 0 else " Reranking wins nothing here: the cheapest deadline is not to."
    return (
        f"With nothing failing, a deadline of {chosen.budget_ms:g} ms costs {cost:.4f} "
        f"{measure}{share}, and brings the 95th percentile of the reranking from {free.p95:.0f} "
        f"ms to {chosen.p95:.0f} ms; "
        f"{1 - chosen.reranked:.1%} of the queries keep the fused order.{judged}"
    )


@dataclass(frozen=True)
class _Traffic:
    """The random numbers that every point shares.

    Attributes:
        query: Shape (n,): which query of the dataset each is.
        arrives: Shape (n,): when, in seconds.
        took: Shape (2, n): milliseconds that the first and the second provider would take.
        luck: Shape (2, n): uniform, for failures of single calls.
    """

    query: IntArray
    arrives: FloatArray
    took: FloatArray
    luck: FloatArray

    @classmethod
    def drawn(cls, quality: Quality, spec: Simulation) -> _Traffic:
        rng = np.random.default_rng(spec.seed)
        n, queries = spec.queries, quality.values.shape[1]
        rounds = -(-n // queries)
        # Every query comes as often as any other, so the mean is the dataset's.
        query = np.concatenate([rng.permutation(queries) for _ in range(rounds)])[:n]
        arrives = np.cumsum(rng.exponential(1 / spec.queries_per_second, n))
        both = (spec.latency, spec.fallback_latency)
        took = np.stack([_lognormal(rng, latency, n) for latency in both])
        return cls(query, arrives, took, rng.random((2, n)))


def _lognormal(rng: np.random.Generator, latency: Latency, n: int) -> FloatArray:
    sigma = math.log(latency.p95 / latency.p50) / Z95
    return rng.lognormal(math.log(latency.p50), sigma, n)


@dataclass
class _Run:
    """One point: the queries in the order of the clock, with calls that overlap."""

    quality: Quality
    traffic: _Traffic
    spec: Simulation
    settings: Settings
    rate: float
    limit: float | None
    breaker: bool
    fallback: bool

    def point(self) -> Point:
        """Run it and sum it up."""
        ended, latency = self._ended()
        values = self.quality.values[ended, self.traffic.query]
        p50, p95 = np.percentile(latency, [50, 95], method="inverted_cdf")
        return Point(
            failure_rate=self.rate,
            breaker=self.breaker,
            fallback=self.fallback,
            budget_ms=self.limit,
            quality=float(values.mean()),
            mean=float(latency.mean()),
            p50=float(p50),
            p95=float(p95),
            reranked=float((ended != FUSED).mean()),
        )

    def _ended(self) -> tuple[IntArray, FloatArray]:
        """What each query ended with, and after how many milliseconds."""
        now = 0.0
        rules = self.settings.breaker if self.breaker else NEVER
        breakers = [Breaker(rules, lambda: now) for _ in range(2)]
        down = self._down()
        ended = np.full(len(self.traffic.query), FUSED)
        latency = np.zeros(len(ended))
        # (when, order, query, provider, ticket, whether it answers, milliseconds since arrival)
        calls: list[tuple[float, int, int, int, int, bool, float]] = []
        order = 0

        def ask(q: int, provider: int, used: float) -> None:
            nonlocal order
            ticket = breakers[provider].admit()
            if ticket is None:
                after(q, provider, used, may_go_on=True)
                return
            took, good = self._call(q, provider, used, bool(down[q]))
            order += 1
            heapq.heappush(calls, (now + took / 1e3, order, q, provider, ticket, good, used + took))

        def after(q: int, provider: int, used: float, *, may_go_on: bool) -> None:
            if provider == FIRST and self.fallback and may_go_on and self._left(used) > 0:
                ask(q, SECOND, used)
            else:
                latency[q] = used

        for q, arrival in self._arrivals():
            while calls and calls[0][0] <= arrival:
                now, _, asked, provider, ticket, good, used = heapq.heappop(calls)
                if good:
                    breakers[provider].succeed(ticket)
                    ended[asked], latency[asked] = provider, used
                else:
                    breakers[provider].fail(ticket)
                    after(asked, provider, used, may_go_on=self._passes_on(used))
            now = max(now, arrival) if q >= 0 else now
            if q >= 0:
                ask(q, FIRST, 0.0)
        return ended, latency

    def _arrivals(self) -> Iterator[tuple[int, float]]:
        """Every query when it comes, then the end of time, so that all calls end."""
        yield from enumerate(self.traffic.arrives.tolist())
        yield -1, math.inf

    def _left(self, used: float) -> float:
        return math.inf if self.limit is None else self.limit - used

    def _passes_on(self, used: float) -> bool:
        """Whether the next provider is asked: not after a timeout, unless that was asked for."""
        refused = self.spec.failing == "connection" and used <= self.spec.connection_ms
        return refused or self.settings.on_timeout == "next"

    def _call(self, q: int, provider: int, used: float, down: bool) -> tuple[float, bool]:
        """Milliseconds that a call takes, and whether it brings scores."""
        patience = min(self.spec.timeout_ms, self._left(used))
        if provider == SECOND:
            down = bool(self.traffic.luck[SECOND, q] < self.spec.fallback_failure_rate)
        if down and self.spec.failing == "connection":
            return min(self.spec.connection_ms, patience), False
        took = math.inf if down else float(self.traffic.took[provider, q])
        return min(took, patience), took <= patience

    def _down(self) -> NDArray[np.bool_]:
        """(n,): whether the first provider is down when each query comes.

        Outages are of equal length and spread over equal parts of the time, at random in each, so
        that the share of the time is exactly the rate.
        """
        if self.spec.outage_seconds == 0 or self.rate in {0.0, 1.0}:
            return np.asarray(self.traffic.luck[FIRST] < self.rate)
        arrives = self.traffic.arrives
        end = float(arrives[-1])
        count = max(1, round(self.rate * end / self.spec.outage_seconds))
        part, length = end / count, self.rate * end / count
        rng = np.random.default_rng(self.spec.seed + 1)
        begins = part * np.arange(count) + rng.random(count) * (part - length)
        index = np.clip((arrives / part).astype(np.int64), 0, count - 1)
        return np.asarray((arrives >= begins[index]) & (arrives < begins[index] + length))
