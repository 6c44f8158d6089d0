"""The search space of a system: its parameters, their paths, their ranges.

Paths are those of the YAML, with what :mod:`fusion_bench.config.parameters` adds for tables.
Weights, and other numbers that may differ per source, are read and set by source name, whatever
roles the system's own go by, so that no name and role can fit one source twice. Weights by query
type add up to 1 after they are set.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from fusion_bench.config.models import parse_model
from fusion_bench.config.parameters import Parameter, Params, Value, real
from fusion_bench.config.query_types import CLASS_KEYS
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.experiment.settings import DECLARED, ParameterRange
from fusion_bench.experiment.system import System, source_roles
from fusion_bench.methods.blend import Blend, blends
from fusion_bench.methods.fuse import Fusion

#: Roles of each source, by its name.
SourceRoles = Mapping[str, frozenset[str]]
#: What :func:`read_parameter` returns where a system has no such place.
ABSENT: Final = object()

#: ``fusion(isr).k`` and ``fusion.k`` are one place under two conditions.
CONDITION = re.compile(r"\([^)]*\)")
SOURCE_WEIGHT = re.compile(r"fusion\.weights\.(.+)")
SOURCE_NUMBER = re.compile(r"fusion\.([^.]+)\.(.+)")
TYPE_WEIGHT = re.compile(r"weights_by_type\.([^.]+)\.(.+)")
CLASS_PATH = re.compile(r"(by_query_type|by_intent)\.([^.]+)\.((?:fusion|blend)\..+)")
#: Entries of tables, and weights.
NUMBER = re.compile(r".+\.\d+\.(value|ranks)|fusion\.weights\..+|weights_by_type\..+")


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
    by_class: dict[str, dict[str, Value]] = {}
    for path in list(values):
        if match := CLASS_PATH.fullmatch(path):
            key = CLASS_KEYS[match[1]]
            known = (system.class_configs or {}) if system.class_key is key else {}
            if match[2] not in known:
                listed = ", ".join(known) or "none"
                raise ConfigError(
                    f"{path}: no such {key.title} in the system ({key.field}s: {listed})"
                )
            by_class.setdefault(match[2], {})[match[3]] = values.pop(path)
    stages: dict[str, dict[str, Value]] = {}
    for name in system.stages or ():
        inside = [path for path in values if path.startswith(f"stages.{name}.")]
        stages[name] = {path.removeprefix(f"stages.{name}."): values.pop(path) for path in inside}
    data = _set_values(system, values, roles)
    for name, inner_values in stages.items():
        stage = (system.stages or {})[name]
        data["stages"][name] = apply_parameters(
            stage, inner_values, stage_roles(stage, roles)
        ).model_dump()
    for name, inner_values in by_class.items():
        variant = _set_values(system.of_class(name), inner_values, roles)
        data[system.class_field][name] = {part: variant[part] for part in ("fusion", "blend")}
    return parse_model(System, data)


def read_parameter(system: System, path: str, roles: SourceRoles) -> Any:  # noqa: ANN401 - Value or ABSENT
    """Read the value at a path; :data:`ABSENT` if there is no such place."""
    path = strip_conditions(path)
    if match := CLASS_PATH.fullmatch(path):
        is_known = match[1] == system.class_field and match[2] in (system.query_classes or ())
        return read_parameter(system.of_class(match[2]), match[3], roles) if is_known else ABSENT
    for name, stage in (system.stages or {}).items():
        if path.startswith(prefix := f"stages.{name}."):
            return read_parameter(stage, path.removeprefix(prefix), stage_roles(stage, roles))
    data = _open_places(system.model_dump(), [path], system, roles)
    mapping, key = _find_mapping(data, path)
    value = mapping.get(key, ABSENT)
    is_per_source = isinstance(value, dict) and path in {
        f"fusion.{field}" for field in _per_source_fields(data, system)
    }
    return ABSENT if is_per_source else value


def with_fusion(system: System, method: str) -> Fusion:
    """The system's fusion where it is of this method, otherwise the method's default.

    Raises:
        ConfigError: An unknown method, or an alias, which is a method with parameters.
    """
    alias = system.fusions.find_alias(method)
    if alias is not None:
        meant = ", ".join(f"{key}: {value}" for key, value in alias.items())
        raise ConfigError(f"{method!r} means {{{meant}}}: name {alias['method']!r} here")
    return system.fusion if system.fusion.method == method else system.fusions.build(method)


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


def stage_roles(stage: System, roles: SourceRoles) -> SourceRoles:
    """Roles of the sources of a stage, beside those of the system around it."""
    return {**roles, **source_roles(stage, roles)}


def _set_values(system: System, values: Mapping[str, Value], roles: SourceRoles) -> dict[str, Any]:
    """The system as plain data with these values in their places."""
    data = system.model_dump()
    methods = [path for path in values if path.endswith(".method")]
    for path in sorted(methods, key=lambda path: path.count(".")):
        _set_method(data, system, path, str(values[path]))  # replaces what others stand in
    data = _open_places(data, list(values), system, roles)
    for path, value in values.items():
        if NUMBER.fullmatch(path) and (isinstance(value, str) or value is None):
            raise ConfigError(f"{path}: must be a number, given {value!r}")
        mapping, key = _find_mapping(data, path)
        if 1 in mapping:
            raise ConfigError(f"{path}: no such entry: the table has {len(mapping)} entries")
        mapping |= dict.fromkeys(_named_sources(path, data, system, roles) or [key], value)
    for query_type, weights in (data["weights_by_type"] or {}).items():
        if any(path.startswith("weights_by_type.") for path in values):
            if not (total := sum(weights.values())) > 0:
                raise ConfigError(f"weights_by_type.{query_type}: every weight is 0")
            weights |= {key: weight / total for key, weight in weights.items()}
    if system.collapse is not None and values.get("collapse.score", "rrf") != "rrf":
        del data["collapse"]["k"]  # of the score that is replaced
    if isinstance(data["depth"], dict):
        data["depth"] = {name: depth for name, depth in data["depth"].items() if depth is not None}
    plain: dict[str, Any] = _join_tables(data)
    return plain


def _set_method(data: dict[str, Any], system: System, path: str, method: str) -> None:
    """Replace a whole part by the default of another method."""
    if path == "fusion.method":
        data["fusion"] = with_fusion(system, method).model_dump()
    elif path == "blend.method":
        data["blend"] = with_blend(system, method).model_dump()
    else:
        mapping, key = _find_mapping(data, path)
        if key == "method" and mapping.get(key) != method:
            mapping.clear()
        mapping[key] = method


def _find_mapping(data: dict[Any, Any], path: str) -> tuple[dict[Any, Any], str]:
    """The innermost mapping on a path, and the key there: a name that may hold dots."""
    for key in sorted(data, key=lambda key: -len(str(key))):
        if isinstance(data[key], dict) and path.startswith(f"{key}."):
            return _find_mapping(data[key], path.removeprefix(f"{key}."))
    return data, path


def _open_places(
    data: dict[str, Any], paths: Sequence[str], system: System, roles: SourceRoles
) -> dict[str, Any]:
    """The data with every entry of a table, and each source's depth and weight where asked for."""
    if any(path.startswith("depth.") for path in paths) and not isinstance(data["depth"], dict):
        data["depth"] = dict.fromkeys(system.runs, data["depth"])
    source_roles = [roles[name] for name in system.runs]
    for field in _per_source_fields(data, system):
        if any(path.startswith(f"fusion.{field}.") for path in paths):
            fusion = system.fusions.build(data["fusion"])
            numbers = fusion.source_numbers(field, system.runs, source_roles).tolist()
            data["fusion"][field] = dict(zip(system.runs, numbers, strict=True))
    if any(SOURCE_WEIGHT.fullmatch(path) for path in paths) and "weights" in data["fusion"]:
        weights = [1.0] * len(system.runs)
        with contextlib.suppress(FusionBenchError):
            fusion = system.fusions.build(data["fusion"])
            weights = fusion.source_weights(system.runs, source_roles).tolist()
        data["fusion"]["weights"] = dict(zip(system.runs, weights, strict=True))
        data["fusion"].pop("alpha", None)  # the weights stand for it
    opened: dict[str, Any] = _split_tables(data)
    return opened


