"""What a policy cannot do: thresholds that no query can meet, and variants without effect."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TypeAlias

import numpy as np

from fusion_bench.config.models import Location
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.lint._subject import Subject
from fusion_bench.policies import Variant
from fusion_bench.policies.entropy_alpha import EntropyAlpha
from fusion_bench.policies.margin_silencing import MarginSilencing
from fusion_bench.policies.overlap_rules import OverlapRules
from fusion_bench.policies.rerank_when_ambiguous import RerankWhenAmbiguous

#: Path inside the system, why it has no effect, and the system that gives the same lists.
IdlePolicy: TypeAlias = tuple[Location, str, System]
#: Persistence of rank-biased overlap, as the policy has it.
PERSISTENCE = 0.9


def with_policy(subject: Subject) -> System:
    """The plain system with the policy that picks for each query."""
    return subject.system.model_copy(update={"policy": subject.policy})


def list_idle_policies(subject: Subject) -> Iterator[IdlePolicy]:
    """What of the policy has no effect on any query; nothing where its sources do not fit."""
    policy, system = subject.policy, subject.system
    if policy is None:
        return
    try:
        policy.check_sources(system.runs, [subject.roles_of(name) for name in system.runs])
        if isinstance(policy, OverlapRules):
            yield from _check_overlap(subject, policy)
    except ConfigError:
        return
    if isinstance(policy, RerankWhenAmbiguous):
        yield from _check_reranking(system, policy)
    if isinstance(policy, MarginSilencing) and policy.floor == 1:
        text = "the factor is never below floor 1, so no weight changes"
        yield ("policy", "floor"), text, system
    if isinstance(policy, EntropyAlpha):
        yield from _check_alpha(subject, policy)


def _check_overlap(subject: Subject, policy: OverlapRules) -> Iterator[IdlePolicy]:
    whole = with_policy(subject)
    below, above = (whole.with_variant(variant) for variant in policy.fixed_variants())
    place = ("policy", "threshold")
    if _is_same(subject, below, above):
        yield ("policy",), "below and above are the same system", below
    elif len(subject.system.runs) == 1:
        yield place, "the overlap of a single list is 1: every query gets above", above
    elif policy.threshold == 0:
        yield place, "no overlap is below 0: every query gets above", above
    elif policy.measure == "rbo" and policy.threshold > (limit := _greatest_rbo(subject, policy)):
        text = f"lists of this depth overlap by {limit:.3f} at most: every query gets below"
        yield place, text, below


def _greatest_rbo(subject: Subject, policy: OverlapRules) -> float:
    """What no rank-biased overlap exceeds: the mean over pairs, each of its shorter list."""
    depths = np.arange(1, policy.depth + 1)
    factors = PERSISTENCE ** (depths - 1)
    limits = [subject.depth_of(name) or policy.depth for name in subject.system.runs]
    values = [
        (np.minimum(depths, min(pair)) / depths) @ factors / factors.sum()
        for pair in combinations(limits, 2)
    ]
    return float(np.mean(values)) + 1e-12


def _is_same(subject: Subject, first: System, second: System) -> bool:
    """Whether two plain systems of the same sources differ in nothing but how they are written."""
    excluded = {"weights", "alpha"}
    configs = [system.fusion.model_dump(exclude=excluded) for system in (first, second)]
    if configs[0] != configs[1] or first.blend != second.blend:
        return False
    roles = [subject.roles_of(name) for name in first.runs]
    before, after = (system.fusion.source_weights(first.runs, roles) for system in (first, second))
    return bool(np.array_equal(before, after))


def _check_reranking(system: System, policy: RerankWhenAmbiguous) -> Iterator[IdlePolicy]:
    place = ("policy", "threshold")
    if policy.threshold == 0:
        other = system.with_variant(Variant(rerank=False))
        yield place, f"no {policy.signal} is below 0: no query is reranked", other
    elif policy.signal == "gap" and policy.threshold > 1:
        yield place, "no gap is above 1: every query is reranked", system


def _check_alpha(subject: Subject, policy: EntropyAlpha) -> Iterator[IdlePolicy]:
    if policy.low != policy.high and policy.steepness != 0:
        return
    key = "high" if policy.low == policy.high else "steepness"
    alpha = float(np.round(policy.low + (policy.high - policy.low) * 0.5, 2))
    weights = {
        name: alpha if "semantic" in subject.roles_of(name) else float(np.round(1 - alpha, 2))
        for name in subject.system.runs
    }
    other = with_policy(subject).with_variant(Variant(weights=weights))
    yield ("policy", key), f"α is {alpha:g} for every query, as fixed weights are", other
