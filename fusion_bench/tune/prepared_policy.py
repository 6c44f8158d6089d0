"""A policy, ready to be judged: what it picks, what that is worth, its unjudged documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Final

import numpy as np

from fusion_bench.checks.unjudged import (
    UnjudgedDifference,
    UnjudgedEvidence,
    combine_evidence,
    compare_unjudged,
    measure_unjudged,
)
from fusion_bench.config.parameters import Params
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure, parse_measure
from fusion_bench.methods.policies import Policy, QueryFeatures, TrainablePolicy, Variant, policies
from fusion_bench.ranking.fitting import fit_system, variant_values
from fusion_bench.ranking.plain_systems import query_features, runs_with_stages
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.stats.comparison import JudgmentKind
from fusion_bench.stats.intervals import random_words
from fusion_bench.tune.sensitivity import sample_uniformly

#: Most parameter sets of a trained policy: each is fitted many times for every shuffling.
MOST_TRAINED = 5


@dataclass(frozen=True, eq=False)
class Candidates:
    """The T parameter sets of an untrained policy over V variants.

    Attributes:
        variants: Distinct variants; the last one is the system without the policy.
        codes: Shape (T, Q): the variant that each parameter set picks; the first set is the
            configured one.
    """

    variants: tuple[Variant, ...]
    codes: IntArray


def list_policies(policy: Policy, sources: Sequence[str], trials: int, seed: int) -> list[Policy]:
    """The configured policy, its presets, then draws from its space: ``trials`` at most."""
    limit = min(trials, MOST_TRAINED) if isinstance(policy, TrainablePolicy) else trials
    space = policy.space(sources)
    sets: list[Params] = [*policy.presets()]
    sets += sample_uniformly(space, max(limit - 1 - len(sets), 0), seed=seed) if space else []
    data = policy.model_dump()
    return [policy, *(policies.build({**data, **params}) for params in sets)][:limit]


def choose_for_all(candidates: Sequence[Policy], features: QueryFeatures) -> Candidates:
    """What every parameter set picks for every query."""
    choices = [policy.choose(features) for policy in candidates]
    variants = {_sort_key(variant): variant for choice in choices for variant in choice.variants}
    numbers = {key: number for number, key in enumerate(sorted(variants))}
    rows = [
        np.array([numbers[_sort_key(variant)] for variant in choice.variants])[choice.codes]
        for choice in choices
    ]
    return Candidates((*(variants[key] for key in numbers), Variant()), np.stack(rows))


def _sort_key(variant: Variant) -> tuple[tuple[float, ...], str]:
    """Weights first, so that an even spread over sorted variants is one over weights."""
    return tuple((variant.weights or {}).values()), variant.model_dump_json()


def value_variants(
    system: System,
    variants: Sequence[Variant],
    runs: AlignedRuns,
    measure: Measure,
    spaces: Mapping[str, ScoreSpace],
    qrels: Qrels,
) -> FloatArray:
    """(V, Q): the measure of the final list of each variant, reranker included."""
    plain = [system.with_variant(variant) for variant in variants]
    scores = evaluate_systems(plain, runs, [measure], spaces=spaces, qrels=qrels)
    return np.stack([each.values[0] for each in scores])


def measure_variants(
    system: System,
    variants: Sequence[Variant],
    codes: IntArray,
    runs: AlignedRuns,
    measure: Measure,
    *,
    spaces: Mapping[str, ScoreSpace],
    qrels: Qrels,
) -> UnjudgedEvidence:
    """What unjudged documents could change where each query has a variant of its own.

    Args:
        system: With the policy.
        variants: V variants.
        codes: Shape (Q,): the variant of each query.
        runs: All sources.
        measure: What is judged by.
        spaces: Score space of each rerank list.
        qrels: The judgments.
    """
    used, places = np.unique(codes, return_inverse=True)
    parts = [
        measure_unjudged(
            system.with_variant(variants[v]), runs, [measure], spaces=spaces, qrels=qrels
        )[0]
        for v in used.tolist()
    ]
    return combine_evidence(parts, places)


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
    """

    choose: Chooser
    variants: tuple[Variant, ...]
    values: FloatArray
    trials: int
    configured: FloatArray | None
    measure_unjudged: Callable[[IntArray], UnjudgedEvidence]
    judgments: JudgmentKind = "pooled"
    is_bounded: bool = False

    def compare_unjudged(
        self, codes: IntArray, fixed: IntArray, groups: IntArray
    ) -> UnjudgedDifference | None:
        """What unjudged documents could change in policy − fixed; None = nothing.

        Args:
            codes: Shape (Q,): the variant that the policy picks.
            fixed: Shape (Q,): the fixed variant.
            groups: Shape (Q,).
        """
        if self.judgments == "complete":
            return None
        return compare_unjudged(
            self.measure_unjudged(codes),
            self.measure_unjudged(fixed),
            groups=groups,
            alpha=ALPHA,
            kind=self.judgments,
            is_bounded=self.is_bounded,
        )


def prepare_policy(
    system: System,
    runs: AlignedRuns,
    measure: Measure,
    spaces: Mapping[str, ScoreSpace],
    qrels: Qrels,
    budget: StudyBudget,
    fold: IntArray,
) -> PreparedPolicy:
    """Evaluate what a policy chooses among.

    Args:
        system: A system with a policy.
        runs: All sources of the dataset, judged queries.
        measure: What is judged by.
        spaces: Score space of each rerank list.
        qrels: The judgments.
        budget: How much is tried.
        fold: Shape (Q,).
    """
    policy = system.policy
    assert policy is not None  # noqa: S101 - checked by the caller
    base = fit_system(system.model_copy(update={"policy": None}), runs, spaces)
    base = base.model_copy(update={"policy": policy})
    view = runs_with_stages(base, runs, spaces)
    features = query_features(base, view)

    def unjudged(variants: Sequence[Variant], codes: IntArray) -> UnjudgedEvidence:
        return measure_variants(base, variants, codes, runs, measure, spaces=spaces, qrels=qrels)

    candidates = list_policies(policy, system.runs, budget.trials, budget.seed)
    trained = [each for each in candidates if isinstance(each, TrainablePolicy)]
    if trained:
        variants = (*trained[0].variants(features), Variant())
        goal = parse_measure(trained[0].measure, binary_relevance=runs.binary_relevance)
        targets = variant_values(base, variants[:-1], view, goal)
        values = value_variants(base, variants, runs, measure, spaces, qrels)
        matrix = trained[0].feature_matrix(features)
        choose = trained_chooser(trained, matrix, targets, values[:-1], fold)
        measured = partial(unjudged, variants)
        return PreparedPolicy(choose, variants, values, len(trained), None, measured)
    table = choose_for_all(candidates, features)
    values = value_variants(base, table.variants, runs, measure, spaces, qrels)
    configured = values[table.codes[0], np.arange(len(fold))]
    choose = rule_chooser(table.codes, values, fold)
    measured = partial(unjudged, table.variants)
    return PreparedPolicy(choose, table.variants, values, len(candidates), configured, measured)