def _per_source_fields(data: Mapping[str, Any], system: System) -> frozenset[str]:
    """The parameters of the fusion that may differ per source."""
    return frozenset(system.fusions.find_model(data["fusion"]).per_source)


def _named_sources(
    path: str, data: Mapping[str, Any], system: System, roles: SourceRoles
) -> list[str]:
    """The sources whose number a path sets, by name or role; none where it sets no such number."""
    number = SOURCE_NUMBER.fullmatch(path)
    if not number or number[1] not in {"weights", *_per_source_fields(data, system)}:
        return []
    meant = [name for name in system.runs if name == number[2] or number[2] in roles[name]]
    if not meant:
        sources = ", ".join(system.runs)
        raise ConfigError(f"{path}: no source of that name or role (sources: {sources})")
    return meant


def _split_tables(data: Any) -> Any:  # noqa: ANN401 - plain data
    """Tables from rank limits to values as numbered entries of ``value`` and ``ranks``."""
    if not isinstance(data, dict):
        return data
    if not all(isinstance(key, int) for key in data):
        return {key: _split_tables(value) for key, value in data.items()}
    limits = sorted(data)
    spans = enumerate(zip([0, *limits], limits, strict=False), 1)
    return {i: {"value": data[limit], "ranks": limit - before} for i, (before, limit) in spans}


