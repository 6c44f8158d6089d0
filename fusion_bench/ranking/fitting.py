"""Trained parts of a system, fitted out of fold before anything is evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fusion_bench.config.query_types import ClassKey, TypeSource
from fusion_bench.data.aligned_runs import AlignedRuns, cached_by_view
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure, compute_measures, parse_measure
from fusion_bench.methods.fuse import CrossFitted, Trainable
from fusion_bench.methods.policies import CrossFittedPolicy, TrainablePolicy, Variant
from fusion_bench.ranking.batch_engine import SystemSpec, Unsupported, evaluate_batch
from fusion_bench.ranking.plain_systems import (
    query_features,
    resolve_classes,
    runs_of_resolved_class,
    runs_with_stages,
    split_by_switches,
)
from fusion_bench.ranking.system_ranking import (
    fused_list,
    name_system_in_errors,
)

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
        fitted = _cross_fit_policy(runs, system, system.policy)
    return system.model_copy(update={"policy": fitted})


@cached_by_view(keep=FITTED_KEPT, key=lambda system, _: system.model_dump_json())
def _cross_fit_policy(
    runs: AlignedRuns, system: System, policy: TrainablePolicy
) -> CrossFittedPolicy:
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


def needs_fitting(system: System) -> bool:
    """Whether a policy, or a fusion of the system, of a query type or of a stage, is not fitted."""
    stages = (system.stages or {}).values()
    return bool(_trained_parts(system)) or any(needs_fitting(stage) for stage in stages)


def _trained_parts(system: System) -> list[str]:
    """The parts of the system itself that learn, and are not fitted."""
    by_class = (system.class_configs or {}).values()
    fusions = [part.fusion for part in by_class] or [system.fusion]
    is_trained = any(isinstance(fusion, Trainable) for fusion in fusions)
    has_policy = isinstance(system.policy, TrainablePolicy)
    return [*(["the fusion"] if is_trained else []), *(["the policy"] if has_policy else [])]


def _refuse_training_on_trained(system: System) -> None:
    """Raise where one part would learn from what another part learned.

    The inner models score the queries that the outer one learns from, and they have learned from
    the query that is scored: it would not be out of fold.
    """
    parts = _trained_parts(system)
    stages = (system.stages or {}).items()
    parts += [f"stage {name!r}" for name, stage in stages if needs_fitting(stage)] if parts else []
    if len(parts) > 1:
        raise ConfigError(
            f"system {system.name!r}: {' and '.join(parts)} are trained, and one would learn from "
            "the other: train one of them"
        )


def _runs_of_class(
    runs: AlignedRuns,
    name: str,
    key: ClassKey,
    known: tuple[str, ...],
    types: TypeSource | None = None,
) -> AlignedRuns | None:
    """The queries that get the numbers of a class; None = there are none.

    Args:
        runs: Aligned runs.
        name: One of the known classes.
        key: What decides.
        known: The classes that have numbers.
        types: Which types count; see :func:`resolve_classes`.
    """
    is_present = (resolve_classes(runs, key, known, types) == name).any()
    return runs_of_resolved_class(runs, name, key, known, types) if is_present else None


def fit_system(
    system: System, runs: AlignedRuns, spaces: Mapping[str, ScoreSpace] | None = None
) -> System:
    """The system with its trained fusions fitted, its stages' first; itself if it has none.

    Every query of the runs is scored by a model that did not learn from it, other queries by a
    model that learned from all of these. A fusion for one query type or intent learns from queries
    of that class. Fitted systems stay as they are.

    Args:
        system: Any system.
        runs: All sources of the dataset, every query that may be learned from.
        spaces: Score space of each rerank list; only stages with a blend need them.

    Raises:
        AlignmentError: Too few queries, or none with a relevant document.
        ConfigError: The system does not fit the sources, or two parts would be trained one on
            the other.
    """
    if not needs_fitting(system):
        return system
    _refuse_training_on_trained(system)
    if system.stages is not None:
        stages = {}
        for name, stage in system.stages.items():
            with name_system_in_errors(system, is_owner=True):
                stages[name] = fit_system(stage, runs, spaces)
        system = system.model_copy(update={"stages": stages})
        runs = runs_with_stages(system, runs, spaces)
    key, configs = system.class_key, system.class_configs
    if key is None or configs is None:
        if isinstance(system.fusion, Trainable):
            system = system.model_copy(update={"fusion": _fit_fusion(system, runs)})
        return fit_policy(system, runs)
    parts = dict(configs)
    for name, part in parts.items():
        members = _runs_of_class(runs, name, key, tuple(parts), system.types)
        if isinstance(part.fusion, Trainable) and members is not None:
            fitted = _fit_fusion(system.of_class(name), members, f"{key.field} {name!r}: ")
            parts[name] = part.model_copy(update={"fusion": fitted})
    return system.model_copy(update={key.key: parts})


def _fit_fusion(system: System, runs: AlignedRuns, where: str = "") -> CrossFitted:
    """The trained fusion of a plain system, fitted to the lists as the system cuts them."""
    with name_system_in_errors(system, where):
        fusion = system.fusion
        if not isinstance(fusion, Trainable):
            raise TypeError(f"{fusion.method} is not trained")
        return _cross_fit_fusion(system.active_runs(runs), fusion)


@cached_by_view(keep=FITTED_KEPT, key=lambda fusion: (type(fusion), fusion.model_dump_json()))
def _cross_fit_fusion(view: AlignedRuns, fusion: Trainable) -> CrossFitted:
    return fusion.cross_fit(view)
