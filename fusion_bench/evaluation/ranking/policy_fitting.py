"""Trained policies of a system, fitted out of fold before anything is evaluated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusion_bench.batch.system_plans import SystemSpec, Unsupported
from fusion_bench.batch.systems import evaluate_batch
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.view_cache import cached_by_view
from fusion_bench.errors import AlignmentError
from fusion_bench.evaluation.ranking.policy_choice import query_features
from fusion_bench.evaluation.ranking.switched_sources import split_by_switches
from fusion_bench.evaluation.ranking.system_ranking import fused_list, name_system_in_errors
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure, compute_measures, parse_measure
from fusion_bench.policies import CrossFittedPolicy, TrainablePolicy, Variant

#: Fitted policies that a view remembers.
FITTED_KEPT = 64


def fit_policy(system: System, runs: AlignedRuns) -> System:
    """The system with its trained policy fitted; itself if it has none.

    Args:
        system: A system whose fusion is fitted.
        runs: All sources of the dataset, every query that may be learned from.

    Raises:
        AlignmentError: Too few queries, none with a relevant document, or a feature that is not
            known of a query.
        ConfigError: The system does not fit the sources, or the measure is none.
    """
    if not isinstance(system.policy, TrainablePolicy):
        return system
    with name_system_in_errors(system):
        fitted = _cross_fit(runs, system, system.policy)
    return system.model_copy(update={"policy": fitted})


@cached_by_view(keep=FITTED_KEPT, key=lambda system, _: system.model_dump_json())
def _cross_fit(runs: AlignedRuns, system: System, policy: TrainablePolicy) -> CrossFittedPolicy:
    if not (runs.judged & (runs.grades >= runs.binary_relevance)).any():
        raise AlignmentError(
            f"policy {policy.method!r} learns from relevant documents, and no source returned one "
            "for these queries: give it a dataset with judgments"
        )
    features = query_features(system, runs)
    variants = policy.variants(features)
    measure = parse_measure(policy.measure, binary_relevance=runs.binary_relevance)
    values = variant_values(system, variants, runs, measure)
    folds = policy.deal_queries(runs.queries, runs.groups)
    fold = np.array([folds[query] for query in runs.queries])
    models = policy.cross_fit(policy.feature_matrix(features), values, runs.queries, fold)
    return CrossFittedPolicy(
        method=policy.method,
        settings=policy,
        choices=variants,
        models=models,
        fold_of_query=folds,
    )


def variant_values(
    system: System, variants: Sequence[Variant], runs: AlignedRuns, measure: Measure
) -> FloatArray:
    """(V, Q): the measure of the fused list of each variant, before any reranker.

    Args:
        system: A system whose fusion is fitted.
        variants: V variants of it.
        runs: All sources of the dataset.
        measure: A measure that needs no more than the aligned runs.
    """
    values = np.zeros((len(variants), len(runs.queries)))
    for v, variant in enumerate(variants):
        for index, plain, part in split_by_switches(system.with_variant(variant), runs):
            view = plain.active_runs(part)
            [result] = evaluate_batch([SystemSpec(plain.fusion, None, None, None)], view, [measure])
            if isinstance(result, Unsupported) or result.unresolved.any():
                ranks = fused_list(view, plain.fusion).positions
                values[v, index] = compute_measures([measure], view, ranks)[0]
            else:
                values[v, index] = result.values[0]
    return values
