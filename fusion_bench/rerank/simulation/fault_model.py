"""The configuration of a simulation: traffic, failures and latencies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from fusion_bench.config.models import StrictModel

Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]

FAILURE_RATES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)


class LatencyModel(StrictModel):
    """Latency of a healthy provider: log-normal, given by two percentiles.

    Attributes:
        p50: Median, in milliseconds.
        p95: 95th percentile, at least the median.
    """

    p50: Positive = 60.0
    p95: Positive = 140.0

    @model_validator(mode="after")
    def _in_order(self) -> LatencyModel:
        if self.p95 < self.p50:
            raise ValueError(f"p95 ({self.p95:g} ms) is below p50 ({self.p50:g} ms)")
        return self


class SimulationSettings(StrictModel):
    """What is simulated.

    Attributes:
        failure_rates: Shares of the time in which the first provider is down.
        failing: How it fails: no answer (``timeout``) or unreachable (``connection``).
        outage_seconds: Mean length of an outage; 0 = each call fails independently.
        latency: Of the first provider while it is up.
        fallback_latency: Of the second provider.
        fallback_failure_rate: Share of the second provider's calls that fail, independently.
        connection_ms: Duration of a refused connection.
        timeout_ms: Timeout of a call where there is no deadline.
        queries: Queries in each repeat of a point.
        repeats: Repeats of each point with new random numbers; they give its interval.
        queries_per_second: Mean arrival rate of a Poisson process.
        elapsed_ms: Time that a query has taken before it is reranked.
        deadlines_ms: Deadlines to compare; a point without one is added.
        seed: Of the random numbers, which all points share.
    """

    old_keys: ClassVar[Mapping[str, str]] = {"budgets_ms": "'budgets_ms' is now 'deadlines_ms'"}

    failure_rates: Annotated[tuple[Share, ...], Field(min_length=1)] = FAILURE_RATES
    failing: Literal["timeout", "connection"] = "timeout"
    outage_seconds: Annotated[float, Field(ge=0)] = 60.0
    latency: LatencyModel = LatencyModel()
    fallback_latency: LatencyModel = LatencyModel()
    fallback_failure_rate: Share = 0.0
    connection_ms: Positive = 2.0
    timeout_ms: Positive = 1000.0
    queries: Annotated[int, Field(ge=1)] = 5000
    repeats: Annotated[int, Field(ge=1)] = 8
    queries_per_second: Positive = 5.0
    elapsed_ms: Annotated[float, Field(ge=0)] = 100.0
    deadlines_ms: tuple[Positive, ...] = (50.0, 75.0, 100.0, 150.0, 200.0, 300.0)
    seed: int = 7
