"""Paths of parameters in a system: values are read from there and written there.

Paths are those of the YAML, with what :mod:`fusion_bench.config.parameters` adds for tables.
Weights are read and set by source name, whatever roles the system's own weights go by, so that no
name and role can fit one source twice. Weights by query type add up to 1 after they are set.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from fusion_bench.blend import Blend, blends
from fusion_bench.config.models import parse_model
from fusion_bench.config.parameters import Params, Value
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.experiment.system import System
from fusion_bench.fuse import Fusion, fusions

#: Roles of each source, by its name.
SourceRoles = Mapping[str, frozenset[str]]
#: What :func:`value_at` finds where a system has no such place.
ABSENT: Final = object()

#: ``fusion(isr).k`` and ``fusion.k`` are one place under two conditions.
CONDITION = re.compile(r"\([^)]*\)")
TABLE_ENTRY = re.compile(r"(.+)\.(\d+)\.(value|ranks)")
SOURCE_WEIGHT = re.compile(r"fusion\.weights\.(.+)")
TYPE_WEIGHT = re.compile(r"weights_by_type\.([^.]+)\.(.+)")
TYPED_PATH = re.compile(r"by_query_type\.([^.]+)\.((?:fusion|blend)\..+)")
SOURCE_DEPTH = re.compile(r"depth\.(.+)")


def strip_conditions(path: str) -> str:
    """The place of a path in the system."""
    return CONDITION.sub("", path)


def apply_parameters(system: System, params: Params, roles: SourceRoles) -> System:
    """The system with these values in their places.

    Args:
        system: What stands everywhere else.
        params: Path → value.
        roles: Of the system's sources.

    Raises:
        ConfigError: No such place, or a value that its method refuses.
    """
    values = {strip_conditions(path): value for path, value in params.items()}
    by_type: dict[str, dict[str, Value]] = {}
    for path in [path for path in values if TYPED_PATH.fullmatch(path)]:
        query_type, inner = _split_typed_path(system, path)
        by_type.setdefault(query_type, {})[inner] = values.pop(path)
    data = _set_values(system, values, roles)
    for query_type, inner_values in by_type.items():
        variant = _set_values(system.of_type(query_type), inner_values, roles)
        data["by_query_type"][query_type] = {part: variant[part] for part in ("fusion", "blend")}
    return parse_model(System, data)


def _set_values(system: System, values: Mapping[str, Value], roles: SourceRoles) -> dict[str, Any]:
    """The system as plain data with these values in their places."""
    data = system.model_dump()
    for path in sorted(values, key=lambda path: path.count(".")):
        if path.endswith("method"):  # first, because it replaces what others stand in
            _set_method(data, system, path, str(values[path]))
    tables: dict[str, dict[tuple[int, str], float]] = {}
    weights: dict[str, float] = {}
    for path, value in values.items():
        if entry := TABLE_ENTRY.fullmatch(path):
            tables.setdefault(entry[1], {})[int(entry[2]), entry[3]] = _check_number(path, value)
        elif weight := SOURCE_WEIGHT.fullmatch(path):
            weights[weight[1]] = _check_number(path, value)
        elif not path.endswith("method"):
            _set_value(data, system, path, value)
    for path, entries in tables.items():
        parent, name = _find_parent(data, path)
        parent[name] = _change_table(parent.get(name), entries, path)
    if weights:
        _set_weights(data, weights, roles, system)
    if any(TYPE_WEIGHT.fullmatch(path) for path in values):
        _normalize_type_weights(data["weights_by_type"])
    return data


def read_parameter(system: System, path: str, roles: SourceRoles) -> Any:  # noqa: ANN401 - Value or ABSENT
    """What stands at a path; :data:`ABSENT` where there is no such place."""
    path = strip_conditions(path)
    if TYPED_PATH.fullmatch(path):
        query_type, inner = _split_typed_path(system, path)
        return read_parameter(system.of_type(query_type), inner, roles)
    if weight := SOURCE_WEIGHT.fullmatch(path):
        return _source_weights(system.fusion, system, roles).get(weight[1], ABSENT)
    data = system.model_dump()
    if entry := TABLE_ENTRY.fullmatch(path):
        limits = [(0, 0.0), *sorted((_read_path(data, entry[1]) or {}).items())]
        i = int(entry[2])
        if not 1 <= i < len(limits):
            return ABSENT
        return limits[i][1] if entry[3] == "value" else limits[i][0] - limits[i - 1][0]
    if (depth := SOURCE_DEPTH.fullmatch(path)) and not isinstance(data["depth"], dict):
        return data["depth"] if depth[1] in system.runs else ABSENT
    return _read_path(data, path, ABSENT)


def with_fusion(system: System, method: str) -> Fusion:
    """The system's fusion where it is of this method, otherwise the method's default."""
    return system.fusion if system.fusion.method == method else fusions.build(method)


def with_blend(system: System, method: str) -> Blend:
    """The system's blend with another method: what both have stays.

    Raises:
        ConfigError: The method needs what the system's blend has not: a reranker.
    """
    if system.blend.method == method:
        return system.blend
    try:
        fields = blends.find_plugin(method).model_fields
        data = {k: v for k, v in system.blend.model_dump().items() if k in fields}
        return blends.build(data | {"method": method})
    except ConfigError as error:
        raise ConfigError(
            f"blend {method!r}: {error} (give the system that is tuned a blend with a reranker: "
            "a search can switch it off)"
        ) from None


def _split_typed_path(system: System, path: str) -> tuple[str, str]:
    """The query type of a path, and the path in the system that answers it.

    Raises:
        ConfigError: The system has no answer of its own for that type.
    """
    match = TYPED_PATH.fullmatch(path)
    known = system.by_query_type or {}
    if match is None or match[1] not in known:
        listed = ", ".join(known) or "none"
        raise ConfigError(f"{path}: no such query type in the system (types: {listed})")
    return match[1], match[2]


def _set_method(data: dict[str, Any], system: System, path: str, method: str) -> None:
    """Replace a whole part by the default of another method."""
    part = path.rpartition(".")[0]
    parent, name = _find_parent(data, part)
    now = parent.get(name)
    if method != (now.get("method") if isinstance(now, dict) else now):
        blend = with_blend(system, method).model_dump() if part == "blend" else None
        parent[name] = blend or {"method": method}


def _set_value(data: dict[str, Any], system: System, path: str, value: Value) -> None:
    """Put a value where it stands; a name that ends a path may hold dots."""
    if depth := SOURCE_DEPTH.fullmatch(path):
        if not isinstance(data["depth"], dict):
            now = data["depth"]
            data["depth"] = {} if now is None else dict.fromkeys(system.runs, now)
        data["depth"][depth[1]] = value
    elif (typed := TYPE_WEIGHT.fullmatch(path)) and typed[1] in (data["weights_by_type"] or {}):
        data["weights_by_type"][typed[1]][typed[2]] = value
    else:
        parent, name = _find_parent(data, path)
        parent[name] = value


def _find_parent(data: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
    """The mapping that a path's last part is a key of; made where a method's default lacks it."""
    here = data
    *parts, name = path.split(".")
    for n, part in enumerate(parts, 1):
        inner = here.get(part, {} if part == "normalize" else None)
        if not isinstance(inner, dict):
            raise ConfigError(f"{path}: the system has nothing at {'.'.join(parts[:n])!r}")
        here[part] = inner
        here = inner
    return here, name


def _read_path(data: Any, path: str, default: Any = None) -> Any:  # noqa: ANN401 - plain data
    """What stands at a path of plain data."""
    parts = path.split(".")
    for n, part in enumerate(parts):
        if not isinstance(data, dict):
            return default
        rest = ".".join(parts[n:])
        if rest in data:  # a name that holds dots
            return data[rest]
        if part not in data:
            return default
        data = data[part]
    return data


def _change_table(
    now: Mapping[int, float] | None, entries: Mapping[tuple[int, str], float], path: str
) -> dict[int, float]:
    """A table from rank limits to values with some widths and values changed."""
    limits = sorted((now or {}).items())
    count = max(i for i, _ in entries)
    if count > len(limits):
        raise ConfigError(f"{path}: it has {len(limits)} entries, and {count} is asked for")
    changed: dict[int, float] = {}
    before = limit_after = 0
    for i, (limit, value) in enumerate(limits, 1):
        limit_after += int(entries.get((i, "ranks"), limit - before))
        before = limit
        changed[limit_after] = entries.get((i, "value"), value)
    return changed


def _source_weights(fusion: Fusion, system: System, roles: SourceRoles) -> dict[str, float]:
    """The weight of every source, by its name; none where the method has no weights."""
    if "weights" not in type(fusion).model_fields:
        return {}
    try:
        weights = fusion.source_weights(system.runs, [roles[name] for name in system.runs])
    except FusionBenchError:
        return {}
    return dict(zip(system.runs, weights.tolist(), strict=True))


def _set_weights(
    data: dict[str, Any], weights: Mapping[str, float], roles: SourceRoles, system: System
) -> None:
    """Put weights by source or role over those that the sources have now."""
    fusion = fusions.build(data["fusion"])
    now = _source_weights(fusion, system, roles) or dict.fromkeys(system.runs, 1.0)
    for key, weight in weights.items():
        meant = [name for name in system.runs if name == key or key in roles[name]]
        if not meant:
            raise ConfigError(
                f"fusion.weights.{key}: no source of that name or role (sources: "
                f"{', '.join(system.runs)})"
            )
        now |= dict.fromkeys(meant, weight)
    data["fusion"]["weights"] = now


def _normalize_type_weights(by_type: dict[str, dict[str, float]]) -> None:
    """Make the weights of each type add up to 1."""
    for query_type, weights in by_type.items():
        total = sum(weights.values())
        if total <= 0:
            raise ConfigError(f"weights_by_type.{query_type}: every weight is 0")
        by_type[query_type] = {key: weight / total for key, weight in weights.items()}


def _check_number(path: str, value: Value) -> float:
    if isinstance(value, str) or value is None:
        raise ConfigError(f"{path}: must be a number, given {value!r}")
    return float(value)
