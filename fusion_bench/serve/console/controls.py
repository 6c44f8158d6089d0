"""The controls of a setting: one for each parameter that its methods declare, and for its parts.

The ranges are those that ``tune`` searches. A range is widened to hold the system's own value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Final

from fusion_bench.blend import blends
from fusion_bench.config.parameters import Parameter, Value, choice, integer
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.experiment.dialect import dialects
from fusion_bench.experiment.system import System
from fusion_bench.fuse import fusions
from fusion_bench.serve.console.setting import (
    BLEND_METHOD,
    DIALECT,
    RERANKER,
    Setting,
    SystemBuilder,
)
from fusion_bench.tune.space.parameter_paths import ABSENT, SourceRoles, read_parameter
from fusion_bench.tune.space.search_space import declared_parameters

FUSION_METHOD: Final = "fusion.method"
RERANK_DEPTH: Final = "blend.depth"


@dataclass(frozen=True)
class Control:
    """One parameter with its value.

    Attributes:
        parameter: Path, range and choices.
        value: In the setting; None = no number (a depth: the whole list), or no choice.
        is_structural: Whether another value brings other controls.
    """

    parameter: Parameter
    value: Value
    is_structural: bool = False

    def accepts(self, value: Value) -> bool:
        """Whether a value lies in the range, or is a choice; the steps of a search do not count."""
        if self.parameter.kind == "choice":
            return any(value == known and type(value) is type(known) for known in self.choices)
        if value is None or isinstance(value, bool | str):
            return False
        low, high = self.parameter.bounds
        return low <= value <= high and (self.parameter.kind == "float" or value == int(value))

    @property
    def choices(self) -> tuple[Value, ...]:
        """What it is one of; empty for a number."""
        return self.parameter.choices

    @property
    def allowed(self) -> str:
        """The range, or the choices, in words."""
        if self.parameter.kind == "choice":
            names = ", ".join("none" if each is None else str(each) for each in self.choices)
            return f"one of {names}"
        low, high = self.parameter.bounds
        noun = "a whole number" if self.parameter.kind == "int" else "a number"
        return f"{noun} from {low:g} to {high:g}"


@dataclass(frozen=True)
class ControlPanel:
    """Lists the controls of settings.

    Attributes:
        builder: Makes the system of each setting.
        longest: Greatest rank of each run.
        rerank_depth: Most candidates of a query that a rerank list scores; 0 = no list.
    """

    builder: SystemBuilder
    longest: Mapping[str, int]
    rerank_depth: int

    def list_controls(self, setting: Setting, system: System) -> list[Control]:
        """The controls of a setting, each with its value.

        Args:
            setting: The setting.
            system: What :meth:`SystemBuilder.build_system` makes of it.

        Raises:
            ConfigError: A value of the setting is outside its range, or has no control.
        """
        roles = self.builder.source_roles(system)
        # A value that a request brings must not widen the range that it is checked against.
        frame = self.builder.build_system(setting.without_numbers())
        controls: dict[str, Control] = {}
        values: dict[str, Value] = {}
        parts = (*self._part_parameters(system, roles), *self._depths(system))
        for parameter in (*parts, *declared_parameters(system)):
            path = parameter.path
            value = _read_value(system, path, roles)
            if value is ABSENT or not parameter.is_active(values):
                continue
            values[path] = value
            wide = _widen(parameter, _read_value(frame, path, roles))
            control = Control(wide, value, setting.is_structural(path))
            if path in setting.parameters and not control.accepts(setting.parameters[path]):
                given = setting.parameters[path]
                raise ConfigError(f"{path}: must be {control.allowed}, given {given!r:.100}")
            controls[path] = control
        for path in setting.parameters:
            if path not in controls:
                known = ", ".join(controls)
                raise ConfigError(f"{path}: no control of this setting (controls: {known})")
        return list(controls.values())

    def _part_parameters(self, system: System, roles: SourceRoles) -> Iterator[Parameter]:
        """The dialect, the methods and the reranker, where one configuration serves all queries."""
        if system.query_classes is not None or system.policy is not None:
            return
        if not system.stages:
            yield choice(DIALECT, None, *_list_dialects())
        sources = tuple((name, roles[name]) for name in system.runs)
        methods = _list_methods(system.dialect, sources)
        yield choice(FUSION_METHOD, *dict.fromkeys((system.fusion.method, *methods)))
        if self.builder.rerankers:
            yield choice(BLEND_METHOD, *_list_blends())
            if system.blend.reranker_name is not None:
                yield choice(RERANKER, *sorted(self.builder.rerankers))
                yield integer(RERANK_DEPTH, 1, max(self.rerank_depth, 1))

    def _depths(self, system: System) -> Iterator[Parameter]:
        """How deep the sources are read: all alike, or each where the system tells them apart."""
        longest = {name: self.longest.get(name, 1) for name in system.runs}
        if isinstance(system.depth, dict):
            for name, most in longest.items():
                yield integer(f"depth.{name}", 1, most)
        else:
            yield integer("depth", 1, max(longest.values()))


@cache
def _list_dialects() -> tuple[str, ...]:
    return tuple(sorted(dialects.load_all()))


@cache
def _list_blends() -> tuple[str, ...]:
    return tuple(sorted(blends.load_all()))


@lru_cache(maxsize=64)
def _list_methods(
    dialect: str | None, sources: tuple[tuple[str, frozenset[str]], ...]
) -> tuple[str, ...]:
    """The fusion methods that can fuse these sources as they are by default."""
    registry = fusions if dialect is None else dialects.find_plugin(dialect).fusions()
    names = []
    for name in sorted(registry.load_all()):
        with suppress(FusionBenchError):
            registry.build(name).check_sources(*map(list, zip(*sources, strict=True)))
            names.append(name)
    return tuple(names)


def _read_value(system: System, path: str, roles: SourceRoles) -> Any:  # noqa: ANN401 - or ABSENT
    """What stands at a path, or :data:`ABSENT`."""
    return system.dialect if path == DIALECT else read_parameter(system, path, roles)


def _widen(parameter: Parameter, value: Any) -> Parameter:  # noqa: ANN401 - anything may stand there
    """The parameter with a range, or choices, that hold a value of the system; not of a depth."""
    if value is ABSENT or parameter.path.partition(".")[0] == "depth":
        return parameter
    if parameter.kind == "choice":
        known = value in parameter.choices
        return parameter if known else replace(parameter, choices=(value, *parameter.choices))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return parameter
    low, high = parameter.bounds
    kind = parameter.kind if float(value).is_integer() else "float"
    is_log = parameter.log and value > 0
    step = parameter.step if kind == parameter.kind else None
    return replace(
        parameter, kind=kind, low=min(low, value), high=max(high, value), log=is_log, step=step
    )
