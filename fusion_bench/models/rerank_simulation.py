"""A stored rerank list replayed under failures, latency, deadlines, a circuit breaker.

A discrete-event simulation on its own clock, with the circuit breaker of the live pipeline. Each
query ends with the first provider's list, the second provider's, or the fused order. The measure of
these three lists is an input.
"""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, count, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import UnknownNameError
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.dataset_config import read_spec
from fusion_bench.io.outputs import write_files
from fusion_bench.measures import parse_measure
from fusion_bench.measures._base import is_bounded
from fusion_bench.methods.blend import RerankBlend
from fusion_bench.methods.blend.formulas import NoBlend, Replace
from fusion_bench.models import rerank_config
from fusion_bench.models.call_limits import CircuitBreaker
from fusion_bench.models.candidates import find_system
from fusion_bench.models.options import RerankOptions
from fusion_bench.models.rerank_run import safe_file_name
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.util.files import require_folder

#: What a query may end with: rows of :attr:`Quality.values`.
FIRST, SECOND, FUSED = 0, 1, 2


@dataclass(frozen=True)
class SimulationInput:
    """The measure of each list that a query may end with.

    Attributes:
        measure: Its name.
        values: Shape (3, Q): reranked by the first provider, by the second, fused order.
        first: The first provider's list and its blend, in words.
        second: Name of the second provider's list; None = there is none.
    """

    measure: str
    values: FloatArray
    first: str = "the first provider's list"
    second: str | None = "the second provider's list"


@dataclass(frozen=True)
class SimulationPoint:
    """One setting at one failure rate.

    Attributes:
        failure_rate: Share of the time in which the first provider is down.
        breaker: Whether there is a circuit breaker.
        fallback: Whether there is a second provider.
        deadline_ms: The deadline; None = only ``timeout_ms`` of the simulation.
        quality: Mean of the measure.
        low: Lower end of its 95 % interval over the repeats; None = one repeat.
        high: Upper end.
        mean: Mean latency of the reranking, in milliseconds.
        p50: Median latency, averaged over the repeats.
        p95: 95th percentile of the latency, averaged over the repeats.
        reranked: Share of the queries that a provider scored.
    """

    failure_rate: float
    breaker: bool
    fallback: bool
    deadline_ms: float | None
    quality: float
    low: float | None
    high: float | None
    mean: float
    p50: float
    p95: float
    reranked: float


@dataclass(frozen=True)
class SimulationResult:
    """All points of a simulation, and its findings.

    Attributes:
        measure: The measure.
        first: The first provider's list and its blend, in words.
        second: Name of the second provider's list; None = there is none.
        reranked: Mean of the measure when the first provider always answers.
        fused: Mean of the fused order.
        by_failure: Each failure rate, with and without a breaker and a second provider.
        by_deadline: Each deadline without failures, with a breaker and the second provider.
        answer: What the deadline costs and saves.
        notes: What the breaker and the second provider change.
    """

    measure: str
    first: str
    second: str | None
    reranked: float
    fused: float
    by_failure: tuple[SimulationPoint, ...]
    by_deadline: tuple[SimulationPoint, ...]
    answer: str
    notes: tuple[str, ...]


def _write_simulation(result: SimulationResult, folder: Path, title: str) -> list[Path]:
    """Write ``simulation.json`` and ``simulation.png``.

    Returns:
        The files.

    Raises:
        FusionBenchError: The folder cannot be written to.
    """
    from fusion_bench.report.plots import render_png
    from fusion_bench.report.plots.studies import draw_degradation

    data = asdict(result)
    picture = render_png(draw_degradation(data, f"Degradation of {title}"))
    texts = {"simulation.json": f"{json.dumps(data, indent=1)}\n"}
    return write_files(folder, texts, {"simulation.png": picture})


