"""What a simulation measures: shares of runs, and means, with their Monte Carlo errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from fusion_bench.stats.intervals import clopper_pearson

Side: TypeAlias = Literal["at most", "at least", "none"]


@dataclass(frozen=True)
class Promise:
    """How often an event was seen in independent runs, and how often it may or must be.

    Attributes:
        design: The data and sizes that were simulated.
        event: What was counted.
        count: Runs with the event.
        runs: All runs, at least 1.
        limit: Promised share; None = the share is reported only.
        side: Whether the share may be ``at most`` or must be ``at least`` the limit; ``none``
            without a limit.
    """

    design: str
    event: str
    count: int
    runs: int
    limit: float | None = None
    side: Side = "none"

    def __post_init__(self) -> None:
        if not 0 <= self.count <= self.runs or self.runs < 1:
            raise ValueError(f"{self.design}: {self.count} of {self.runs} runs")
        if (self.limit is None) != (self.side == "none"):
            raise ValueError(f"{self.design}: a limit and its side belong together")

    @classmethod
    def from_range(
        cls, design: str, event: str, count: int, runs: int, low: float, high: float
    ) -> tuple[Promise, Promise]:
        """The two promises of a share between ``low`` and ``high``, such as a coverage."""
        return (
            cls(design, event, count, runs, low, "at least"),
            cls(design, event, count, runs, high, "at most"),
        )

    @property
    def share(self) -> float:
        """Runs with the event ÷ all runs."""
        return self.count / self.runs

    @property
    def interval(self) -> tuple[float, float]:
        """95 % Clopper–Pearson interval of the probability of the event."""
        return clopper_pearson(self.count, self.runs)

    @property
    def holds(self) -> bool | None:
        """Whether the interval includes the limit or lies on its good side; None without limit."""
        if self.limit is None:
            return None
        low, high = self.interval
        return low <= self.limit if self.side == "at most" else high >= self.limit


@dataclass(frozen=True)
class Estimate:
    """A mean over runs, which promises nothing.

    Attributes:
        design: The data and sizes that were simulated.
        quantity: What was averaged, with its unit.
        value: Mean over runs.
        standard_error: Monte Carlo standard error of that mean.
    """

    design: str
    quantity: str
    value: float
    standard_error: float