def _join_tables(data: Any) -> Any:  # noqa: ANN401 - plain data
    """Numbered entries as tables from rank limits to values."""
    if not isinstance(data, dict):
        return data
    if 1 not in data:
        return {key: _join_tables(value) for key, value in data.items()}
    limits = itertools.accumulate(int(entry["ranks"]) for entry in data.values())
    return dict(zip(limits, (entry["value"] for entry in data.values()), strict=True))


#: Paths of what may also be set for one source, by its name behind a dot.
FOR_ALL_SOURCES = re.compile(r"((by_query_type|by_intent)\.[^.]+\.)?(depth|fusion\.[^.]+)")


def merge_parameters(parameters: Iterable[Parameter]) -> tuple[Parameter, ...]:
    """One parameter a path: equal ones under several values of a choice take part under each.

    Parameters of one path and different ranges cannot be one dimension: the later ones get their
    condition's value into their name, ``fusion(isr).k``, which stands for the same place.
    """
    by_path: dict[str, Parameter] = {}
    for parameter in parameters:
        path, when = parameter.path, parameter.when
        known = by_path.get(path, parameter)
        same_range = replace(known, when=()) == replace(parameter, when=())
        if not same_range or [p for p, _ in known.when] != [p for p, _ in when]:
            head, _, rest = path.partition(".")
            path = f"{head}({when[-1][1][0]}).{rest}" if when else path
            if path in by_path or path == parameter.path:
                raise ConfigError(f"{parameter.path}: two ranges for one parameter: keep one")
        if path in by_path:
            pairs = zip(by_path[path].when, when, strict=True)
            when = tuple((other, tuple(dict.fromkeys(a + b))) for (other, a), (_, b) in pairs)
        by_path[path] = replace(parameter, path=path, when=when)
    return tuple(by_path.values())


