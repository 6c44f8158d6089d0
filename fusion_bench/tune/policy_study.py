"""The worth of per-query policies, against fixed numbers that had the same budget."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np

from fusion_bench.checks.collection_warnings import join_collections
from fusion_bench.checks.query_warnings import find_near_duplicates
from fusion_bench.checks.records import DataWarning
from fusion_bench.checks.unjudged import (
    UnjudgedDifference,
    UnjudgedEvidence,
    combine_evidence,
    compare_unjudged,
    measure_unjudged,
    recognize_kind,
)
from fusion_bench.config.parameters import Params
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.chance_oracle import find_chance
from fusion_bench.evaluation.prepared_dataset import find_task_warnings, load_lists, prepare_dataset
from fusion_bench.evaluation.run_experiment import report_provenance
from fusion_bench.experiment.experiment import Experiment, find_datasets, read_distinct_specs
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure, parse_measure
from fusion_bench.methods.policies import Policy, QueryFeatures, TrainablePolicy, Variant, policies
from fusion_bench.ranking import plain_systems
from fusion_bench.ranking.system_ranking import name_system_in_errors
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.report.policy_page import PolicyResult, PolicyStudy, PolicyVerdict
from fusion_bench.stats.comparison import JudgmentKind
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean, random_words
from fusion_bench.tune.options import StudyLimits
from fusion_bench.tune.sensitivity import sample_uniformly
from fusion_bench.tune.splits import assign_folds
from fusion_bench.util.files import name_experiment
from fusion_bench.util.formatting import Progress, ignore_progress

#: Most parameter sets of a trained policy: each is fitted many times for every shuffling.
MOST_TRAINED = 5


def list_policies(policy: Policy, sources: Sequence[str], trials: int, seed: int) -> list[Policy]:
    """The configured policy, its presets, then draws from its space: ``trials`` at most."""
    limit = min(trials, MOST_TRAINED) if isinstance(policy, TrainablePolicy) else trials
    space = policy.space(sources)
    sets: list[Params] = [*policy.presets()]
    sets += sample_uniformly(space, max(limit - 1 - len(sets), 0), seed=seed) if space else []
    data = policy.model_dump()
    return [policy, *(policies.build({**data, **params}) for params in sets)][:limit]


def choose_for_all(
    candidates: Sequence[Policy], features: QueryFeatures
) -> tuple[tuple[Variant, ...], IntArray]:
    """What every parameter set of an untrained policy picks for every query.

    Returns:
        V distinct variants, of which the last one is the system without the policy; (T, Q), the
        variant that each parameter set picks, the configured one first.
    """
    choices = [policy.choose(features) for policy in candidates]
    variants = {_sort_key(variant): variant for choice in choices for variant in choice.variants}
    numbers = {key: number for number, key in enumerate(sorted(variants))}
    rows = [
        np.array([numbers[_sort_key(variant)] for variant in choice.variants])[choice.codes]
        for choice in choices
    ]
    return (*(variants[key] for key in numbers), Variant()), np.stack(rows)


def _sort_key(variant: Variant) -> tuple[tuple[float, ...], str]:
    """Weights first, so that an even spread over sorted variants is one over weights."""
    return tuple((variant.weights or {}).values()), variant.model_dump_json()


def pick_fixed(variants: int, trials: int) -> IntArray:
    """Indices of the variants that are tried for all queries: at most ``trials``, evenly spread.

    The last one, the system without the policy, is always among them.
    """
    spread = np.linspace(0, variants - 1, min(variants, trials))
    return np.unique(np.round(spread).astype(np.int64))


#: Order of the queries whose features stand in → (Q,) values out of fold, and (Q,) codes.
Chooser = Callable[[IntArray], tuple[FloatArray, IntArray]]


def best_of_other_folds(values: FloatArray, fold: IntArray) -> IntArray:
    """(Q,): for each query the row with the greatest mean over the other folds.

    Args:
        values: Shape (T, Q).
        fold: Shape (Q,): 0 … K−1.
    """
    is_member = fold[:, None] == np.arange(int(fold.max()) + 1)
    elsewhere = values.sum(axis=1)[:, None] - values @ is_member
    counts = len(fold) - is_member.sum(axis=0)
    best = np.argmax(elsewhere / counts, axis=0)
    return np.asarray(best[fold])


def rule_chooser(codes: IntArray, values: FloatArray, fold: IntArray) -> Chooser:
    """An untrained policy: shuffling its features only permutes its choices.

    Args:
        codes: Shape (T, Q): the variant that each parameter set picks.
        values: Shape (V, Q): of each variant.
        fold: Shape (Q,).
    """
    queries = np.arange(len(fold))

    def choose(order: IntArray) -> tuple[FloatArray, IntArray]:
        moved = codes[:, order]
        table = values[moved, queries]
        best = best_of_other_folds(table, fold)
        return table[best, queries], moved[best, queries]

    return choose


def trained_chooser(
    candidates: Sequence[TrainablePolicy],
    matrix: FloatArray,
    targets: FloatArray,
    values: FloatArray,
    fold: IntArray,
) -> Chooser:
    """A trained policy: nested, so that a fold neither fits nor chooses what it is valued with.

    Parameters are chosen for fold k by models fitted without k and a second fold, on that second
    fold; the model for k is fitted without k.

    Args:
        candidates: T parameter sets.
        matrix: Shape (Q, F): the features.
        targets: Shape (V, Q): what is learned, the value of the fused list of each variant.
        values: Shape (V, Q): what is judged, the value of the final list.
        fold: Shape (Q,).
    """
    members = [np.flatnonzero(fold == k) for k in range(int(fold.max()) + 1)]

    def predict(policy: TrainablePolicy, moved: FloatArray, *left: int) -> list[IntArray]:
        """The variants for the queries of each fold that is left out."""
        keep = ~np.isin(fold, left)
        model = policy.fit(moved[keep], targets[:, keep], ())
        return [model.predict_codes(moved[members[k]]) for k in left]

    def choose(order: IntArray) -> tuple[FloatArray, IntArray]:
        moved = matrix[order]
        sums = np.zeros((len(candidates), len(members)))
        for a, b in combinations(range(len(members)), 2):
            for t, policy in enumerate(candidates):
                in_a, in_b = predict(policy, moved, a, b)
                sums[t, a] += values[in_b, members[b]].sum()
                sums[t, b] += values[in_a, members[a]].sum()
        codes = np.zeros(len(fold), dtype=np.int64)
        for k, best in enumerate(sums.argmax(axis=0).tolist()):
            [codes[members[k]]] = predict(candidates[best], moved, k)
        return values[codes, np.arange(len(fold))], codes

    return choose


def shuffled_orders(queries: int, count: int, seed: int) -> Iterator[IntArray]:
    """``count`` permutations of the queries, (Q,) each; the same on every machine."""
    for block in random_words(seed, count, queries, row_bytes=8 * queries):
        for words in block:
            yield np.argsort(words, kind="stable")


#: Level of the interval, two-sided; half of it is that of the test against the null, one-sided.
ALPHA: Final = 0.05


class StudyBudget(StudyLimits):
    """How much is tried; as many more shufflings are put to the test.

    Attributes:
        seed: Of the draws, the folds and the shufflings.
    """

    seed: int = 0


@dataclass(frozen=True, eq=False)
class PreparedPolicy:
    """A policy, ready for any shuffling of its features.

    Attributes:
        choose: Order of the queries → values and codes.
        variants: What it chooses among; the last one is the system without the policy.
        values: Shape (V, Q).
        trials: Parameter sets.
        configured: Shape (Q,): values as configured; None = it is trained.
        measure_unjudged: Shape (Q,), the variant of each query → what unjudged documents could
            change.
        judgments: Kind of the judgments.
        is_bounded: Values lie in [0, 1].
        by_chance: Mean of the best of as many disturbances of the best variant for each query.
    """

    choose: Chooser
    variants: tuple[Variant, ...]
    values: FloatArray
    trials: int
    configured: FloatArray | None
    measure_unjudged: Callable[[IntArray], UnjudgedEvidence]
    judgments: JudgmentKind = "pooled"
    is_bounded: bool = False
    by_chance: float | None = None


def prepare_policy(
    system: System,
    runs: AlignedRuns,
    measure: Measure,
    budget: StudyBudget,
    fold: IntArray,
) -> PreparedPolicy:
    """Evaluate what a policy chooses among.

    Args:
        system: A system with a policy.
        runs: All sources of the dataset, judged queries.
        measure: What is judged by.
        budget: How much is tried.
        fold: Shape (Q,).
    """
    policy = system.policy
    assert policy is not None  # noqa: S101 - checked by the caller
    base = plain_systems.fit_system(system.model_copy(update={"policy": None}), runs)
    base = base.model_copy(update={"policy": policy})
    view = plain_systems.runs_with_stages(base, runs)
    features = plain_systems.query_features(base, view)

    def evaluate(variants: Sequence[Variant]) -> FloatArray:
        """(V, Q): the measure of the final list of each variant, reranker included."""
        plain = [base.with_variant(variant) for variant in variants]
        scores = evaluate_systems(plain, runs, [measure])
        return np.stack([each.values[0] for each in scores])

    def unjudged(codes: IntArray) -> UnjudgedEvidence:
        used, places = np.unique(codes, return_inverse=True)
        systems = (base.with_variant(variants[v]) for v in used.tolist())
        parts = [measure_unjudged(system, runs, [measure])[0] for system in systems]
        return combine_evidence(parts, places)

    candidates = list_policies(policy, system.runs, budget.trials, budget.seed)
    trained = [each for each in candidates if isinstance(each, TrainablePolicy)]
    configured = None
    if trained:
        variants = (*trained[0].variants(features), Variant())
        goal = parse_measure(trained[0].measure, binary_relevance=runs.binary_relevance)
        targets = plain_systems.variant_values(base, variants[:-1], view, goal)
        values, matrix = evaluate(variants), trained[0].feature_matrix(features)
        choose = trained_chooser(trained, matrix, targets, values[:-1], fold)
    else:
        variants, codes = choose_for_all(candidates, features)
        values = evaluate(variants)
        configured = values[codes[0], np.arange(len(fold))]
        choose = rule_chooser(codes, values, fold)
    prepared = PreparedPolicy(choose, variants, values, len(candidates), configured, unjudged)
    best = base.with_variant(variants[int(values.mean(axis=1).argmax())])
    return replace(prepared, by_chance=find_chance(best, runs, values, measure, seed=budget.seed))


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
        prepared = prepare_policy(system, runs, measure, budget, fold)
    judgments = judgments or recognize_kind(qrels, runs.queries)
    prepared = replace(prepared, judgments=judgments, is_bounded=measure.is_bounded)
    names = (collection, system.name, system.policy.method, measure.name)
    return compare_policy(prepared, fold, runs.group_codes, budget, names)


def compare_policy(
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
    if verdict == "pays" and prepared.judgments != "complete":
        unjudged = _compare_unjudged(prepared, codes, fixed_codes, groups)
        verdict = "unjudged decide" if unjudged.decides(1, 0.0) else verdict
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
        oracle_by_chance=prepared.by_chance,
        difference=estimate.mean,
        low=estimate.low,
        high=estimate.high,
        shufflings=budget.shufflings,
        **shuffled,
        reranked=None if is_reranked.all() else float(is_reranked.mean()),
        verdict=verdict,
        unjudged=unjudged and unjudged.record,
    )


def _compare_unjudged(
    prepared: PreparedPolicy, codes: IntArray, fixed: IntArray, groups: IntArray
) -> UnjudgedDifference:
    return compare_unjudged(
        prepared.measure_unjudged(codes),
        prepared.measure_unjudged(fixed),
        groups=groups,
        alpha=ALPHA,
        kind=prepared.judgments,
        is_bounded=prepared.is_bounded,
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
        experiment.check_datasets(spec.run_roles, spec.rerank, source)
    results = []
    warnings: dict[str, list[DataWarning]] = {}
    for path in paths:
        loaded = load_lists(path, chosen, progress)
        kept = {system.name: system for system in chosen}
        narrow = experiment.model_copy(update={"systems": kept})
        task = prepare_dataset(narrow, source, loaded)
        duplicates = find_near_duplicates(loaded, task.runs.queries)
        results_of_first = ["Verdicts on policies"]
        warnings[loaded.name] = find_task_warnings(task, chosen, results_of_first, duplicates)
        for done, system in enumerate(chosen):
            progress(f"{loaded.name}: {system.name}", done, len(chosen))
            results.append(
                study_policy(
                    system,
                    task.runs.repeats[0],
                    task.measures[0],
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
        data_warnings=tuple(join_collections(warnings)),
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
