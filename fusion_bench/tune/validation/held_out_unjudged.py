"""What unjudged documents could change in held-out gains."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fusion_bench.evaluation.unjudged.judgment_kind import judgment_kind
from fusion_bench.evaluation.unjudged.unjudged_difference import (
    UnjudgedDifference,
    UnjudgedEvidence,
    compare_unjudged,
)
from fusion_bench.evaluation.unjudged.unjudged_values import measure_unjudged
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.report.tuning_records.trials import Gain, TuningVerdict
from fusion_bench.stats.unjudged_rule import Direction
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.splits import QuerySplit


@dataclass(frozen=True)
class HeldOutUnjudged:
    """Compares two systems on the held-out queries.

    Attributes:
        objective: What was tuned, on all queries.
        split: Which queries are held out.
        dataset: Gives the judgments.
        alpha: 1 − coverage of the intervals.
    """

    objective: TuningObjective
    split: QuerySplit
    dataset: Dataset
    alpha: float

    @cached_property
    def _kind(self) -> str:
        rows = np.flatnonzero(self.split.held_out)
        return judgment_kind(self.dataset, [self.objective.runs.queries[q] for q in rows])

    def compare(self, tuned: System, default: System) -> UnjudgedDifference | None:
        """The held-out difference tuned − default; None with complete judgments."""
        if self._kind == "complete":
            return None
        return compare_unjudged(
            self._evidence(tuned),
            self._evidence(default),
            groups=self.objective.group_codes[self.split.held_out],
            alpha=self.alpha,
            is_sparse=self._kind == "sparse",
        )

    def _evidence(self, system: System) -> UnjudgedEvidence:
        """Of the held-out queries; gains at each rank are means over all queries."""
        objective = self.objective
        values = measure_unjudged(
            system,
            objective.runs,
            [objective.measure],
            spaces=objective.spaces,
            qrels=self.dataset.qrels,
        )
        return UnjudgedEvidence.of_measure(values).select_queries(self.split.held_out)


def shown_direction(verdict: TuningVerdict, gain: Gain) -> Direction | None:
    """What a verdict claims of tuned − default; None where it claims no direction."""
    if verdict == "ship" or (verdict == "keep" and gain.low is not None and gain.low > 0):
        return 1
    return -1 if verdict == "worse" else None