def declared_parameters(system: System) -> tuple[Parameter, ...]:
    """Parameters that the methods of a system and of its stages declare, and how it collapses."""
    collapse = (
        ()
        if system.collapse is None
        else system.collapse.space(is_reranked=bool(system.reranker_names))
    )
    own = (*_own_parameters(system), *(each.add_prefix("collapse") for each in collapse))
    stages = (
        parameter.add_prefix(f"stages.{name}")
        for name, stage in (system.stages or {}).items()
        for parameter in declared_parameters(stage)
    )
    return merge_parameters((*own, *stages))


def _own_parameters(system: System) -> tuple[Parameter, ...]:
    if system.class_configs is not None:
        return merge_parameters(
            parameter.add_prefix(f"{system.class_field}.{name}")
            for name in system.class_configs
            for parameter in _own_parameters(system.of_class(name))
        )
    methods = {"fusion": system.fusion.method, "blend": system.blend.method}
    parts = (_part_parameters(system, part, method) for part, method in methods.items())
    return merge_parameters(itertools.chain.from_iterable(parts))


def build_search_space(
    system: System,
    ranges: Mapping[str, ParameterRange | Literal["own"]] | None,
    roles: SourceRoles,
) -> tuple[Parameter, ...]:
    """Build the space of a search, every parameter after those that it depends on.

    A choice between methods brings what each of them declares, under that choice.

    Args:
        system: The default.
        ranges: As in ``tune.parameters``; None = all that is declared.
        roles: Of the system's sources.

    Raises:
        ConfigError: A path that leads nowhere, a broken range, or nothing left to tune.
    """
    if ranges is None:
        parameters = declared_parameters(system)
    else:
        explicit = {
            path: given.to_parameter(path)
            for path, given in ranges.items()
            if isinstance(given, ParameterRange)
        }
        _refuse_misfits(system, ranges)
        asked = [path for path, given in ranges.items() if given == DECLARED]
        parameters = merge_parameters(_select_parameters(system, asked, explicit))
    if not parameters:
        raise ConfigError("tune: nothing to tune: the system's methods declare no parameters")
    _refuse_overlaps(parameters)
    free = {p.path: p.choices for p in parameters if p.kind == "choice" and not p.when}
    needed = []  # without conditions that always hold
    for parameter in parameters:
        when = ((p, v) for p, v in parameter.when if p not in free or not set(free[p]) <= set(v))
        needed.append(replace(parameter, when=tuple(when)))
    ordered = tuple(_order_by_conditions(needed))
    for parameter in ordered:  # the system accepts each, with what its conditions name
        value = parameter.choices[0] if parameter.choices else parameter.high
        params: dict[str, Value] = {parameter.path: value}
        for dimension in reversed(ordered):
            if dimension.path in params:
                params = {path: allowed[0] for path, allowed in dimension.when} | params
        try:
            apply_parameters(system, params, roles)
        except ConfigError as error:
            raise ConfigError(f"tune: {parameter.path}: {error}") from None
    return ordered


def _refuse_misfits(system: System, paths: Iterable[str]) -> None:
    """Raise for a path of all queries in a system with parameters by class, or of by: id."""
    key, classes = system.class_key, tuple(system.class_configs or ())
    is_by_id = system.collapse is not None and system.collapse.by == "id"
    for path in paths:
        if is_by_id and _is_below(path, "collapse"):
            raise ConfigError(
                f"{path}: by: id merges rows while lists are read, before the search: leave the "
                "path out, and tune once with each score"
            )
        if key is not None and classes and path.startswith(("fusion.", "blend.")):
            raise ConfigError(
                f"{path}: this system has parameters for each {key.title}: name one, such as "
                f"{key.key}.{classes[0]}.{path}"
            )


