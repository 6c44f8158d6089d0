"""Everything that was evaluated for a front: what each setting is worth, and what it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fusion_bench.config.parameters import Params
from fusion_bench.experiment.system import System
from fusion_bench.tune.pareto.rerank_cost import RerankerCost, SystemCost, system_cost
from fusion_bench.tune.pareto.rerank_depths import max_rerank_depth
from fusion_bench.tune.search.trial_log import Trial, TrialLog
from fusion_bench.tune.space.objective import TuningObjective

__all__ = ["EvaluatedPoint", "EvaluatedPoints"]

#: Settings evaluated, and written down, together.
BATCH = 16


@dataclass(frozen=True)
class EvaluatedPoint:
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
    cost: SystemCost

    @property
    def reranker_and_depth(self) -> tuple[str, int]:
        """Its reranker and its depth."""
        return " + ".join(sorted(self.cost.counts)), max_rerank_depth(self.system)


class EvaluatedPoints:
    """Settings on the tuning queries, each evaluated once.

    Args:
        objective: On the tuning queries.
        known: What each reranker takes.
        log: Where values are written, and looked up when the work was cut short.
        told: Called with how many are done.
    """

    def __init__(
        self,
        objective: TuningObjective,
        known: Mapping[str, RerankerCost],
        *,
        log: TrialLog | None = None,
        on_progress: Callable[[int], None] = lambda _done: None,
    ) -> None:
        self.points: list[EvaluatedPoint] = []
        self.evaluations = 0
        self._objective, self._known, self._log, self._on_progress = (
            objective,
            known,
            log,
            on_progress,
        )

    def add_point(self, params: Params, value: float) -> None:
        """Take note of a setting whose value is known."""
        system = self._objective.build_system(params)
        found = system_cost(system, self._objective.runs, self._known)
        self.points.append(EvaluatedPoint(params, system, value, found))

    def evaluate_params(self, asked: Sequence[Params]) -> list[EvaluatedPoint | None]:
        """The entry of each setting; None = it cannot be computed."""
        found: list[EvaluatedPoint | None] = []
        for start in range(0, len(asked), BATCH):
            batch = asked[start : start + BATCH]
            for params, value in zip(batch, self._mean_values(batch), strict=True):
                if np.isfinite(value):
                    self.add_point(params, value)
                found.append(self.points[-1] if np.isfinite(value) else None)
            self._on_progress(self.evaluations)
        return found

    def _mean_values(self, batch: Sequence[Params]) -> list[float]:
        known = [None if self._log is None else self._log.find_value(params) for params in batch]
        new = [params for params, value in zip(batch, known, strict=True) if value is None]
        means = iter(self._objective.evaluate_params(new).mean(axis=1).tolist() if new else ())
        values = [next(means) if value is None else value for value in known]
        if self._log is not None:
            pairs = zip(batch, values, strict=True)
            first = self.evaluations
            self._log.add_trials(
                [Trial(first + i, dict(p), v, "sampler") for i, (p, v) in enumerate(pairs)]
            )
        self.evaluations += len(batch)
        return values
