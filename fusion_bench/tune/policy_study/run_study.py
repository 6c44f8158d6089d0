"""Judge the policies of an experiment, dataset by dataset."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from fusion_bench.config.files.yaml_source import Source
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.judge_checks.dataset_judges import find_dataset_warnings
from fusion_bench.evaluation.prepared_dataset import prepare_dataset
from fusion_bench.evaluation.report_records.data_warning import DataWarning
from fusion_bench.evaluation.run_experiment import (
    Progress,
    find_datasets,
    ignore_progress,
    load_lists,
    read_distinct_specs,
    report_provenance,
)
from fusion_bench.evaluation.trials.first_trial import describe_first_trial, warn_first_trial
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.report.policies.policy_records import PolicyStudy
from fusion_bench.tune.policy_study.prepared_policy import StudyBudget
from fusion_bench.tune.policy_study.study import study_policy
from fusion_bench.util.files.output_folder import name_experiment


def study_experiment(
    experiment: Experiment,
    source: Source,
    *,
    folders: Collection[Path],
    systems: Sequence[str] = (),
    budget: StudyBudget | None = None,
    progress: Progress = ignore_progress,
) -> PolicyStudy:
    """Judge the policies of an experiment by its primary measure.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        folders: Where named datasets live.
        systems: Names of systems with a policy; empty = all that have one.
        budget: How much is tried; by default with the experiment's seed.
        progress: Called as the work goes on.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule, a name is unknown, or no
            system has a policy.
    """
    budget = budget or StudyBudget(seed=experiment.seed)
    chosen = _select(experiment, systems)
    paths = [path for _, path in find_datasets(experiment, source, folders)]
    for spec in read_distinct_specs(paths):
        roles = {name: frozenset(run.roles) for name, run in spec.runs.items()}
        experiment.check_datasets(roles, spec.rerank, source)
    results = []
    warnings: list[DataWarning] = []
    for path in paths:
        loaded = load_lists(path, chosen, progress)
        texts = describe_first_trial(loaded, "Verdicts on policies")
        warnings += [*find_dataset_warnings(loaded, chosen), *warn_first_trial(texts)]
        kept = {system.name: system for system in chosen}
        narrow = experiment.model_copy(update={"systems": kept})
        task = prepare_dataset(narrow, source, loaded)
        for done, system in enumerate(chosen):
            progress(f"{loaded.name}: {system.name}", done, len(chosen))
            results.append(
                study_policy(
                    system,
                    task.runs,
                    task.measures[0],
                    spaces=loaded.spaces,
                    qrels=loaded.qrels,
                    collection=loaded.name,
                    budget=budget,
                    judgments=task.judgment_kind,
                )
            )
    return PolicyStudy(
        name=name_experiment(source.path),
        settings=dict(vars(budget)),
        results=tuple(results),
        data_warnings=tuple(warnings),
        provenance=report_provenance(experiment, source),
    )


def _select(experiment: Experiment, systems: Sequence[str]) -> list[System]:
    with_policy = [name for name, system in experiment.systems.items() if system.policy is not None]
    for name in systems:
        if name not in with_policy:
            raise UnknownNameError("system with a policy", name, with_policy, where="--system")
    if not with_policy:
        raise ConfigError(
            "no system of the experiment has a policy: add policy: METHOD to one (fusion-bench "
            "methods lists them)"
        )
    return [experiment.systems[name] for name in systems or with_policy]