def preset_params(
    system: System, parameters: Sequence[Parameter], default: Params
) -> tuple[Params, ...]:
    """The default with each preset of its methods and with all, where they are in the space."""
    known = {parameter.path: parameter for parameter in parameters}
    presets = [
        {f"{part}.{path}": value for path, value in preset.items()}
        for part, method in (("fusion", system.fusion), ("blend", system.blend))
        for preset in method.presets()
    ]
    fitting = [
        preset
        for preset in presets
        if all(path in known and known[path].contains(value) for path, value in preset.items())
    ]
    if len(fitting) > 1:
        fitting.append({path: value for preset in fitting for path, value in preset.items()})
    return tuple({**default, **preset} for preset in fitting)


def _part_parameters(system: System, part: str, method: str) -> Iterator[Parameter]:
    """Parameters that the fusion or the blend declares with this method."""
    if part == "blend":
        yield from (parameter.add_prefix(part) for parameter in with_blend(system, method).space())
        return
    by_type = {} if system.weights_by_type is None else system.weights_by_type
    for parameter in with_fusion(system, method).space(system.runs):
        if not by_type or not parameter.path.startswith("weights."):
            yield parameter.add_prefix(part)
    for query_type, weights in by_type.items():
        for key in weights:
            yield real(f"weights_by_type.{query_type}.{key}", 0.0, 1.0)


def _select_parameters(
    system: System, asked: Sequence[str], explicit: Mapping[str, Parameter]
) -> Iterator[Parameter]:
    """Yield the parameters with a range, and those that are declared and asked for.

    A choice of ``fusion.method`` or ``blend.method`` asks for the parameters of each method.
    """
    yield from explicit.values()
    methods = {f"{part}.method" for part in ("fusion", "blend")} & set(explicit)
    offered = [*declared_parameters(system)]
    for part in ("fusion", "blend"):
        path = f"{part}.method"
        for method in explicit[path].choices if path in explicit else ():
            for parameter in _part_parameters(system, part, str(method)):
                inside = parameter.path.startswith(part)
                offered.append(parameter.add_condition(path, method) if inside else parameter)
    for path in asked:
        if not any(_is_below(parameter.path, path) for parameter in offered):
            known = ", ".join(dict.fromkeys(parameter.path for parameter in offered))
            raise ConfigError(f"{path}: nothing is declared there (declared: {known or 'nothing'})")
    for parameter in offered:
        if parameter.path in explicit:
            continue
        part = f"{parameter.path.partition('.')[0]}.method"
        conditional = any(path in methods for path, _ in parameter.when)
        listed = any(_is_below(parameter.path, path) for path in asked)
        if conditional or (part not in methods and listed):
            yield parameter


def _is_below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(f"{prefix}.")


def _refuse_overlaps(parameters: Sequence[Parameter]) -> None:
    """Raise for a number for all sources beside the same number of one source."""
    for shared in parameters:
        path = strip_conditions(shared.path)
        for other in parameters if FOR_ALL_SOURCES.fullmatch(path) else ():
            conditions = dict(shared.when)
            may_meet = all(
                set(allowed) & set(conditions.get(name, allowed)) for name, allowed in other.when
            )
            if strip_conditions(other.path).startswith(f"{path}.") and may_meet:
                raise ConfigError(f"tune: {shared.path} sets {other.path} too: keep one")


def _order_by_conditions(parameters: Sequence[Parameter]) -> Iterator[Parameter]:
    """Order the parameters, each after those that its conditions name."""
    paths = {parameter.path for parameter in parameters}
    for parameter in parameters:
        for other, _ in parameter.when:
            if other not in paths:
                raise ConfigError(
                    f"{parameter.path}: when: {other!r} is not a parameter (known: "
                    f"{', '.join(sorted(paths))})"
                )
    left, done = list(parameters), set[str]()
    while left:
        ready = [parameter for parameter in left if all(path in done for path, _ in parameter.when)]
        if not ready:
            raise ConfigError(f"{left[0].path}: when: conditions go round in a circle")
        yield from ready
        done |= {parameter.path for parameter in ready}
        left = [parameter for parameter in left if parameter not in ready]
