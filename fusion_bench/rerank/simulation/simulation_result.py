"""Input and result of a simulation."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from fusion_bench.data.ordering import FloatArray

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


def write_simulation(result: SimulationResult, folder: Path, title: str) -> list[Path]:
    """Write ``simulation.json`` and ``simulation.png``.

    Returns:
        The files.

    Raises:
        FusionBenchError: The folder cannot be written to.
    """
    from fusion_bench.report.plots import render_png
    from fusion_bench.report.plots.degradation import draw_degradation
    from fusion_bench.report.write import write_files

    data = asdict(result)
    picture = render_png(draw_degradation(data, f"Degradation of {title}"))
    texts = {"simulation.json": f"{json.dumps(data, indent=1)}\n"}
    return write_files(folder, texts, {"simulation.png": picture})
