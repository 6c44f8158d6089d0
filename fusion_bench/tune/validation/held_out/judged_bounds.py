"""How much of a system's lists is judged on the held-out queries, and what the rest could make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fusion_bench.data.ordering import BoolArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.evaluation.completions.query_bounds import QueryBounds
from fusion_bench.evaluation.ranking.fitting import fit_system
from fusion_bench.evaluation.report_records.results.system import CompletionBounds
from fusion_bench.evaluation.trials.trial_bounds import find_fitted_bounds
from fusion_bench.experiment.system import System
from fusion_bench.tune.space.objective import TuningObjective


@dataclass(frozen=True, eq=False)
class JudgedBounds:
    """The bounds of systems, over the trials of their lists.

    Attributes:
        objective: What was tuned, on all Q queries.
        qrels: The judgments.
        held_out: Shape (Q,): the held-out queries.
    """

    objective: TuningObjective
    qrels: Qrels
    held_out: BoolArray

    def of_system(self, system: System) -> QueryBounds | None:
        """On the held-out queries; None where their judgments are complete."""
        objective = self.objective
        if bool(objective.runs.judged.all()):  # nothing needs to be ranked
            return None
        spaces = objective.spaces
        fitted = (
            (fit_system(system, runs, spaces), runs.subset(self.held_out))
            for runs in (objective.runs, *objective.later_trials)
        )
        measures = [objective.measure]
        (bounds,) = find_fitted_bounds(fitted, measures, spaces=spaces, qrels=self.qrels)
        return bounds

    def of_systems(self, systems: Mapping[str, System]) -> dict[str, QueryBounds]:
        """By name; without those whose judgments are complete."""
        known = {name: self.of_system(system) for name, system in systems.items()}
        return {name: bounds for name, bounds in known.items() if bounds is not None}

    def of_queries(
        self, bounds: Mapping[str, QueryBounds], mask: BoolArray
    ) -> dict[str, CompletionBounds]:
        """The means over some of the held-out queries.

        Args:
            bounds: By system, on the held-out queries.
            mask: Shape (Q,): some of them.
        """
        rows = mask[self.held_out]
        return {name: each.select_queries(rows).record for name, each in bounds.items()}
