"""What unjudged documents could change in held-out gains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fusion_bench.data.ordering import IntArray
from fusion_bench.evaluation.trials.mean_unjudged import mean_unjudged
from fusion_bench.evaluation.unjudged.judgment_kind import judgment_kind
from fusion_bench.evaluation.unjudged.unjudged_difference import (
    UnjudgedDifference,
    UnjudgedEvidence,
    combine_evidence,
    compare_unjudged,
)
from fusion_bench.evaluation.unjudged.unjudged_values import measure_unjudged
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.measures.bounds import is_bounded
from fusion_bench.report.tuning_records.trials import Gain, TuningVerdict
from fusion_bench.stats.unjudged_rule import Direction, JudgmentKind
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
    def _kind(self) -> JudgmentKind:
        rows = np.flatnonzero(self.split.held_out)
        return judgment_kind(self.dataset, [self.objective.runs.queries[q] for q in rows])

    def compare(self, tuned: System, default: System) -> UnjudgedDifference | None:
        """The held-out difference tuned − default; None with complete judgments."""
        codes = np.zeros(len(self.objective.runs.queries), dtype=np.int64)
        return self.compare_by_query([tuned], codes, default)

    def compare_by_query(
        self, tuned: Sequence[System], codes: IntArray, default: System
    ) -> UnjudgedDifference | None:
        """The same with several tuned systems.

        Args:
            tuned: The systems.
            codes: Shape (Q,): the number of the system that each query is evaluated with.
            default: The system to compare with.
        """
        if self._kind == "complete":
            return None
        held_out = self.split.held_out
        systems = [*tuned, default]
        known: dict[str, UnjudgedEvidence] = {}
        for system in systems:
            key = repr(system.resolved_config)
            known[key] = known[key] if key in known else self._evidence(system)
        *parts, baseline = (known[repr(system.resolved_config)] for system in systems)
        return compare_unjudged(
            combine_evidence(parts, codes).select_queries(held_out),
            baseline.select_queries(held_out),
            groups=self.objective.group_codes[held_out],
            alpha=self.alpha,
            kind=self._kind,
            is_bounded=is_bounded(self.objective.measure.name),
        )

    def _evidence(self, system: System) -> UnjudgedEvidence:
        """Of all queries."""
        objective = self.objective
        trials = [
            measure_unjudged(
                system,
                runs,
                [objective.measure],
                spaces=objective.spaces,
                qrels=self.dataset.qrels,
            )
            for runs in (objective.runs, *objective.later_trials)
        ]
        values = trials[0] if len(trials) == 1 else mean_unjudged(trials)
        return UnjudgedEvidence.of_measure(values)


def shown_direction(verdict: TuningVerdict, gain: Gain) -> Direction | None:
    """What a verdict claims of tuned − default; None where it claims no direction."""
    if verdict in {"ship", "groups decide"} or (
        verdict == "keep" and gain.low is not None and gain.low > 0
    ):
        return 1
    return -1 if verdict == "worse" else None
