"""What a deadline, a breaker and a second provider are worth, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusion_bench.rerank.settings import RerankSettings
from fusion_bench.rerank.simulation.fault_model import SimulationSettings
from fusion_bench.rerank.simulation.simulation_result import SimulationInput, SimulationPoint

__all__ = ["describe_breaker", "describe_deadline"]

#: A breaker is spoken of at the first failure rate from here on.
SPOKEN_OF = 0.1
#: Smaller differences of means are none.
NOISE = 1e-9


def describe_deadline(
    measure: str, chosen: SimulationPoint, free: SimulationPoint, gain: float
) -> str:
    """What the deadline costs and buys.

    Args:
        measure: Its name.
        chosen: With the deadline, nothing failing.
        free: Without any.
        gain: Of reranking over the fused order.
    """
    if chosen.deadline_ms is None:
        return "There is no deadline: nothing to weigh."
    cost = free.quality - chosen.quality
    share = f", {cost / gain:.0%} of what reranking wins" if gain > 0 else ""
    judged = "" if gain > 0 else " Reranking wins nothing here: the cheapest deadline is not to."
    return (
        f"With nothing failing, a deadline of {chosen.deadline_ms:g} ms costs {cost:.4f} "
        f"{measure}{share}, and brings the 95th percentile of the reranking from {free.p95:.0f} "
        f"ms to {chosen.p95:.0f} ms; "
        f"{1 - chosen.reranked:.1%} of the queries keep the fused order.{judged}"
    )


def describe_breaker(
    quality: SimulationInput,
    points: Sequence[SimulationPoint],
    spec: SimulationSettings,
    settings: RerankSettings,
) -> Iterator[str]:
    """What the breaker is worth, what a second provider is, and why either may do nothing.

    Args:
        quality: What was replayed.
        points: By failure rate.
        spec: Traffic, failures and latencies.
        settings: Of breaker and timeouts.
    """
    pairs = {p.failure_rate: (p, q) for p, q in _breaker_pairs(points, fallback=False)}
    rates = [rate for rate in pairs if rate > 0]
    if rates:
        rate = min((r for r in rates if r >= SPOKEN_OF), default=max(rates))
        yield _breaker_sentence(quality.measure, *pairs[rate], spec)
    if any(_is_worse(one, other) for one, other in pairs.values()):
        yield _late_calls_sentence(pairs.get(0.0), settings)
    if quality.second is None:
        yield (
            "A second provider was not simulated: name its list with --fallback-list (the first "
            "list itself for one that is just as good)."
        )
    elif not any(_is_different(*pair) for pair in _fallback_pairs(points)):
        yield (
            "Without a breaker the second provider changes nothing here: a call that timed out "
            "is not passed on (on_timeout: fused), and only a breaker sends queries past the first."
        )


def _breaker_pairs(
    points: Sequence[SimulationPoint], *, fallback: bool
) -> Iterator[tuple[SimulationPoint, SimulationPoint]]:
    """Without and with a breaker, at each failure rate."""
    selected = [p for p in points if p.fallback == fallback]
    return zip(
        [p for p in selected if not p.breaker], [p for p in selected if p.breaker], strict=True
    )


def _fallback_pairs(
    points: Sequence[SimulationPoint],
) -> Iterator[tuple[SimulationPoint, SimulationPoint]]:
    """Without and with a second provider, without a breaker, at each failure rate."""
    selected = [p for p in points if not p.breaker]
    return zip(
        [p for p in selected if not p.fallback], [p for p in selected if p.fallback], strict=True
    )


def _is_different(first: SimulationPoint, other: SimulationPoint) -> bool:
    return abs(first.quality - other.quality) > NOISE or abs(first.mean - other.mean) > NOISE


def _is_worse(first: SimulationPoint, other: SimulationPoint) -> bool:
    """Whether the second is worse by more than both intervals."""
    return other.high is not None and first.low is not None and other.high < first.low


def _breaker_sentence(
    measure: str, without: SimulationPoint, opened: SimulationPoint, spec: SimulationSettings
) -> str:
    change = opened.quality - without.quality
    moved = f"{'costs' if change < 0 else 'wins'} {abs(change):.4f} {measure}"
    outages = f", in outages of {spec.outage_seconds:g} s," if spec.outage_seconds else ""
    return (
        f"With the provider down {without.failure_rate:.0%} of the time{outages} a breaker brings "
        f"the mean latency of the reranking from {without.mean:.0f} ms to {opened.mean:.0f} ms and "
        f"{moved}; {opened.reranked:.1%} of the queries are reranked instead of "
        f"{without.reranked:.1%}."
    )


def _late_calls_sentence(
    healthy: tuple[SimulationPoint, SimulationPoint] | None, settings: RerankSettings
) -> str:
    late = "" if healthy is None else f" ({1 - healthy[0].reranked:.1%} of them while it is up)"
    rules = settings.breaker
    return (
        "Without a second provider a breaker can only take scores away: it stays open for "
        f"{rules.open_seconds:g} s though the outage is over, and a call that misses the deadline"
        f"{late} counts as a failure, here as in the live pipeline, so that {rules.failures} late "
        f"calls in a row open it and one late call of {rules.half_open_calls} keeps it open. It "
        "buys time, not quality: a wider deadline or a shorter open_seconds makes it cheaper."
    )
