"""The search space of a system: what its methods declare, narrowed or widened by YAML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from fusion_bench.config.parameters import Parameter, Params, Value, merge_parameters, real
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.experiment.tune_settings import DECLARED, ParameterRange
from fusion_bench.tune.space.parameter_paths import (
    SourceRoles,
    apply_parameters,
    strip_conditions,
    with_blend,
    with_fusion,
)

#: Paths of what may also be set for one source, by its name behind a dot.
FOR_ALL_SOURCES = re.compile(r"((by_query_type|by_intent)\.[^.]+\.)?(depth|fusion\.[^.]+)")


def declared_parameters(system: System) -> tuple[Parameter, ...]:
    """What the methods of a system and of its stages declare, as they stand in it."""
    stages = (
        parameter.add_prefix(f"stages.{name}")
        for name, stage in (system.stages or {}).items()
        for parameter in declared_parameters(stage)
    )
    return merge_parameters((*_own_parameters(system), *stages))


def _own_parameters(system: System) -> tuple[Parameter, ...]:
    if system.class_configs is not None:
        return merge_parameters(
            parameter.add_prefix(f"{system.class_field}.{name}")
            for name in system.class_configs
            for parameter in _own_parameters(system.of_class(name))
        )
    methods = {"fusion": system.fusion.method, "blend": system.blend.method}
    return merge_parameters(
        parameter
        for part, method in methods.items()
        for parameter in _part_parameters(system, part, method)
    ) + _policy_parameters(system)


def build_search_space(
    system: System,
    ranges: Mapping[str, ParameterRange | Literal["own"]] | None,
    roles: SourceRoles,
) -> tuple[Parameter, ...]:
    """What a search may change, every parameter after those that it depends on.

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
        _refuse_shared_paths(system, explicit)
        offered = [*declared_parameters(system), *_method_parameters(system, explicit)]
        asked = [path for path, given in ranges.items() if given == DECLARED]
        parameters = merge_parameters(_select_parameters(offered, asked, explicit))
    if not parameters:
        raise ConfigError("tune: nothing to tune: the system's methods declare no parameters")
    _refuse_overlaps(parameters)
    ordered = tuple(_order_by_conditions(_drop_empty_conditions(parameters)))
    for parameter in ordered:
        _check_path(system, parameter, ordered, roles)
    return ordered


def _refuse_shared_paths(system: System, paths: Iterable[str]) -> None:
    """Raise for a path of all queries in a system with parameters by class."""
    key, classes = system.class_key, tuple(system.class_configs or ())
    for path in paths:
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
        for part, method in (
            ("fusion", system.fusion),
            ("blend", system.blend),
            ("policy", system.policy),
        )
        for preset in (() if method is None else method.presets())
    ]
    fitting = [
        preset
        for preset in presets
        if all(path in known and known[path].contains(value) for path, value in preset.items())
    ]
    if len(fitting) > 1:
        fitting.append({path: value for preset in fitting for path, value in preset.items()})
    return tuple({**default, **preset} for preset in fitting)


def _policy_parameters(system: System) -> tuple[Parameter, ...]:
    """What the system's policy declares."""
    space = () if system.policy is None else system.policy.space(system.runs)
    return tuple(parameter.add_prefix("policy") for parameter in space)


def _part_parameters(system: System, part: str, method: str) -> Iterator[Parameter]:
    """What the fusion or the blend declares, with this method."""
    if part == "blend":
        yield from (parameter.add_prefix(part) for parameter in with_blend(system, method).space())
        return
    by_type = {} if system.weights_by_type is None else system.weights_by_type.root
    for parameter in with_fusion(system, method).space(system.runs):
        if not by_type or not parameter.path.startswith("weights."):
            yield parameter.add_prefix(part)
    for query_type, weights in by_type.items():
        for key in weights:
            yield real(f"weights_by_type.{query_type}.{key}", 0.0, 1.0)


def _method_parameters(system: System, explicit: Mapping[str, Parameter]) -> Iterator[Parameter]:
    """What the methods of ``fusion.method`` and ``blend.method`` declare."""
    for part in ("fusion", "blend"):
        path = f"{part}.method"
        for method in explicit[path].choices if path in explicit else ():
            for parameter in _part_parameters(system, part, str(method)):
                inside = parameter.path.startswith(part)
                yield parameter.add_condition(path, method) if inside else parameter


def _select_parameters(
    offered: Sequence[Parameter], asked: Sequence[str], explicit: Mapping[str, Parameter]
) -> Iterator[Parameter]:
    yield from explicit.values()
    methods = {f"{part}.method" for part in ("fusion", "blend")} & set(explicit)
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
            if strip_conditions(other.path).startswith(f"{path}.") and _may_meet(shared, other):
                raise ConfigError(f"tune: {shared.path} sets {other.path} too: keep one")


def _may_meet(a: Parameter, b: Parameter) -> bool:
    """Whether some values of other parameters let both take part."""
    conditions = dict(a.when)
    return all(set(allowed) & set(conditions.get(path, allowed)) for path, allowed in b.when)


def _drop_empty_conditions(parameters: Sequence[Parameter]) -> list[Parameter]:
    """Without conditions that every value of an unconditional choice fulfills."""
    free = {p.path: p.choices for p in parameters if p.kind == "choice" and not p.when}
    return [
        replace(
            parameter,
            when=tuple(
                (path, allowed)
                for path, allowed in parameter.when
                if path not in free or not set(free[path]) <= set(allowed)
            ),
        )
        for parameter in parameters
    ]


def _order_by_conditions(parameters: Sequence[Parameter]) -> Iterator[Parameter]:
    """Each parameter after the ones that its conditions look at."""
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


def _check_path(
    system: System, parameter: Parameter, ordered: Sequence[Parameter], roles: SourceRoles
) -> None:
    """Build a system with the parameter in it, for the error that a wrong path makes."""
    value = parameter.choices[0] if parameter.choices else parameter.high
    params: dict[str, Value] = {parameter.path: value}
    for dimension in reversed(ordered):
        if dimension.path in params:
            params = {path: allowed[0] for path, allowed in dimension.when} | params
    try:
        apply_parameters(system, params, roles)
    except ConfigError as error:
        raise ConfigError(f"tune: {parameter.path}: {error}") from None
