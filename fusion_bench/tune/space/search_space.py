"""The search space of a system: what its methods declare, narrowed or widened by YAML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from fusion_bench.config.parameters import Parameter, Params, Value, merged, real
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.experiment.tune_settings import DECLARED, ParameterRange
from fusion_bench.tune.space.parameter_paths import (
    SourceRoles,
    apply_parameters,
    with_blend,
    with_fusion,
)

__all__ = ["build_search_space", "declared_parameters", "preset_params"]


def declared_parameters(system: System) -> tuple[Parameter, ...]:
    """What the methods of a system declare, as they stand in it."""
    if system.by_query_type is not None:
        return merged(
            one.add_prefix(f"by_query_type.{query_type}")
            for query_type in system.by_query_type
            for one in declared_parameters(system.of_type(query_type))
        )
    return merged(
        [
            *_fusion_parameters(system, system.fusion.method),
            *(one.add_prefix("blend") for one in system.blend.space()),
        ]
    )


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
        found = declared_parameters(system)
    else:
        own = {path: one for path, one in ranges.items() if isinstance(one, ParameterRange)}
        explicit = {path: one.to_parameter(path) for path, one in own.items()}
        _refuse_overruled_paths(system, explicit)
        offered = [*declared_parameters(system), *_method_parameters(system, explicit)]
        asked = [path for path, one in ranges.items() if one == DECLARED]
        found = merged(_select_parameters(offered, asked, explicit))
    if not found:
        raise ConfigError("tune: nothing to tune: the system's methods declare no parameters")
    ordered = tuple(_order_by_conditions(_drop_empty_conditions(found)))
    for one in ordered:
        _check_path(system, one, ordered, roles)
    return ordered


def preset_params(system: System, parameters: Sequence[Parameter]) -> tuple[Params, ...]:
    """What the methods' sources suggest, each alone and all together, where it is in space."""
    known = {one.path: one for one in parameters}
    offered = [
        {f"{part}.{path}": value for path, value in one.items()}
        for part, method in (("fusion", system.fusion), ("blend", system.blend))
        for one in method.presets()
    ]
    fitting = [
        one
        for one in offered
        if all(path in known and known[path].contains(value) for path, value in one.items())
    ]
    together: dict[str, Value] = {}
    for one in fitting:
        together |= one
    return (*fitting, together) if len(fitting) > 1 else tuple(fitting)


def _refuse_overruled_paths(system: System, paths: Iterable[str]) -> None:
    """Numbers that no query is answered by are not worth a search."""
    for path in paths if system.by_query_type is not None else ():
        if path.startswith(("fusion.", "blend.")):
            first = next(iter(system.by_query_type or ()))
            raise ConfigError(
                f"{path}: this system answers each query type by its own numbers: name one, such "
                f"as by_query_type.{first}.{path}"
            )


def _fusion_parameters(system: System, method: str) -> Iterator[Parameter]:
    for one in with_fusion(system, method).space(system.runs):
        if system.weights_by_type is None or not one.path.startswith("weights."):
            yield one.add_prefix("fusion")
    if system.weights_by_type is not None:
        for query_type, weights in system.weights_by_type.root.items():
            for key in weights:
                yield real(f"weights_by_type.{query_type}.{key}", 0.0, 1.0)


def _method_parameters(system: System, explicit: Mapping[str, Parameter]) -> Iterator[Parameter]:
    """What the methods of ``fusion.method`` and ``blend.method`` declare."""
    for part in ("fusion", "blend"):
        path = f"{part}.method"
        for method in explicit[path].choices if path in explicit else ():
            if part == "fusion":
                found = list(_fusion_parameters(system, str(method)))
            else:
                found = [one.add_prefix(part) for one in with_blend(system, str(method)).space()]
            for one in found:
                yield one.add_condition(path, method) if one.path.startswith(part) else one


def _select_parameters(
    offered: Sequence[Parameter], asked: Sequence[str], explicit: Mapping[str, Parameter]
) -> Iterator[Parameter]:
    yield from explicit.values()
    methods = {f"{part}.method" for part in ("fusion", "blend")} & set(explicit)
    for path in asked:
        if not any(_is_below(one.path, path) for one in offered):
            known = ", ".join(dict.fromkeys(one.path for one in offered))
            raise ConfigError(f"{path}: nothing is declared there (declared: {known or 'nothing'})")
    for one in offered:
        if one.path in explicit:
            continue
        part = f"{one.path.partition('.')[0]}.method"
        conditional = any(path in methods for path, _ in one.when)
        if conditional or (part not in methods and any(_is_below(one.path, p) for p in asked)):
            yield one


def _is_below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(f"{prefix}.")


def _drop_empty_conditions(parameters: Sequence[Parameter]) -> list[Parameter]:
    """A condition that every value of an unconditional choice fulfils is none."""
    free = {one.path: one.choices for one in parameters if one.kind == "choice" and not one.when}
    return [
        replace(
            one,
            when=tuple(
                (path, allowed)
                for path, allowed in one.when
                if path not in free or not set(free[path]) <= set(allowed)
            ),
        )
        for one in parameters
    ]


def _order_by_conditions(parameters: Sequence[Parameter]) -> Iterator[Parameter]:
    """Each parameter after the ones that its conditions look at."""
    paths = {one.path for one in parameters}
    for one in parameters:
        for other, _ in one.when:
            if other not in paths:
                raise ConfigError(
                    f"{one.path}: when: {other!r} is not a parameter (known: "
                    f"{', '.join(sorted(paths))})"
                )
    left, done = list(parameters), set[str]()
    while left:
        ready = [one for one in left if all(path in done for path, _ in one.when)]
        if not ready:
            raise ConfigError(f"{left[0].path}: when: conditions go round in a circle")
        yield from ready
        done |= {one.path for one in ready}
        left = [one for one in left if one not in ready]


def _check_path(
    system: System, parameter: Parameter, known: Sequence[Parameter], roles: SourceRoles
) -> None:
    """Build a system with the parameter in it, for the error that a wrong path makes."""
    by_path = {one.path: one for one in known}
    params: dict[str, Value] = {}

    def add(one: Parameter) -> None:
        for path, allowed in one.when:
            if path not in params:
                add(by_path[path])
                params[path] = allowed[0]
        params[one.path] = one.choices[0] if one.kind == "choice" else one.bounds[1]

    add(parameter)
    try:
        apply_parameters(system, params, roles)
    except ConfigError as error:
        raise ConfigError(f"tune: {parameter.path}: {error}") from None
