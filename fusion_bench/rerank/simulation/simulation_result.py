"""Input and result of a simulation."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fusion_bench.data.ordering import FloatArray
from fusion_bench.util.atomic_files import write_atomic

__all__ = [
    "FIRST",
    "FUSED",
    "SECOND",
    "SimulationInput",
    "SimulationPoint",
    "SimulationResult",
    "write_simulation",
]

#: What a query may end with: rows of :attr:`Quality.values`.
FIRST, SECOND, FUSED = 0, 1, 2


@dataclass(frozen=True)
class SimulationInput:
    """The measure of each list a query may end with.

    Attributes:
        measure: Its name.
        values: Shape (3, Q): reranked by the first provider, by the second, fused order.
        first: What the first provider's scores and their blend are, in words.
        second: The second provider's list; None = there is none, and nothing is said of fallbacks.
    """

    measure: str
    values: FloatArray
    first: str = "the first provider's list"
    second: str | None = "the second provider's list"


@dataclass(frozen=True)
class SimulationPoint:
    """One setting at one failure rate.

    Attributes:
        failure_rate: Share of the time that the first provider is down.
        breaker: Whether there is a circuit breaker.
        fallback: Whether there is a second provider.
        deadline_ms: The deadline; None = none but ``timeout_ms`` of the simulation.
        quality: Mean of the measure.
        low: Lower end of its interval over the repeats of the simulation; None = one repeat.
        high: Upper end.
        mean: Mean of the reranking's latency, in milliseconds.
        p50: Its median, as the mean over the repeats.
        p95: Its 95th percentile, likewise.
        reranked: Share of the queries that some provider scored.
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
    """Everything that was simulated.

    Attributes:
        measure: The measure.
        first: What was replayed, in words.
        second: The second provider's list; None = there is none.
        reranked: Its mean when the first provider always answers.
        fused: Its mean when nobody does.
        by_failure: Each failure rate with and without breaker, and fallback where there is a second
            list, with the deadline.
        by_deadline: Deadlines, with all that there is, at no failures.
        answer: What the deadline costs and buys, in a sentence.
        notes: What the breaker is worth, and how to read the rest.
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

    def as_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)


def write_simulation(result: SimulationResult, folder: Path, title: str) -> list[Path]:
    """Write ``simulation.json`` and ``simulation.png``.

    Returns:
        The files.

    Raises:
        FusionBenchError: The folder cannot be written to.
    """
    from fusion_bench.report.plots import render_png
    from fusion_bench.report.plots.degradation import draw_degradation

    data = result.as_json()
    picture = render_png(draw_degradation(data, f"Degradation of {title}"))
    return [
        write_atomic(folder / "simulation.json", f"{json.dumps(data, indent=1)}\n".encode()),
        write_atomic(folder / "simulation.png", picture),
    ]
