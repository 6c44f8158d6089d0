"""What of a system does not fit a dataset: unknown names, and numbers that fit no source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from fusion_bench.config.models import Location
from fusion_bench.data.final_lists import FINAL_ROLE
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.experiment.stages import base_runs, source_roles

if TYPE_CHECKING:
    from fusion_bench.experiment.system import System

Misfits: TypeAlias = Iterator[tuple[Location, Exception]]


def find_misfits(
    system: System, roles: Mapping[str, frozenset[str]], rerankers: Sequence[str]
) -> Misfits:
    """What does not fit a dataset, each with the path of the offending value.

    Args:
        system: Any system.
        roles: Roles by name of every run of the dataset.
        rerankers: Names of its rerank lists.
    """
    known = {*roles, *(system.stages or {})}
    for i, name in enumerate(system.runs):
        if name not in known:
            yield ("runs", i), UnknownNameError("run", name, known)
        elif len(system.runs) > 1 and FINAL_ROLE in roles.get(name, ()):
            problem = f"{name!r} is an engine's final list (role {FINAL_ROLE}), and no source"
            yield ("runs", i), ConfigError(f"{problem}: leave it out, or make it a system alone")
    yield from _find_stage_misfits(system, roles, rerankers)
    if isinstance(system.depth, dict):
        for name in system.depth:
            if name not in system.runs:
                yield ("depth", name), UnknownNameError("run", name, system.runs)
    for reranker in sorted(system.reranker_names.difference(rerankers)):
        yield ("blend", "reranker"), UnknownNameError("reranker", reranker, rerankers)
    if roles.keys() >= {*base_runs(system)}:
        yield from _find_source_misfits(system, [*source_roles(system, roles).values()])


def _find_stage_misfits(
    system: System, roles: Mapping[str, frozenset[str]], rerankers: Sequence[str]
) -> Misfits:
    """Stages with the name of a run, and what does not fit in each stage."""
    for name, stage in (system.stages or {}).items():
        if name in roles:
            problem = f"stage {name!r} has the name of a run of the dataset: rename it"
            yield ("stages", name), ConfigError(problem)
        for location, error in find_misfits(stage, roles, rerankers):
            yield ("stages", name, *location), error


def _find_source_misfits(system: System, roles: Sequence[frozenset[str]]) -> Misfits:
    """Weights and numbers that fit no source, of the fusion or of each class of queries."""
    yield from _find_policy_misfits(system, roles)
    for name in system.query_classes or ("",):
        location = (system.class_field, name) if name else ("fusion",)
        try:
            system.of_class(name).fusion.check_sources(system.runs, roles)
        except ConfigError as error:
            yield location, error


def _find_policy_misfits(system: System, roles: Sequence[frozenset[str]]) -> Misfits:
    """Sources that the policy, or a variant that it names, does not fit."""
    if system.policy is None:
        return
    try:
        system.policy.check_sources(system.runs, roles)
        for variant in system.policy.fixed_variants():
            system.with_variant(variant).fusion.check_sources(system.runs, roles)
    except ConfigError as error:
        yield ("policy",), error
