"""Everything that was evaluated for a front: the value and the cost of each parameter set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fusion_bench.config.parameters import Params
from fusion_bench.experiment.system import System
from fusion_bench.tune.pareto.rerank_cost import RerankerCost, SystemCost, system_cost
from fusion_bench.tune.pareto.rerank_depths import max_rerank_depth
from fusion_bench.tune.search.search import mean_values
from fusion_bench.tune.search.trial_log import Trial, TrialLog
from fusion_bench.tune.space.objective import TuningObjective

#: Parameter sets evaluated, and written down, together.
BATCH = 16


@dataclass(frozen=True)
class EvaluatedPoint:
    """One parameter set.

    Attributes:
        params: Its parameters, its depth among them.
        system: The system with them.
        value: Mean of the measure over the tuning queries.
        cost: Of its reranking.
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
    """Parameter sets on the tuning queries, each evaluated once.

    Args:
        objective: On the tuning queries.
        costs: Of each reranker.
        log: Where values are written, and looked up when the work was interrupted.
        on_progress: Called with how many are done.
    """

    def __init__(
        self,
        objective: TuningObjective,
        costs: Mapping[str, RerankerCost],
        *,
        log: TrialLog | None = None,
        on_progress: Callable[[int], None] = lambda _done: None,
    ) -> None:
        self.points: list[EvaluatedPoint] = []
        self.evaluations = 0
        self._objective, self._costs = objective, costs
        self._log, self._on_progress = log, on_progress

    def add_point(self, params: Params, value: float) -> EvaluatedPoint:
        """Add a parameter set whose value is known."""
        system = self._objective.build_system(params)
        cost = system_cost(system, self._objective.runs, self._costs)
        self.points.append(EvaluatedPoint(params, system, value, cost))
        return self.points[-1]

    def evaluate_params(self, trials: Sequence[Params]) -> list[EvaluatedPoint | None]:
        """The point of each parameter set; None = it cannot be computed."""
        points: list[EvaluatedPoint | None] = []
        for start in range(0, len(trials), BATCH):
            batch = trials[start : start + BATCH]
            for params, value in zip(batch, self._mean_values(batch), strict=True):
                points.append(self.add_point(params, value) if np.isfinite(value) else None)
            self._on_progress(self.evaluations)
        return points

    def _mean_values(self, batch: Sequence[Params]) -> list[float]:
        values = mean_values(self._objective, batch, self._log)
        numbered = enumerate(zip(batch, values, strict=True), self.evaluations)
        if self._log is not None:
            self._log.add_trials(
                [Trial(n, dict(p), value, "sampler") for n, (p, value) in numbered]
            )
        self.evaluations += len(batch)
        return values
