"""Normalization of weights of which only the ratio counts.

In most systems scaling all weights by one factor changes no rank. Such weights are divided by the
greatest one (weights by query type by their sum). Then equal systems have equal parameters: folds
that agree look alike, and a sampler does not try one system twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from fusion_bench.blend.none import NoBlend
from fusion_bench.blend.replace import Replace
from fusion_bench.config.parameters import Parameter, Params, Value
from fusion_bench.experiment.system import System
from fusion_bench.tune.space.parameter_paths import (
    CLASS_PATH,
    SOURCE_WEIGHT,
    TYPE_WEIGHT,
    SourceRoles,
    strip_conditions,
)

#: Retrieval terms that divide out the scale of the fused scores.
DIVIDED = ("fused_min_max", "fused_max_possible")


def normalize_weights(params: Params, parameters: Sequence[Parameter], free: Set[str]) -> Params:
    """The same system's parameters with the greatest weight of each free group at 1.

    Where a range does not allow 1, it is as near to 1 as all ranges allow, which still depends only
    on the ratio. Parameters with steps stay as they are.

    Args:
        params: Path → value.
        parameters: The space.
        free: What :func:`find_free_weights` returns for these.
    """
    known = {parameter.path: parameter for parameter in parameters if parameter.path in free}
    normalized = dict(params)
    for (_, are_shares), names in _weight_groups(params).items():
        members = {path: known[path] for path in names if path in known}
        if len(members) == len(names):
            normalized |= _divide_weights(params, members, by_sum=are_shares)
    return normalized


def find_free_weights(system: System, params: Params, roles: SourceRoles) -> frozenset[str]:
    """The paths of the weights of which only the ratio counts.

    Args:
        system: With these values.
        params: Path → value.
        roles: Of the system's sources.
    """
    return frozenset(
        path
        for (query_class, are_shares), names in _weight_groups(params).items()
        if _is_free(system, query_class, are_shares, set(names.values()), roles)
        for path in names
    )


def _weight_groups(params: Params) -> dict[tuple[str, bool], dict[str, str]]:
    """Weights that are scaled together: their paths, each with the name or role of its source.

    The key says whose they are (empty = of all queries), and whether they add up to 1.
    """
    groups: dict[tuple[str, bool], dict[str, str]] = {}
    for path in params:
        plain, name = strip_conditions(path), ""
        if share := TYPE_WEIGHT.fullmatch(plain):
            groups.setdefault((share[1], True), {})[path] = share[2]
            continue
        if match := CLASS_PATH.fullmatch(plain):
            name, plain = match[2], match[3]
        if weight := SOURCE_WEIGHT.fullmatch(plain):
            groups.setdefault((name, False), {})[path] = weight[1]
    return groups


def _is_free(
    system: System, query_class: str, are_shares: bool, names: Set[str], roles: SourceRoles
) -> bool:
    """Whether scaling these weights changes no rank: the group has all of them."""
    if are_shares:
        by_type = system.weights_by_type.root if system.weights_by_type is not None else {}
        return all(key in names for key, w in by_type.get(query_class, {}).items() if w > 0)
    if system.weights_by_type is not None:
        return False
    plain = system.of_class(query_class) if query_class else system
    named = (not names.isdisjoint({name, *roles[name]}) for name in plain.runs)
    return all(named) and _ignores_score_scale(plain)


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
    params: Params, members: Mapping[str, Parameter], *, by_sum: bool
) -> dict[str, Value]:
    """The weights over one divisor, inside their ranges; nothing where that cannot be."""
    for path, p in members.items():
        if p.kind != "float" or p.step is not None or not p.contains(params[path]):
            return {}
    weights = {path: float(str(params[path])) for path in members}
    positive = {path: weight for path, weight in weights.items() if weight > 0}
    if not positive:
        return {}
    divisor: float = sum(positive.values(), 0.0) if by_sum else max(positive.values())
    divisor = max(divisor, *(w / members[path].bounds[1] for path, w in positive.items()))
    lows = {path: members[path].bounds[0] for path in positive}
    divisor = min([divisor, *(w / lows[path] for path, w in positive.items() if lows[path] > 0)])
    if divisor == 1:
        return {}
    return {path: members[path].round_value(w / divisor) for path, w in positive.items()}
