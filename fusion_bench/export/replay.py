"""What a configuration costs: it is read back, and replayed against the system itself."""

from __future__ import annotations

from collections.abc import Mapping

from fusion_bench.config.files.yaml_source import Source
from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.assessment import Assessment, assess_system
from fusion_bench.evaluation.compare_collections import (
    INFERENCE_KEYS,
    Contrast,
    compare_contrasts,
)
from fusion_bench.evaluation.prepared_dataset import EvaluationSet, prepare_dataset
from fusion_bench.evaluation.results import record_comparison
from fusion_bench.evaluation.trials.assess_trials import mean_assessment
from fusion_bench.evaluation.unjudged.unjudged_difference import (
    UnjudgedDifference,
    UnjudgedEvidence,
    compare_unjudged,
)
from fusion_bench.experiment.dialect import Dialect
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.export.list_changes import compare_lists
from fusion_bench.export.records import ReplayRecord
from fusion_bench.io.dataset import Dataset

#: So many documents at the top of each list are compared.
TOP = 10


def replay_system(
    experiment: Experiment,
    source: Source,
    dataset: Dataset,
    system: System,
    exported: System,
    dialect: type[Dialect],
) -> ReplayRecord:
    """Evaluate the system and what was written of it on the same queries.

    Args:
        experiment: Gives measures, split, level and seed.
        source: Where it was read from.
        dataset: With every list that the two systems use.
        system: The system.
        exported: What its configuration does; under another name.
        dialect: Of that configuration.

    Raises:
        FusionBenchError: The dataset does not fit them.
    """
    task = prepare_dataset(_select_pair(experiment, system, exported), source, dataset)
    fitted = [task.fit_system(item) for item in (system, exported)]
    assessments = {item.name: _assess_trials(task, item) for item in (system, exported)}
    names = tuple(measure.name for measure in task.measures)
    contrast = Contrast(
        names,
        task.experiment.baseline,
        {name: assessment.values for name, assessment in assessments.items()},
        task.runs.groups,
        *_describe_trials(task, assessments),
    )
    settings = task.experiment.model_dump(include=set(INFERENCE_KEYS))
    ((comparison,),) = compare_contrasts([contrast], settings)
    unjudged = _compare_unjudged(task, assessments[exported.name], assessments[system.name])
    changes = compare_lists(
        fitted[0], fitted[1], task.runs, dataset.spaces, precision=dialect.precision, top=TOP
    )
    return ReplayRecord(
        dataset=dataset.name,
        fingerprint=dataset.fingerprint,
        split=task.split,
        query_type=task.experiment.query_type,
        where=dict(task.experiment.where),
        queries=len(task.runs.queries),
        groups=len(set(task.runs.groups)),
        alpha=experiment.alpha,
        min_gain=experiment.min_gain,
        system_mean=float(assessments[system.name].values[0].mean()),
        export_mean=float(assessments[exported.name].values[0].mean()),
        comparison=record_comparison(comparison, unjudged, min_gain=experiment.min_gain),
        top=TOP,
        changed_queries=int(changes.is_changed.sum()),
        changed_sets=int(changes.is_other_set.sum()),
        tied_queries=int(changes.is_tied.sum()),
    )


def _assess_trials(task: EvaluationSet, system: System) -> Assessment:
    """What was measured of a system, over the trials of its lists."""
    return mean_assessment(
        [
            assess_system(
                trial.fit_system(system),
                trial.runs,
                trial.measures,
                spaces=trial.dataset.spaces,
                qrels=trial.dataset.qrels,
            )
            for trial in task.trials[: task.count_trials(system)]
        ]
    )


def _describe_trials(
    task: EvaluationSet, assessments: Mapping[str, Assessment]
) -> tuple[dict[str, FloatArray], dict[str, frozenset[str]]]:
    """The values of the trials of each system that has several, and the lists that differ."""
    values = {name: each.trials for name, each in assessments.items() if each.trials is not None}
    systems = task.experiment.systems
    return values, {name: task.trial_lists(systems[name]) for name in values}


def _compare_unjudged(
    task: EvaluationSet, exported: Assessment, system: Assessment
) -> UnjudgedDifference | None:
    """What unjudged documents could change; None with complete judgments."""
    if task.judgment_kind == "complete":
        return None
    return compare_unjudged(
        *(UnjudgedEvidence.of_measure(side.unjudged) for side in (exported, system)),
        groups=task.groups,
        alpha=task.experiment.alpha,
        kind=task.judgment_kind,
    )


def _select_pair(experiment: Experiment, system: System, exported: System) -> Experiment:
    """The experiment with these two systems and its primary measure only."""
    changed = {
        "systems": {system.name: system, exported.name: exported},
        "baseline": system.name,
        "measures": experiment.measures[:1],
    }
    return experiment.model_copy(update=changed)
