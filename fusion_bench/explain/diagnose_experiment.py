"""Diagnose the systems of an experiment: which failures each has, cures and causes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from fusion_bench.config.files.yaml_source import Source
from fusion_bench.evaluation.details.relevant_documents import list_relevant
from fusion_bench.evaluation.judge_checks.describe_judge import describe_judge
from fusion_bench.evaluation.list_checks.list_infos import task_list_infos
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.run_experiment import (
    Progress,
    ignore_progress,
    report_provenance,
)
from fusion_bench.evaluation.selected_systems import prepare_datasets, select_systems
from fusion_bench.evaluation.trials.select_trial import describe_selection
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.explain.diagnose_changes import describe_system
from fusion_bench.explain.diagnose_failures import (
    DEFINITIONS,
    FUSED_TOP,
    TOP,
    FailureKind,
    StageRanks,
    find_failures,
)
from fusion_bench.explain.diagnose_stages import rank_stages
from fusion_bench.explain.diagnosed_system import DiagnosedSystem, Scope
from fusion_bench.explain.diagnosis import DiagnosedCollection, Diagnosis
from fusion_bench.util.files.output_folder import name_experiment

#: Settings of the experiment that the record repeats.
SETTINGS = ("caveat", "ties", "alpha", "seed")


def diagnose_experiment(
    experiment: Experiment,
    source: Source,
    *,
    folders: Collection[Path],
    systems: Sequence[str] = (),
    dataset: str | None = None,
    top: int = 10,
    progress: Progress = ignore_progress,
) -> Diagnosis:
    """Count the failures of the systems of an experiment, dataset by dataset.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        folders: Where named datasets live.
        systems: Names of the systems, beside the baseline; empty = all.
        dataset: As the experiment names it; by default each of its datasets.
        top: The number of failures to list, for each system and kind.
        progress: Called as the work goes on.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule, or a name is unknown.
    """
    chosen = select_systems(experiment, systems, dataset)
    tasks = prepare_datasets(chosen, source, folders=folders, progress=progress)
    collections = [_diagnose_dataset(task, top, progress) for task in tasks]
    return Diagnosis(
        name=name_experiment(source.path),
        settings={
            **{key: getattr(experiment, key) for key in SETTINGS},
            "top": TOP,
            "fused_top": FUSED_TOP,
            "listed": top,
        },
        definitions=dict(DEFINITIONS),
        provenance=report_provenance(experiment, source),
        collections=tuple(collections),
    )


def _diagnose_dataset(task: EvaluationSet, top: int, progress: Progress) -> DiagnosedCollection:
    spec, systems = task.dataset.spec, task.experiment.systems
    relevant = list_relevant(task.runs, task.dataset.qrels, spec.binary_relevance)
    diagnosed = []
    missed = np.ones(len(relevant.rows), dtype=bool)
    for done, (name, system) in enumerate(systems.items()):
        progress(f"{task.dataset.name}: {name}", done, len(systems))
        fitted = task.fit_system(system)
        stages = rank_stages(fitted, task.runs, task.dataset.spaces)
        failures = find_failures(task.runs, relevant, stages, spec.binary_relevance)
        reasons = _list_reasons(task, stages)
        diagnosed.append(DiagnosedSystem.from_stages(name, stages, relevant, failures, reasons))
        missed &= failures["miss"].is_failed
    scope = Scope(
        task.runs.queries,
        task.groups,
        relevant,
        task.experiment.alpha,
        top,
    )
    return DiagnosedCollection(
        name=spec.name,
        version=spec.version,
        fingerprint=task.dataset.fingerprint,
        split=task.split,
        query_type=task.experiment.query_type,
        where=dict(task.experiment.where),
        queries=len(task.runs.queries),
        groups=len(set(task.runs.groups)),
        relevant=len(relevant.rows),
        missed_by_all=int(missed.sum()),
        binary_relevance=spec.binary_relevance,
        trial=describe_selection(task.dataset),
        runs=tuple(task_list_infos(task)),
        judge=describe_judge(task.dataset, systems.values()),
        baseline=task.experiment.baseline,
        systems=tuple(describe_system(item, diagnosed[0], scope) for item in diagnosed),
    )


def _list_reasons(task: EvaluationSet, stages: StageRanks) -> dict[FailureKind, str]:
    """Why a kind of failure cannot occur in a system, by kind."""
    reasons: dict[FailureKind, str] = {}
    if not stages.has_question.any():
        reasons["dilution"] = "no list that it reads has the role question"
    if not stages.has_reranker:
        reasons["burial"] = "no reranker orders its lists"
    below = task.runs.grades < task.dataset.spec.binary_relevance
    if not (task.runs.judged & below).any():
        reasons["inversion"] = "no list has a document that is judged not relevant"
    return reasons
