"""A plain system without some of its sources, as if each of them weighed 0."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fusion_bench.fuse import Fusion
from fusion_bench.normalize.by_source import BySource

if TYPE_CHECKING:
    from fusion_bench.experiment.system import System

Roles = Sequence[frozenset[str]]


def remove_sources(system: System, removed: Collection[str], roles: Roles) -> System:
    """The system of the other sources, with the weights and numbers that they have in it.

    A system of which no source with a weight above 0 would be left keeps those: where all of
    them are off, none returns a document.

    Args:
        system: A plain system.
        removed: Names of sources.
        roles: Of each of the system's sources, (S,).

    Raises:
        ConfigError: The sources do not fit the fusion, with or without these.
    """
    system.fusion.check_sources(system.runs, roles)
    weights = system.fusion.source_weights(system.runs, roles).tolist()
    weighed = [name for name, weight in zip(system.runs, weights, strict=True) if weight > 0]
    kept = [name for name in system.runs if name not in removed]
    if not set(kept) & set(weighed):
        kept = weighed
    stages = {name: stage for name, stage in (system.stages or {}).items() if name in kept}
    kept_roles = [role for name, role in zip(system.runs, roles, strict=True) if name in kept]
    by_name = dict(zip(system.runs, weights, strict=True))
    fusion = _keep_numbers(system.fusion, kept, kept_roles, by_name)
    fusion.check_sources(kept, kept_roles)
    changed = {"runs": tuple(kept), "fusion": fusion, "stages": stages or None}
    return system.model_copy(update=changed)


def _keep_numbers(
    fusion: Fusion, kept: Sequence[str], roles: Roles, weights: Mapping[str, float]
) -> Fusion:
    """The fusion without the numbers of sources that are gone."""
    present = {*kept, *(role for names in roles for role in names)}
    changed: dict[str, Any] = {}
    for name in ("weights", *fusion.per_source):
        numbers = getattr(fusion, name, None)
        if isinstance(numbers, Mapping):
            changed[name] = {key: value for key, value in numbers.items() if key in present}
    scale = getattr(fusion, "normalize", None)
    if isinstance(scale, BySource):
        scales = {key: value for key, value in scale.sources.items() if key in present}
        changed["normalize"] = scale.model_copy(update={"sources": scales})
    if "weights" in type(fusion).model_fields and getattr(fusion, "alpha", None) is not None:
        changed |= {"alpha": None, "weights": {name: weights[name] for name in kept}}
    return fusion.model_copy(update=changed) if changed else fusion
