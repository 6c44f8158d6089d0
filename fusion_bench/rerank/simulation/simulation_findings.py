"""Findings of a simulation: what the deadline and the breaker cost and save."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusion_bench.rerank.settings import RerankSettings
from fusion_bench.rerank.simulation.fault_model import SimulationSettings
from fusion_bench.rerank.simulation.simulation_result import SimulationInput, SimulationPoint

#: The breaker is described at the first failure rate from here on.
TYPICAL_FAILURE_RATE = 0.1
#: Differences of means up to this are rounding.
ROUNDING = 1e-9


def describe_deadline(
    measure: str, chosen: SimulationPoint, unlimited: SimulationPoint, gain: float
) -> str:
    """What the deadline costs and saves.

    Args:
        measure: Its name.
        chosen: The point with the deadline, without failures.
        unlimited: The same without a deadline.
        gain: Of reranking over the fused order.
    """
    if chosen.deadline_ms is None:
        return "No deadline is set."
    cost = unlimited.quality - chosen.quality
    share = "no gain from reranking was measured"
    if gain > 0:
        share = f"{cost / gain:.0%} of the gain from reranking"
    return (
        f"Without failures, a deadline of {chosen.deadline_ms:g} ms costs {cost:.4f} {measure} "
        f"({share}). The 95th percentile of the latency falls from {unlimited.p95:.0f} ms to "
        f"{chosen.p95:.0f} ms. {1 - chosen.reranked:.1%} of the queries keep the fused order."
    )


def describe_breaker(
    outcomes: SimulationInput,
    points: Sequence[SimulationPoint],
    spec: SimulationSettings,
    settings: RerankSettings,
) -> Iterator[str]:
    """What the breaker and the second provider change, and why either may change nothing.

    Args:
        outcomes: What was replayed.
        points: By failure rate.
        spec: Traffic, failures and latencies.
        settings: Of breaker and timeouts.
    """
    by_setting = {(p.failure_rate, p.breaker, p.fallback): p for p in points}
    rates = sorted({point.failure_rate for point in points})
    pairs = [(by_setting[rate, False, False], by_setting[rate, True, False]) for rate in rates]
    failing = [pair for pair in pairs if pair[0].failure_rate > 0]
    if failing:
        typical = (pair for pair in failing if pair[0].failure_rate >= TYPICAL_FAILURE_RATE)
        without, opened = next(typical, failing[-1])
        yield (
            f"With the provider down {without.failure_rate:.0%} of the time (mean outage "
            f"{spec.outage_seconds:g} s), a breaker changes the mean latency from "
            f"{without.mean:.0f} ms to {opened.mean:.0f} ms, and {outcomes.measure} by "
            f"{opened.quality - without.quality:+.4f}. It reranks {opened.reranked:.1%} of the "
            f"queries instead of {without.reranked:.1%}."
        )
    bounds = [(opened.high, without.low) for without, opened in pairs]
    if any(high is not None and low is not None and high < low for high, low in bounds):
        rules = settings.breaker
        yield (
            "Without a second provider, the breaker loses scores. A call that misses the deadline "
            f"counts as a failure, {rules.failures} failures in a row open the breaker, and it "
            f"stays open for {rules.open_seconds:g} s. A longer deadline or a shorter open_seconds "
            "reduces the loss."
        )
    if outcomes.second is None:
        yield "No second provider was simulated: name its stored list with --fallback-list."
    elif all(_is_equal(pair[0], by_setting[pair[0].failure_rate, False, True]) for pair in pairs):
        yield (
            "Without a breaker, the second provider changes nothing: a call that timed out is not "
            "passed on (on_timeout: fused)."
        )


def _is_equal(first: SimulationPoint, other: SimulationPoint) -> bool:
    differences = (first.quality - other.quality, first.mean - other.mean)
    return max(map(abs, differences)) <= ROUNDING
