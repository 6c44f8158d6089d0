"""The look that a tuning run takes at its held-out queries, first or later in a plan."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from fusion_bench.errors import ConfigError
from fusion_bench.report import tuning_records as record
from fusion_bench.report.tuning_records import TuningReport
from fusion_bench.tune.cross_fitting import CrossFit
from fusion_bench.tune.held_out import ClassTuning, HeldOutEvaluation
from fusion_bench.tune.ledger import (
    LedgerEntry,
    LookCounter,
    LookPlan,
    judgment_digests,
    numbers_digest,
    query_digests,
)
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.search import SearchResult
from fusion_bench.tune.splits import QuerySplit
from fusion_bench.tune.trial_log import Trial


def frozen_split(objective: TuningObjective, split: QuerySplit, plan: LookPlan) -> QuerySplit:
    """The split of a plan: all queries decide but those of the groups it was tuned on.

    Args:
        objective: What was tuned, on all queries.
        split: As the settings say today; queries in neither part take no part.
        plan: The plan.

    Raises:
        ConfigError: None of the queries that it was tuned on is left.
    """
    runs, tuned_on = objective.runs, set(plan.tuned_on)
    is_tuned = [query_digests([query])[0] in tuned_on for query in runs.queries]
    groups = {group for group, tuned in zip(runs.groups, is_tuned, strict=True) if tuned}
    tune = np.array([group in groups for group in runs.groups], dtype=bool)
    part = split.tune | split.held_out
    if not (tune & part).any():
        raise ConfigError(
            "tune.looks: none of the queries that the plan's numbers were tuned on is left: "
            "restore them, or start another ledger for other queries"
        )
    origin = "numbers frozen by the plan of looks; all queries but those they were tuned on decide"
    return QuerySplit(tune & part, part & ~tune, origin, split.split_seed)


def frozen_trials(
    objective: TuningObjective, split: QuerySplit, plan: LookPlan
) -> tuple[SearchResult, Trial]:
    """The default and the frozen numbers as the only trials, and the latter: nothing is searched.

    Raises:
        ConfigError: The frozen numbers do not fit today's search space.
    """
    known = {parameter.path for parameter in objective.parameters}
    unknown = sorted(set(plan.parameters) - known)
    if unknown:
        raise ConfigError(
            f"tune.looks: the plan froze {unknown[0]}, which is no parameter of "
            f"{objective.system.name} now: restore 'tune.parameters' and the system"
        )
    choices = [objective.default_params, plan.parameters]
    means = objective.subset_queries(split.tune).evaluate_params(choices).mean(axis=1).tolist()
    default, frozen = (dict(params) for params in choices)
    trial = Trial(1, frozen, means[1], "frozen")
    return SearchResult((Trial(0, default, means[0], "default"), trial)), trial


@dataclass(frozen=True, eq=False)
class HeldOutLook:
    """An opened look, until its verdict is known.

    Attributes:
        counter: Counts the looks of the dataset.
        look: With its number and level.
        record: For the report.
    """

    counter: LookCounter
    look: LedgerEntry
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
        LedgerEntry(
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
