"""Everything that was evaluated for a front: what each setting is worth, and what it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fusion_bench.config.parameters import Params
from fusion_bench.experiment.system import System
from fusion_bench.tune.pareto.rerank_cost import Taken, Toll, taken
from fusion_bench.tune.pareto.rerank_depths import deepest
from fusion_bench.tune.search.trial_log import Log, Trial
from fusion_bench.tune.space.objective import Problem

__all__ = ["Archive", "Entry"]

#: Settings evaluated, and written down, together.
BATCH = 16


@dataclass(frozen=True)
class Entry:
    """One setting.

    Attributes:
        params: Its numbers, its depth among them.
        system: The system with them.
        value: Mean of the measure over the tuning queries.
        taken: What it takes.
    """

    params: Params
    system: System
    value: float
    taken: Taken

    @property
    def place(self) -> tuple[str, int]:
        """Its reranker and its depth."""
        return " + ".join(sorted(self.taken.counts)), deepest(self.system)


class Archive:
    """Settings on the tuning queries, each evaluated once.

    Args:
        problem: On the tuning queries.
        known: What each reranker takes.
        log: Where values are written, and looked up when the work was cut short.
        told: Called with how many are done.
    """

    def __init__(
        self,
        problem: Problem,
        known: Mapping[str, Toll],
        *,
        log: Log | None = None,
        told: Callable[[int], None] = lambda _done: None,
    ) -> None:
        self.entries: list[Entry] = []
        self.evaluations = 0
        self._problem, self._known, self._log, self._told = problem, known, log, told

    def add(self, params: Params, value: float) -> None:
        """Take note of a setting whose value is known."""
        system = self._problem.build(params)
        found = taken(system, self._problem.runs, self._known)
        self.entries.append(Entry(params, system, value, found))

    def evaluate(self, asked: Sequence[Params]) -> list[Entry | None]:
        """The entry of each setting; None = it cannot be computed."""
        found: list[Entry | None] = []
        for start in range(0, len(asked), BATCH):
            batch = asked[start : start + BATCH]
            for params, value in zip(batch, self._values(batch), strict=True):
                if np.isfinite(value):
                    self.add(params, value)
                found.append(self.entries[-1] if np.isfinite(value) else None)
            self._told(self.evaluations)
        return found

    def _values(self, batch: Sequence[Params]) -> list[float]:
        known = [None if self._log is None else self._log.value(params) for params in batch]
        new = [params for params, value in zip(batch, known, strict=True) if value is None]
        means = iter(self._problem.values(new).mean(axis=1).tolist() if new else ())
        values = [next(means) if value is None else value for value in known]
        if self._log is not None:
            pairs = zip(batch, values, strict=True)
            first = self.evaluations
            self._log.add(
                [Trial(first + i, dict(p), v, "sampler") for i, (p, v) in enumerate(pairs)]
            )
        self.evaluations += len(batch)
        return values
