"""What per-query policies are worth, against fixed numbers that had the same budget."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fusion_bench.checks.judges import find_dataset_warnings
from fusion_bench.checks.records import DataWarning
from fusion_bench.checks.unjudged import recognize_kind
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.dataset_facts import describe_first_trial, warn_first_trial
from fusion_bench.evaluation.prepared_dataset import prepare_dataset
from fusion_bench.evaluation.run_experiment import (
    Progress,
    find_datasets,
    ignore_progress,
    load_lists,
    read_distinct_specs,
    report_provenance,
)
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure
from fusion_bench.measures.aliases import is_bounded
from fusion_bench.ranking.system_ranking import name_system_in_errors
from fusion_bench.report.policy_page import PolicyResult, PolicyStudy, PolicyVerdict
from fusion_bench.stats.comparison import JudgmentKind
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean
from fusion_bench.tune.prepared_policy import (
    ALPHA,
    Chooser,
    PreparedPolicy,
    StudyBudget,
    best_of_other_folds,
    pick_fixed,
    prepare_policy,
    shuffled_orders,
)
from fusion_bench.tune.trial_selection import assign_folds
from fusion_bench.util.file_paths import name_experiment


def decide_policy(low: float, null_p: float) -> PolicyVerdict:
    """``pays``: the interval of policy − fixed is above 0, and null_p is at most .025.

    Args:
        low: Lower end of the paired 95 % interval, out of fold.
        null_p: (1 + shufflings with at least this difference) / (1 + shufflings).
    """
    return "pays" if low > 0 and null_p <= ALPHA / 2 else "no gain shown"


def study_policy(
    system: System,
    runs: AlignedRuns,
    measure: Measure,
    *,
    spaces: Mapping[str, ScoreSpace],
    qrels: Qrels,
    collection: str = "",
    budget: StudyBudget | None = None,
    judgments: JudgmentKind | None = None,
) -> PolicyResult:
    """Judge the policy of a system.

    Args:
        system: A system with a policy.
        runs: All sources of the dataset, judged queries.
        measure: What is judged by.
        spaces: Score space of each rerank list.
        qrels: The judgments.
        collection: Name of the dataset.
        budget: How much is tried.
        judgments: What the judgments say of unjudged documents; None = as they look.

    Raises:
        AlignmentError: A feature that is not known, or too few queries to learn from.
        ConfigError: The system has no policy or does not fit, or there are too few groups.
    """
    budget = budget or StudyBudget()
    if system.policy is None:
        raise ConfigError(f"system {system.name!r} has no policy: add policy: METHOD to it")
    fold = assign_folds(
        runs.groups, runs.types, folds=budget.folds, split_seed=f"policies {budget.seed}"
    )
    with name_system_in_errors(system):
        prepared = prepare_policy(system, runs, measure, spaces, qrels, budget, fold)
    judgments = judgments or recognize_kind(qrels, runs.queries)
    prepared = replace(prepared, judgments=judgments, is_bounded=is_bounded(measure.name))
    names = (collection, system.name, system.policy.method, measure.name)
    return judge_policy(prepared, fold, number_by_appearance(runs.groups)[0], budget, names)


def judge_policy(
    prepared: PreparedPolicy,
    fold: IntArray,
    groups: IntArray,
    budget: StudyBudget,
    names: tuple[str, str, str, str],
) -> PolicyResult:
    """The policy against tuned fixed numbers and against its shuffled features.

    Args:
        prepared: The policy.
        fold: Shape (Q,).
        groups: Shape (Q,).
        budget: How much is tried.
        names: Of the collection, the system, the policy and the measure.
    """
    tried = pick_fixed(len(prepared.values), budget.trials)
    queries = np.arange(len(fold))
    fixed_codes = tried[best_of_other_folds(prepared.values[tried], fold)]
    fixed = prepared.values[fixed_codes, queries]
    tuned, codes = prepared.choose(queries)
    estimate = estimate_mean(tuned - fixed, groups, alpha=ALPHA)
    if prepared.is_bounded:
        estimate = estimate.clip(-1.0, 1.0)
    null, others = _shuffle(prepared.choose, fixed, groups, budget)
    shuffled = _describe_null(estimate, null, others)
    verdict, unjudged = decide_policy(estimate.low, shuffled["null_p"]), None
    if verdict == "pays":
        unjudged = prepared.compare_unjudged(codes, fixed_codes, groups)
        is_contradicted = unjudged is not None and unjudged.decides(1, 0.0)
        verdict = "unjudged decide" if is_contradicted else verdict
    is_reranked = np.array([variant.rerank for variant in prepared.variants])[codes]
    collection, system, policy, measure = names
    return PolicyResult(
        collection=collection,
        system=system,
        policy=policy,
        measure=measure,
        queries=len(fold),
        trials=prepared.trials,
        fixed_trials=len(tried),
        folds=budget.folds,
        default=float(prepared.values[-1].mean()),
        configured=None if prepared.configured is None else float(prepared.configured.mean()),
        fixed=float(fixed.mean()),
        tuned=float(tuned.mean()),
        oracle=float(prepared.values.max(axis=0).mean()),
        difference=estimate.mean,
        low=estimate.low,
        high=estimate.high,
        shufflings=budget.shufflings,
        **shuffled,
        reranked=None if is_reranked.all() else float(is_reranked.mean()),
        verdict=verdict,
        unjudged=unjudged and unjudged.record,
    )


def _describe_null(
    estimate: MeanEstimate, null: Sequence[MeanEstimate], others: Sequence[MeanEstimate]
) -> dict[str, Any]:
    """What shuffled features gain: the null of the difference, and what the rule says of others."""
    differences = np.array([each.mean for each in null])
    verdicts = [decide_policy(each.low, _null_p(each.mean, differences)) for each in others]
    return {
        "null_mean": float(differences.mean()),
        "null_high": float(np.quantile(differences, 1 - ALPHA / 2)),
        "null_p": _null_p(estimate.mean, differences),
        "shuffled_above": sum(each.low > 0 for each in others),
        "shuffled_pays": verdicts.count("pays"),
    }


def _null_p(difference: float, null: FloatArray) -> float:
    return float((1 + (null >= difference).sum()) / (1 + len(null)))


def _shuffle(
    choose: Chooser, fixed: FloatArray, groups: IntArray, budget: StudyBudget
) -> tuple[list[MeanEstimate], list[MeanEstimate]]:
    """Differences to the fixed numbers with shuffled features: the null, and as many others."""
    orders = shuffled_orders(len(fixed), 2 * budget.shufflings, budget.seed)
    estimates = [estimate_mean(choose(order)[0] - fixed, groups, alpha=ALPHA) for order in orders]
    return estimates[: budget.shufflings], estimates[budget.shufflings :]


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
