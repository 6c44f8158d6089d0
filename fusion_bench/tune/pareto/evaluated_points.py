"""Everything that was evaluated for a front: the value and the cost of each parameter set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fusion_bench.config.parameters import Params
from fusion_bench.experiment.system import System
from fusion_bench.tune.pareto.rerank_cost import RerankerCost, SystemCost, system_cost
from fusion_bench.tune.pareto.rerank_depths import max_rerank_depth
from fusion_bench.tune.search.trial_log import TrialLog
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
        self.objective = objective
        self.points: list[EvaluatedPoint] = []
        self._costs, self._on_progress = costs, on_progress
        self._log = TrialLog() if log is None else log

    @property
    def evaluations(self) -> int:
        """How many parameter sets were evaluated, or looked up."""
        return len(self._log.trials)

    def add_point(self, params: Params, value: float) -> EvaluatedPoint:
        """Add a parameter set whose value is known."""
        system = self.objective.build_system(params)
        cost = system_cost(system, self.objective.runs, self._costs, self.objective.spaces)
        self.points.append(EvaluatedPoint(params, system, value, cost))
        return self.points[-1]

    def evaluate_params(self, trials: Sequence[Params]) -> list[EvaluatedPoint | None]:
        """The point of each parameter set; None = it cannot be computed."""
        points: list[EvaluatedPoint | None] = []
        for start in range(0, len(trials), BATCH):
            batch = trials[start : start + BATCH]
            done = self._log.evaluate_params(self.objective, batch, "sampler")
            points += [None if t.is_failed else self.add_point(t.params, t.value) for t in done]
            self._on_progress(self.evaluations)
        return points
