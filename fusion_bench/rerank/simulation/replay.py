"""A stored rerank list replayed under failures, latency, deadlines and a circuit breaker.

A discrete-event simulation on its own clock, with the circuit breaker of the live pipeline. Each
query ends with the first provider's list, the second provider's, or the fused order. The measure of
these three lists is an input.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, count, product

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.measures.bounds import is_bounded
from fusion_bench.rerank.calls.breaker import CircuitBreaker
from fusion_bench.rerank.settings import BreakerRules, RerankSettings
from fusion_bench.rerank.simulation.fault_model import SimulationSettings
from fusion_bench.rerank.simulation.simulation_findings import describe_breaker, describe_deadline
from fusion_bench.rerank.simulation.simulation_result import (
    FIRST,
    FUSED,
    SECOND,
    SimulationInput,
    SimulationPoint,
    SimulationResult,
)
from fusion_bench.stats.intervals import estimate_mean

#: Standard normal quantile of 95 %.
Z95 = 1.6448536269514722
#: A breaker that never opens.
NEVER = BreakerRules(failures=10**9)


def run_simulation(
    quality: SimulationInput,
    spec: SimulationSettings,
    settings: RerankSettings,
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> SimulationResult:
    """Simulate every failure rate and every deadline.

    Args:
        quality: The measure of the three lists.
        spec: Traffic, failures and latencies.
        settings: Deadline, breaker, what happens on a timeout.
        on_progress: Called with the points done and the points in all.
    """
    rules = settings.deadline
    deadline = None if rules is None else rules.remaining_ms(spec.elapsed_ms)
    second = quality.second is not None
    fallbacks = (False, True) if second else (False,)
    asked = [
        *product(spec.failure_rates, (False, True), fallbacks, [deadline]),
        *((0.0, True, second, limit) for limit in (*spec.deadlines_ms, None, deadline)),
    ]
    traffics = [_TrafficSample(spec, repeat) for repeat in range(spec.repeats)]
    points: list[SimulationPoint] = []
    for point in asked:
        on_progress(len(points), len(asked))
        runs = [
            _PointSimulation(quality, traffic, spec, settings, *point).simulate_point()
            for traffic in traffics
        ]
        values, *others = (np.array(column) for column in zip(*runs, strict=True))
        mean = estimate_mean(values)
        if is_bounded(quality.measure):
            mean = mean.clip(0.0, 1.0)
        interval = (mean.low, mean.high) if np.isfinite(mean.low) else (None, None)
        means = (float(np.mean(column)) for column in others)
        points.append(SimulationPoint(*point, mean.mean, *interval, *means))
    split = len(points) - len(spec.deadlines_ms) - 2
    by_failure, by_deadline = tuple(points[:split]), tuple(points[split:-1])
    reranked, fused = float(quality.values[FIRST].mean()), float(quality.values[FUSED].mean())
    return SimulationResult(
        quality.measure,
        quality.first,
        quality.second,
        reranked,
        fused,
        by_failure,
        by_deadline,
        answer=describe_deadline(quality.measure, points[-1], by_deadline[-1], reranked - fused),
        notes=tuple(describe_breaker(quality, by_failure, spec, settings)),
    )


class _TrafficSample:
    """Random numbers of one repeat, shared by all points.

    Attributes:
        arrives: Shape (n,): arrival times in seconds.
        took: Shape (2, n): latency of the first and the second provider in milliseconds.
        luck: Shape (2, n): uniform, for independent failures.
        outages: Seed of the outages.
    """

    def __init__(self, spec: SimulationSettings, repeat: int) -> None:
        rng = np.random.default_rng((spec.seed, repeat))
        n = spec.queries
        self.arrives = np.cumsum(rng.exponential(1 / spec.queries_per_second, n))
        took = [
            rng.lognormal(math.log(latency.p50), math.log(latency.p95 / latency.p50) / Z95, n)
            for latency in (spec.latency, spec.fallback_latency)
        ]
        self.took, self.luck = np.stack(took), rng.random((2, n))
        self.outages = (spec.seed + 1, repeat)


@dataclass
class _PointSimulation:
    """One point in one repeat; calls of different queries overlap."""

    quality: SimulationInput
    traffic: _TrafficSample
    spec: SimulationSettings
    settings: RerankSettings
    rate: float
    breaker: bool
    fallback: bool
    deadline: float | None

    def simulate_point(self) -> tuple[float, ...]:
        """Quality, mean, p50 and p95 of the latency, and share reranked of all queries."""
        ended, latency = self._simulate_queries()
        # Outages hit queries at random, so each list counts with its mean over all queries.
        shares = np.bincount(ended, minlength=3) / len(ended)
        p50, p95 = np.percentile(latency, [50, 95], method="inverted_cdf")
        quality = shares @ self.quality.values.mean(axis=1)
        return quality, latency.mean(), p50, p95, (ended != FUSED).mean()

    def _simulate_queries(self) -> tuple[IntArray, FloatArray]:
        """The list and the latency in milliseconds of each query."""
        now = 0.0
        rules = self.settings.breaker if self.breaker else NEVER
        breakers = [CircuitBreaker(rules, lambda: now) for _ in range(2)]
        down = self._draw_outages()
        ended, latency = np.full(self.spec.queries, FUSED), np.zeros(self.spec.queries)
        # (end, order, query, provider, ticket, has scores, milliseconds since arrival)
        calls: list[tuple[float, int, int, int, int, bool, float]] = []
        order = count()
        limit = math.inf if self.deadline is None else self.deadline

        def ask_provider(q: int, provider: int, used: float) -> None:
            ticket = breakers[provider].admit_call()
            if ticket is None:
                fall_back(q, provider, used, may_go_on=True)
                return
            took, good = self._simulate_call(q, provider, limit - used, bool(down[q]))
            call = (now + took / 1e3, next(order), q, provider, ticket, good, used + took)
            heapq.heappush(calls, call)

        def fall_back(q: int, provider: int, used: float, *, may_go_on: bool) -> None:
            if provider == FIRST and self.fallback and may_go_on and used < limit:
                ask_provider(q, SECOND, used)
            else:
                latency[q] = used

        # A last −1 at infinity ends all calls.
        for q, arrival in chain(enumerate(self.traffic.arrives.tolist()), [(-1, math.inf)]):
            while calls and calls[0][0] <= arrival:
                now, _, asked, provider, ticket, good, used = heapq.heappop(calls)
                if good:
                    breakers[provider].record_success(ticket)
                    ended[asked], latency[asked] = provider, used
                else:
                    breakers[provider].record_failure(ticket)
                    fall_back(asked, provider, used, may_go_on=self._passes_on(used))
            if q >= 0:
                now = max(now, arrival)
                ask_provider(q, FIRST, 0.0)
        return ended, latency

    def _passes_on(self, used: float) -> bool:
        """Whether the next provider is asked: after a timeout only with ``on_timeout: next``."""
        refused = self.spec.failing == "connection" and used <= self.spec.connection_ms
        return refused or self.settings.on_timeout == "next"

    def _simulate_call(self, q: int, provider: int, left: float, down: bool) -> tuple[float, bool]:
        """Milliseconds that a call takes, and whether it returns scores."""
        patience = min(self.spec.timeout_ms, left)
        if provider == SECOND:
            down = bool(self.traffic.luck[SECOND, q] < self.spec.fallback_failure_rate)
        if down and self.spec.failing == "connection":
            return min(self.spec.connection_ms, patience), False
        took = math.inf if down else float(self.traffic.took[provider, q])
        return min(took, patience), took <= patience

    def _draw_outages(self) -> NDArray[np.bool_]:
        """(n,): whether the first provider is down when each query arrives.

        Each of the equal parts of the time holds one outage of equal length at a random place, so
        that the share of the time is exactly the rate.
        """
        if self.spec.outage_seconds == 0 or self.rate in {0.0, 1.0}:
            return np.asarray(self.traffic.luck[FIRST] < self.rate)
        arrives = self.traffic.arrives
        end = float(arrives[-1])
        count = max(1, round(self.rate * end / self.spec.outage_seconds))
        part, length = end / count, self.rate * end / count
        rng = np.random.default_rng(self.traffic.outages)
        begins = part * np.arange(count) + rng.random(count) * (part - length)
        index = np.clip((arrives / part).astype(np.int64), 0, count - 1)
        return np.asarray((arrives >= begins[index]) & (arrives < begins[index] + length))
