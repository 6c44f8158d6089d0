"""The look that a tuning run takes at its held-out queries."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from fusion_bench.report.tuning_records import look as record
from fusion_bench.report.tuning_records.tuning_report import TuningReport
from fusion_bench.tune.looks.digests import judgment_digests, numbers_digest, query_digests
from fusion_bench.tune.looks.ledger import Look, LookPlan
from fusion_bench.tune.looks.look_counter import LookCounter
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.all_queries.cross_fitting import CrossFit
from fusion_bench.tune.validation.class_tuning import ClassTuning
from fusion_bench.tune.validation.held_out.evaluation import HeldOutEvaluation
from fusion_bench.tune.validation.splits import QuerySplit


@dataclass(frozen=True, eq=False)
class HeldOutLook:
    """An opened look, until its verdict is known.

    Attributes:
        counter: Counts the looks of the dataset.
        look: With its number and level.
        record: For the report.
    """

    counter: LookCounter
    look: Look
    record: record.Look

    @property
    def level(self) -> float:
        """The one-sided level of the verdicts."""
        return self.look.level

    @property
    def next_factor(self) -> float:
        """Critical value of the next look ÷ that of this one (normal approximation)."""
        following, normal = self.record.next_level, NormalDist()
        if following is None or not 0 < self.level < 0.5:
            return 1.0
        return normal.inv_cdf(following) / normal.inv_cdf(self.level)

    def close(self, report: TuningReport) -> TuningReport:
        """Write the verdict into the ledger; returns the report with the look."""
        self.counter.close_look(self.look, report.verdict)
        lost = self.counter.describe_lost(report.dataset)
        return report.model_copy(update={"look": self.record.model_copy(update={"lost": lost})})


def open_held_out_look(
    counter: LookCounter,
    evaluation: HeldOutEvaluation,
    chosen: Trial,
    per_type: ClassTuning | None,
    *,
    fit: CrossFit | None,
    experiment: str,
    date: str,
    system: str | None = None,
) -> HeldOutLook:
    """Count the look that the verdicts of a run are about to take.

    Args:
        counter: Counts the looks of the dataset.
        evaluation: The objective, its split and the rules.
        chosen: The chosen trial.
        per_type: Parameters by class; None = none were tuned.
        fit: What cross-fitting evaluates instead; None = the chosen trial itself.
        experiment: Name of the experiment.
        date: When, ISO 8601.
        system: What is tested against the default; None = the default with other numbers.

    Raises:
        ConfigError: A plan of looks does not allow it.
        FusionBenchError: The ledger is malformed, or cannot be written.
    """
    objective, split, crag = evaluation.objective, evaluation.split, evaluation.tuning.crag
    held_out = held_out_queries(objective, split)
    default, tuned = objective.evaluate_params([objective.default_params, chosen.params])
    tuned = tuned if fit is None else default + fit.values
    numbers = {
        "params": dict(chosen.params),
        "by_class": None if per_type is None else {k: dict(v) for k, v in per_type.params.items()},
        "crag": None if crag is None else crag.model_dump(mode="json"),
    }
    mask, measure = split.held_out, objective.measure.name
    look = counter.open_look(
        Look(
            experiment=experiment,
            system=system or objective.system.name,
            measure=measure,
            date=date,
            numbers=numbers_digest(measure, numbers, held_out, default[mask], tuned[mask]),
            number=1,
            level=counter.alpha / 2,
            plan=_make_plan(counter, objective, split, chosen),
            queries=query_digests(held_out),
            judgments=judgment_digests(objective.qrels, held_out),
        )
    )
    return HeldOutLook(counter, look, counter.describe(look))


def held_out_queries(objective: TuningObjective, split: QuerySplit) -> list[str]:
    """Ids of the held-out queries."""
    return [objective.runs.queries[q] for q in np.flatnonzero(split.held_out)]


def _make_plan(
    counter: LookCounter, objective: TuningObjective, split: QuerySplit, chosen: Trial
) -> LookPlan | None:
    if counter.max_queries is None:
        return None
    tuned_on = [objective.runs.queries[q] for q in np.flatnonzero(split.tune)]
    return LookPlan(
        max_queries=counter.max_queries,
        parameters=dict(chosen.params),
        tuned_on=query_digests(tuned_on),
    )
