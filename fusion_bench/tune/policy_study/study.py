"""Judge a policy against fixed numbers that had the same queries, folds and budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.ranking.fitting import fit_system
from fusion_bench.evaluation.ranking.plain_systems import runs_with_stages
from fusion_bench.evaluation.ranking.policy_choice import query_features
from fusion_bench.evaluation.ranking.policy_fitting import variant_values
from fusion_bench.evaluation.ranking.system_ranking import name_system_in_errors
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure, parse_measure
from fusion_bench.policies import TrainablePolicy, Variant
from fusion_bench.report.policies.policy_records import PolicyResult, PolicyVerdict
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean
from fusion_bench.tune.policy_study.candidates import (
    choose_for_all,
    list_policies,
    pick_fixed,
    value_variants,
)
from fusion_bench.tune.policy_study.out_of_fold import (
    Chooser,
    best_of_other_folds,
    rule_chooser,
    shuffled_orders,
    trained_chooser,
)
from fusion_bench.tune.validation.cross_validation import assign_folds

#: Level of the interval, two-sided; half of it is that of the test against the null, one-sided.
ALPHA = 0.05


@dataclass(frozen=True)
class StudyBudget:
    """How much is tried.

    Attributes:
        trials: Parameter sets of the policy, and fixed variants, at most.
        folds: K.
        shufflings: Of the null, and as many more that are put to the test.
        seed: Of the draws, the folds and the shufflings.
    """

    trials: int = 50
    folds: int = 5
    shufflings: int = 200
    seed: int = 0


def decide_policy(low: float, null_p: float) -> PolicyVerdict:
    """``pays``: the interval of policy − fixed is above 0, and null_p is at most .025.

    Args:
        low: Lower end of the paired 95 % interval, out of fold.
        null_p: (1 + shufflings with at least this difference) / (1 + shufflings).
    """
    return "pays" if low > 0 and null_p <= ALPHA / 2 else "no gain shown"


@dataclass(frozen=True, eq=False)
class PreparedPolicy:
    """A policy, ready for any shuffling of its features.

    Attributes:
        choose: Order of the queries → values and codes.
        variants: What it chooses among; the last one is the system without the policy.
        values: Shape (V, Q).
        trials: Parameter sets.
        configured: Shape (Q,): values as configured; None = it is trained.
    """

    choose: Chooser
    variants: tuple[Variant, ...]
    values: FloatArray
    trials: int
    configured: FloatArray | None


def study_policy(
    system: System,
    runs: AlignedRuns,
    measure: Measure,
    *,
    spaces: Mapping[str, ScoreSpace],
    qrels: Qrels,
    collection: str = "",
    budget: StudyBudget | None = None,
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
        prepared = _prepare(system, runs, measure, spaces, qrels, budget, fold)
    names = (collection, system.name, system.policy.method, measure.name)
    return _judge_policy(prepared, fold, number_by_appearance(runs.groups)[0], budget, names)


def _judge_policy(
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
    fixed_rows = prepared.values[pick_fixed(len(prepared.values), budget.trials)]
    queries = np.arange(len(fold))
    fixed = fixed_rows[best_of_other_folds(fixed_rows, fold), queries]
    tuned, codes = prepared.choose(queries)
    estimate = estimate_mean(tuned - fixed, groups, alpha=ALPHA)
    null, others = _shuffle(prepared.choose, fixed, groups, budget)
    differences = np.array([each.mean for each in null])
    p = _null_p(estimate.mean, differences)
    is_reranked = np.array([variant.rerank for variant in prepared.variants])[codes]
    collection, system, policy, measure = names
    return PolicyResult(
        collection=collection,
        system=system,
        policy=policy,
        measure=measure,
        queries=len(fold),
        trials=prepared.trials,
        fixed_trials=len(fixed_rows),
        folds=budget.folds,
        default=float(prepared.values[-1].mean()),
        configured=None if prepared.configured is None else float(prepared.configured.mean()),
        fixed=float(fixed.mean()),
        tuned=float(tuned.mean()),
        oracle=float(prepared.values.max(axis=0).mean()),
        difference=estimate.mean,
        low=estimate.low,
        high=estimate.high,
        null_mean=float(differences.mean()),
        null_high=float(np.quantile(differences, 1 - ALPHA / 2)),
        null_p=p,
        shufflings=budget.shufflings,
        shuffled_above=sum(each.low > 0 for each in others),
        shuffled_pays=sum(
            decide_policy(each.low, _null_p(each.mean, differences)) == "pays" for each in others
        ),
        reranked=None if is_reranked.all() else float(is_reranked.mean()),
        verdict=decide_policy(estimate.low, p),
    )


def _null_p(difference: float, null: FloatArray) -> float:
    return float((1 + (null >= difference).sum()) / (1 + len(null)))


def _shuffle(
    choose: Chooser, fixed: FloatArray, groups: IntArray, budget: StudyBudget
) -> tuple[list[MeanEstimate], list[MeanEstimate]]:
    """Differences to the fixed numbers with shuffled features: the null, and as many others."""
    orders = shuffled_orders(len(fixed), 2 * budget.shufflings, budget.seed)
    estimates = [estimate_mean(choose(order)[0] - fixed, groups, alpha=ALPHA) for order in orders]
    return estimates[: budget.shufflings], estimates[budget.shufflings :]


def _prepare(
    system: System,
    runs: AlignedRuns,
    measure: Measure,
    spaces: Mapping[str, ScoreSpace],
    qrels: Qrels,
    budget: StudyBudget,
    fold: IntArray,
) -> PreparedPolicy:
    policy = system.policy
    assert policy is not None  # noqa: S101 - checked by the caller
    base = fit_system(system.model_copy(update={"policy": None}), runs, spaces)
    base = base.model_copy(update={"policy": policy})
    view = runs_with_stages(base, runs, spaces)
    features = query_features(base, view)
    candidates = list_policies(policy, system.runs, budget.trials, budget.seed)
    trained = [each for each in candidates if isinstance(each, TrainablePolicy)]
    if trained:
        variants = (*trained[0].variants(features), Variant())
        goal = parse_measure(trained[0].measure, binary_relevance=runs.binary_relevance)
        targets = variant_values(base, variants[:-1], view, goal)
        values = value_variants(base, variants, runs, measure, spaces, qrels)
        matrix = trained[0].feature_matrix(features)
        choose = trained_chooser(trained, matrix, targets, values[:-1], fold)
        return PreparedPolicy(choose, variants, values, len(trained), None)
    table = choose_for_all(candidates, features)
    values = value_variants(base, table.variants, runs, measure, spaces, qrels)
    configured = values[table.codes[0], np.arange(len(fold))]
    choose = rule_chooser(table.codes, values, fold)
    return PreparedPolicy(choose, table.variants, values, len(candidates), configured)
