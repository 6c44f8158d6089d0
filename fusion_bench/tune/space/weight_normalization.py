"""One form for weights of which only the ratio counts.

Scaling all weights by one factor changes no rank of most systems, so a sampler proposes one system
under many names: folds that agree seem to differ, and what was tried is tried again. Such weights
are divided by the greatest one; weights by query type by their sum, as they are used.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from fusion_bench.blend.none import NoBlend
from fusion_bench.blend.replace import Replace
from fusion_bench.config.parameters import Parameter, Params, Value
from fusion_bench.experiment.system import System
from fusion_bench.tune.space.parameter_paths import (
    CONDITION,
    SOURCE_WEIGHT,
    TYPE_WEIGHT,
    TYPED_PATH,
    SourceRoles,
)

__all__ = ["find_free_weights", "normalize_weights", "structure_key"]

#: Readings of the retrieval term that divide the scale of the fused scores out.
DIVIDED = ("fused_min_max", "fused_max_possible")


class _WeightGroup(NamedTuple):
    """Weights that go together: path → name or role; of one query type, perhaps its shares."""

    names: Mapping[str, str]
    query_type: str
    shares: bool


def normalize_weights(params: Params, parameters: Sequence[Parameter], free: Set[str]) -> Params:
    """The same system's parameters with the greatest weight of each free group at 1.

    Where a range does not let it be 1, it is as near to 1 as all ranges let it, which still depends
    on nothing but the ratio. Numbers with steps stay as they are.

    Args:
        params: Path → value.
        parameters: The space.
        free: What :func:`free_weights` says of these.
    """
    known = {one.path: one for one in parameters}
    found = dict(params)
    for group in _weight_groups(params) if free else ():
        own = {path: known[path] for path in group.names if path in known and path in free}
        if len(own) == len(group.names):
            found |= _divide_weights(params, own, by_sum=group.shares)
    return found


def find_free_weights(system: System, params: Params, roles: SourceRoles) -> frozenset[str]:
    """The paths of the weights of which only the ratio counts.

    Args:
        system: With these values.
        params: Path → value.
        roles: Of the system's sources.
    """
    return frozenset(
        path
        for group in _weight_groups(params)
        if _is_free(system, group, roles)
        for path in group.names
    )


def structure_key(params: Params) -> Hashable:
    """All that :func:`free_weights` hangs on: which parameters there are, choices, and zeros."""
    return tuple(
        (path, value == 0 if isinstance(value, float | int) else value)
        for path, value in params.items()
    )


def _weight_groups(params: Params) -> Iterator[_WeightGroup]:
    found: dict[tuple[str, bool], dict[str, str]] = {}
    for path in params:
        plain, query_type = CONDITION.sub("", path), ""
        if share := TYPE_WEIGHT.fullmatch(plain):
            found.setdefault((share[1], True), {})[path] = share[2]
            continue
        if typed := TYPED_PATH.fullmatch(plain):
            query_type, plain = typed[1], typed[2]
        if weight := SOURCE_WEIGHT.fullmatch(plain):
            found.setdefault((query_type, False), {})[path] = weight[1]
    for (query_type, shares), names in found.items():
        yield _WeightGroup(names, query_type, shares)


def _is_free(system: System, group: _WeightGroup, roles: SourceRoles) -> bool:
    """Whether scaling these weights changes no rank: they are all there are, and nobody looks."""
    names = set(group.names.values())
    if group.shares:
        by_type = system.weights_by_type.root if system.weights_by_type is not None else {}
        return all(key in names for key, w in by_type.get(group.query_type, {}).items() if w > 0)
    if system.weights_by_type is not None:
        return False
    own = system.of_type(group.query_type) if group.query_type else system
    named = (not names.isdisjoint({name, *roles[name]}) for name in own.runs)
    return all(named) and _ignores_score_scale(own)


def _ignores_score_scale(system: System) -> bool:
    """Whether nothing after the fusion sees the scale of its scores."""
    homogeneity = system.fusion.weight_homogeneity
    if homogeneity == 0:
        return True
    if not system.fusion.weight_scale_invariant or system.min_relevance is not None:
        return False
    if isinstance(system.blend, NoBlend | Replace):
        return True
    retrieval = getattr(system.blend, "retrieval", None)
    return retrieval == "reciprocal_rank" or (homogeneity == 1 and retrieval in DIVIDED)


def _divide_weights(
    params: Params, own: Mapping[str, Parameter], *, by_sum: bool
) -> dict[str, Value]:
    """The weights over one divisor, inside their ranges; nothing where that cannot be."""
    weights: dict[str, float] = {}
    for path, one in own.items():
        value = params[path]
        if one.kind != "float" or one.step is not None or not one.contains(value):
            return {}
        weights[path] = float(str(value))
    positive = {path: weight for path, weight in weights.items() if weight > 0}
    if not positive:
        return {}
    divisor: float = sum(positive.values(), 0.0) if by_sum else max(positive.values())
    divisor = max(divisor, *(w / own[path].bounds[1] for path, w in positive.items()))
    lows = {path: own[path].bounds[0] for path in positive}
    divisor = min([divisor, *(w / lows[path] for path, w in positive.items() if lows[path] > 0)])
    if divisor == 1:
        return {}
    return {path: own[path].round_value(w / divisor) for path, w in positive.items()}
