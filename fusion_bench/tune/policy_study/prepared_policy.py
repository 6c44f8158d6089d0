"""A policy, ready to be judged: what it picks, the values of that, and its unjudged documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.evaluation.ranking.fitting import fit_system
from fusion_bench.evaluation.ranking.plain_systems import runs_with_stages
from fusion_bench.evaluation.ranking.policy_choice import query_features
from fusion_bench.evaluation.ranking.policy_fitting import variant_values
from fusion_bench.evaluation.unjudged.unjudged_difference import (
    UnjudgedDifference,
    UnjudgedEvidence,
    compare_unjudged,
)
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure, parse_measure
from fusion_bench.policies import TrainablePolicy, Variant
from fusion_bench.stats.unjudged_rule import JudgmentKind
from fusion_bench.tune.policy_study.candidates import (
    choose_for_all,
    list_policies,
    measure_variants,
    value_variants,
)
from fusion_bench.tune.policy_study.out_of_fold import Chooser, rule_chooser, trained_chooser

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
