"""Fusion in stages: the list of one system is a source of another.

A stage is a system of its own under a name; ``runs`` of the system around it may hold that name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fusion_bench.experiment.system import System


def name_stages(data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
    """Stages as YAML says them, each with the name that its key states."""
    if not isinstance(data, Mapping):
        return data
    return {
        name: {**stage, "name": str(name)} if isinstance(stage, Mapping) else stage
        for name, stage in data.items()
    }


def check_stages(system: System) -> None:
    """Refuse stages that nothing reads.

    Raises:
        ValueError: A stage that ``runs`` does not name.
    """
    for name in system.stages or ():
        if name not in system.runs:
            raise ValueError(
                f"stage {name!r} is no source of the system: name it in runs, or remove it"
            )


def base_runs(system: System) -> tuple[str, ...]:
    """The dataset's runs that a system and its stages read, each once."""
    stages = system.stages or {}
    names = (base_runs(stages[run]) if run in stages else (run,) for run in system.runs)
    return tuple(dict.fromkeys(name for some in names for name in some))


def source_roles(system: System, roles: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Roles of the system's sources: a stage has those that all of its own sources share.

    Args:
        system: Any system.
        roles: Of the dataset's runs, by name.
    """
    stages = system.stages or {}
    by_source = {}
    for run in system.runs:
        if run in stages:
            inner = source_roles(stages[run], roles).values()
            by_source[run] = reduce(frozenset.intersection, inner)
        else:
            by_source[run] = roles[run]
    return by_source


def resolve_named_stages(systems: Mapping[str, Any]) -> dict[str, Any]:
    """Systems as YAML says them, with copies of those that stages name.

    Raises:
        ValueError: A stage names no system, or a system is a stage of itself.
    """
    return {name: _resolve_stages(name, spec, systems, ()) for name, spec in systems.items()}


def _resolve_stages(
    name: object,
    spec: Any,  # noqa: ANN401
    systems: Mapping[str, Any],
    outer: tuple[object, ...],
) -> Any:  # noqa: ANN401 - as YAML says it
    if not (isinstance(spec, Mapping) and isinstance(spec.get("stages"), Mapping)):
        return spec
    path = (*outer, name)
    stages = {}
    for stage, inner in spec["stages"].items():
        if not isinstance(inner, str):
            stages[stage] = _resolve_stages(stage, inner, systems, path)
            continue
        if inner not in systems:
            known = ", ".join(map(str, systems))
            raise ValueError(f"{name}: stage {stage!r}: unknown system {inner!r} (known: {known})")
        if inner in path:
            raise ValueError(f"{name}: stage {stage!r}: {inner!r} would be a stage of itself")
        named = _resolve_stages(inner, systems[inner], systems, path)
        is_mapping = isinstance(named, Mapping)
        stages[stage] = {key: named[key] for key in named if key != "name"} if is_mapping else named
    return {**spec, "stages": stages}