def measure_outcomes(
    path: Path,
    system: System,
    measure: str,
    *,
    reranker: str | None = None,
    fallback: str | None = None,
) -> SimulationInput:
    """Evaluate a system with its rerank list, with the fallback's, and without any.

    Values are means over the repeats of the lists.

    Args:
        path: The dataset's ``dataset.yaml``.
        system: With a blend; without one the rerank list replaces the fused order.
        measure: Its name.
        reranker: The list of the first provider; the blend's own, or the only one, by default.
        fallback: The list of the second provider; None = there is none.

    Raises:
        UnknownNameError: The dataset has no such list.
    """
    spec, source = read_spec(path)
    configured = system.blend.reranker_name
    first = reranker or configured or next(iter(spec.rerank), "")
    lists = (first, fallback or first)
    for name in lists:
        if name not in spec.rerank:
            raise UnknownNameError("rerank list", name, spec.rerank, where=spec.name)
    dataset = load_dataset(path, runs=system.base_runs, rerankers=dict.fromkeys(lists))
    # A document that the list does not score ranks below.
    template = Replace(reranker=first, missing="below") if configured is None else system.blend
    blends = [template.model_copy(update={"reranker": name}) for name in lists]
    systems = [system.model_copy(update={"blend": blend}) for blend in (*blends, NoBlend())]
    parsed = parse_measure(measure, binary_relevance=spec.binary_relevance, where=str(source.path))
    runs = dataset.align_repeats(system.base_runs).common_repeats()
    scores = evaluate_systems(systems, runs, [parsed])
    origin = "the system has no blend" if configured is None else "the system's blend"
    depth = template.depth if isinstance(template, RerankBlend) else 0
    label = f"reranker {first}, {template.method} over the first {depth} ({origin})"
    if runs.later:
        label += f", mean over {len(runs.repeats)} trials"
    values = np.stack([score.values[0] for score in scores])
    return SimulationInput(parsed.name, values, label, fallback)


#: The breaker is described at the first failure rate from here on.
TYPICAL_FAILURE_RATE = 0.1
#: Differences of means up to this are rounding.
ROUNDING = 1e-9


def _describe_deadline(
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


def _describe_breaker(
    outcomes: SimulationInput,
    points: Sequence[SimulationPoint],
    spec: rerank_config.SimulationSettings,
    settings: rerank_config.RerankSettings,
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


#: Standard normal quantile of 95 %.
Z95 = 1.6448536269514722
#: A breaker that never opens.
NEVER = rerank_config.BreakerRules(failures=10**9)


def run_simulation(
    quality: SimulationInput,
    spec: rerank_config.SimulationSettings,
    settings: rerank_config.RerankSettings,
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
        answer=_describe_deadline(quality.measure, points[-1], by_deadline[-1], reranked - fused),
        notes=tuple(_describe_breaker(quality, by_failure, spec, settings)),
    )


class _TrafficSample:
    """Random numbers of one repeat, shared by all points.

    Attributes:
        arrives: Shape (n,): arrival times in seconds.
        took: Shape (2, n): latency of the first and the second provider in milliseconds.
        luck: Shape (2, n): uniform, for independent failures.
        outages: Seed of the outages.
    """

    def __init__(self, spec: rerank_config.SimulationSettings, repeat: int) -> None:
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
    spec: rerank_config.SimulationSettings
    settings: rerank_config.RerankSettings
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


def simulate_list(
    dataset: Path, options: RerankOptions, on_progress: Callable[[int, int], None]
) -> tuple[SimulationResult, list[Path]]:
    """Replay a stored list under failures and deadlines, and write what comes of it.

    Args:
        dataset: The ``dataset.yaml``.
        options: What is replayed.
        on_progress: Called with the points done and the points in all.

    Returns:
        The result, and the files: ``simulation.json`` and ``simulation.png``.

    Raises:
        ConfigError: An input breaks a rule.
        FusionBenchError: The files cannot be written.
    """
    title = dataset.parent.name
    name = f"simulate-{safe_file_name(f'{title}-{options.system}')}"
    folder = require_folder(options.out or Path("reports/rerank") / name)
    config = rerank_config.read_rerank_config(options.config)
    spec = config.override_simulation(options.overrides)
    outcomes = measure_outcomes(
        dataset,
        find_system(options.system, dataset, options.experiment),
        options.measure,
        reranker=options.reranker,
        fallback=options.fallback_list,
    )
    result = run_simulation(outcomes, spec, config.simulated_settings(), on_progress)
    return result, _write_simulation(result, folder, f"{options.system} on {title}")
