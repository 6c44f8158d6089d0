"""The facts of the data that speak against held-out values, as eval measures them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fusion_bench.data.ordering import BoolArray
from fusion_bench.evaluation.assessment import assess_system
from fusion_bench.evaluation.dataset_checks.data_warnings import find_data_warnings
from fusion_bench.evaluation.dataset_checks.ignored_queries import (
    count_known_unjudged,
    warn_ignored,
)
from fusion_bench.evaluation.dataset_checks.judged_grades import (
    find_grade_warnings,
    list_grades,
)
from fusion_bench.evaluation.judge_checks.describe_judge import describe_judge
from fusion_bench.evaluation.judge_checks.judge_warnings import find_judge_warnings
from fusion_bench.evaluation.list_checks.list_infos import list_infos
from fusion_bench.evaluation.ranking.fitting import fit_system
from fusion_bench.evaluation.report_records.data_warning import DataWarning
from fusion_bench.evaluation.report_records.list_info import ListInfo
from fusion_bench.evaluation.report_records.results.system import CompletionBounds
from fusion_bench.evaluation.source_ties.find_source_ties import find_source_ties
from fusion_bench.evaluation.trials.first_trial import describe_first_trial, warn_first_trial
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.report.tuning_records.data_facts import DataFacts
from fusion_bench.tune.space.objective import TuningObjective


def measure_facts(
    objective: TuningObjective,
    tuned: System,
    dataset: Dataset,
    held_out: BoolArray,
    seed: int,
    of_first_trial: Sequence[str],
    bounds: Mapping[str, CompletionBounds],
) -> DataFacts:
    """Measure the default and the tuned system on the held-out queries, on the first trial.

    Args:
        objective: On all queries.
        tuned: The tuned system.
        dataset: With the lists that both use.
        held_out: Shape (Q,).
        seed: Of the random settlements of ties.
        of_first_trial: Names of what the run measures on the first trial.
        bounds: What unjudged documents could make of held-out means, by system.
    """
    runs, measures = objective.runs, [objective.measure]
    systems = {"the default": objective.system, "the tuned system": tuned}
    fitted = {name: fit_system(each, runs, objective.spaces) for name, each in systems.items()}
    part = runs.subset(held_out)
    spaces, qrels = objective.spaces, dataset.qrels
    assessed = {
        name: assess_system(system, part, measures, spaces=spaces, qrels=qrels)
        for name, system in fitted.items()
    }
    inside = find_source_ties(
        fitted,
        {name: each.values for name, each in assessed.items()},
        part,
        measures,
        ranked_by_column=dataset.ranked_by_column,
        spaces=spaces,
        qrels=qrels,
        seed=seed,
    )
    infos = _list_infos(objective, dataset)
    return DataFacts(
        runs=infos,
        warnings=(
            *_find_warnings(objective, tuned, dataset, infos, part.queries),
            *warn_first_trial(describe_first_trial(dataset, *of_first_trial)),
        ),
        judgments=dataset.spec.judgments,
        queries=len(part.queries),
        unjudged_shares={
            name: float(each.unjudged.share.mean()) for name, each in assessed.items()
        },
        tied={name: int(each.ties.affected[0]) for name, each in assessed.items()},
        source_tied={
            name: int(each.ties.affected[0])
            for name, each in inside.items()
            if objective.measure.name not in each.unknown
        },
        bounds=dict(bounds),
    )


def _list_infos(objective: TuningObjective, dataset: Dataset) -> tuple[ListInfo, ...]:
    """What was noticed about the lists of each trial that the objective reads here."""
    aligned = (objective.runs, *objective.later_trials)
    return tuple(list_infos([*zip(dataset.trials, aligned, strict=False)]))


def _find_warnings(
    objective: TuningObjective,
    tuned: System,
    dataset: Dataset,
    infos: Sequence[ListInfo],
    queries: Sequence[str],
) -> tuple[DataWarning, ...]:
    """What speaks against the judge, the lists, and how the two systems read them."""
    configs = {
        "the default": objective.system.resolved_config,
        "the tuned system": tuned.resolved_config,
    }
    judge = describe_judge(dataset, [objective.system])
    grades = list_grades(dataset.qrels, queries)
    relevance = dataset.spec.binary_relevance
    return (
        *find_judge_warnings(judge, infos),
        *find_grade_warnings(grades, relevance, is_machine=judge is not None),
        *warn_ignored(count_known_unjudged(dataset), len(objective.runs.queries)),
        *find_data_warnings(infos, len(queries), configs, [objective.measure.name]),
    )
