"""All that was searched before the held-out queries are looked at."""

from __future__ import annotations

from dataclasses import dataclass

from fusion_bench.report.tuning_records.pareto_front import ParetoFront
from fusion_bench.tune.search.search import SearchResult
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.validation.class_tuning import ClassTuning
from fusion_bench.tune.validation.cross_validation import CrossValidation


@dataclass(frozen=True, eq=False)
class SearchOutcome:
    """The search, the choice, and what was searched beside it.

    Attributes:
        result: The search on all tuning queries.
        chosen: Of its trials.
        cross: The nested cross-validation; None = not asked for.
        per_type: Parameters by query type or intent; None = not asked for.
        front: Quality against rerank effort; None = not asked for.
    """

    result: SearchResult
    chosen: Trial
    cross: CrossValidation | None = None
    per_type: ClassTuning | None = None
    front: ParetoFront | None = None

    @property
    def tests_a_change(self) -> bool:
        """Whether the held-out queries decide on more than the default."""
        return self.chosen is not self.result.default_trial or self.per_type is not None
