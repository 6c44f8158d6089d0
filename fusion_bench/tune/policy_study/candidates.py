"""The parameter sets of a policy, what each picks, and what each variant is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fusion_bench.config.parameters import Params
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.evaluation.scores import evaluate_systems
from fusion_bench.evaluation.unjudged.unjudged_difference import UnjudgedEvidence, combine_evidence
from fusion_bench.evaluation.unjudged.unjudged_values import measure_unjudged
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure
from fusion_bench.policies import Policy, QueryFeatures, TrainablePolicy, Variant, policies
from fusion_bench.tune.validation.sensitivity.random_sample import sample_uniformly

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
        UnjudgedEvidence.of_measure(
            measure_unjudged(
                system.with_variant(variants[v]), runs, [measure], spaces=spaces, qrels=qrels
            )
        )
        for v in used.tolist()
    ]
    return combine_evidence(parts, places)


def pick_fixed(variants: int, trials: int) -> IntArray:
    """Indices of the variants that are tried for all queries: at most ``trials``, evenly spread.

    The last one, the system without the policy, is always among them.
    """
    spread = np.linspace(0, variants - 1, min(variants, trials))
    return np.unique(np.round(spread).astype(np.int64))
