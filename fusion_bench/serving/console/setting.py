"""A setting: values that replace a system's own, the controls for them, its values per query.

The ranges are those that ``tune`` searches. A range is widened to hold the system's own value.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, Final, TypeAlias

import numpy as np
from pydantic import BeforeValidator, Field

from fusion_bench.config.models import StrictModel
from fusion_bench.config.parameters import Parameter, Value, choice, integer
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError, FusionBenchError, UnknownNameError
from fusion_bench.experiment.dialect import dialects, parse_dialect
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure
from fusion_bench.methods.blend import blends
from fusion_bench.methods.fuse import fusions
from fusion_bench.ranking.system_scores import ShardLimits, evaluate_systems
from fusion_bench.tune.space import (
    ABSENT,
    SourceRoles,
    apply_parameters,
    declared_parameters,
    read_parameter,
    stage_roles,
)

#: Paths that are no parameters of a method.
DIALECT: Final = "dialect"
BLEND_METHOD, RERANKER = "blend.method", "blend.reranker"
#: Limits of a request, above anything that a page sends.
MOST_PARAMETERS, MOST_CHARACTERS = 200, 300

Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]


def _check_value(value: object) -> object:
    """A value as JSON gives it.

    Raises:
        ValueError: It is no number, text, truth value or null, or is too long or not finite.
    """
    is_plain = value is None or isinstance(value, bool | int | float | str)
    if isinstance(value, str) and len(value) > MOST_CHARACTERS:
        raise ValueError(f"at most {MOST_CHARACTERS} characters are allowed, given {len(value)}")
    if not is_plain or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError("a finite number, a text, true, false or null is needed")
    return value


GivenValue: TypeAlias = Annotated[Any, BeforeValidator(_check_value)]


class Setting(StrictModel):
    """A system as the console has set it.

    Attributes:
        system: Name of the system of the experiment that it starts from.
        parameters: Path → value, only what differs from that system.
    """

    system: Name
    parameters: Annotated[dict[Name, GivenValue], Field(max_length=MOST_PARAMETERS)] = Field(
        default_factory=dict
    )

    @staticmethod
    def is_structural(path: str) -> bool:
        """Whether another value at a path brings other parameters."""
        return path == DIALECT or path.endswith(".method")

    def without_numbers(self) -> Setting:
        """Only the dialect and the methods, and the reranker that a blend needs."""
        kept = {
            path: value
            for path, value in self.parameters.items()
            if self.is_structural(path) or path == RERANKER
        }
        return self.model_copy(update={"parameters": kept})


@dataclass(frozen=True)
class SystemBuilder:
    """Makes the systems of settings.

    Attributes:
        systems: The systems of the experiment, by name.
        roles: Roles of the dataset's runs, by name.
        rerankers: Names of the dataset's rerank lists.
    """

    systems: Mapping[str, System]
    roles: Mapping[str, frozenset[str]]
    rerankers: Collection[str]

    def start(self, setting: Setting) -> System:
        """The system that a setting starts from.

        Raises:
            UnknownNameError: The experiment has no such system.
        """
        if setting.system not in self.systems:
            raise UnknownNameError("system", setting.system, self.systems, where="system")
        return self.systems[setting.system]

    def source_roles(self, system: System) -> SourceRoles:
        """Roles of the sources of a system, its stages included."""
        return stage_roles(system, dict(self.roles))

    def build_system(self, setting: Setting) -> System:
        """The system of a setting.

        Raises:
            ConfigError: A value that breaks a rule, or that does not fit the dataset.
        """
        system = self.start(setting)
        values = dict(setting.parameters)
        dialect = values.pop(DIALECT, system.dialect)
        if dialect is None and system.dialect is not None:  # the package's own terms
            system = System(system.name, system.runs, blend=system.blend)
        elif dialect != system.dialect:
            engine = parse_dialect(dialect)
            translation = engine.translate(system, self.source_roles(system))
            if translation.system is None:
                reasons = "; ".join(translation.reasons)
                raise ConfigError(f"{DIALECT}: {engine.title} cannot run this system: {reasons}")
            system = translation.system.model_copy(update={"name": system.name})
        if not values:
            return system
        method = values.get(BLEND_METHOD, system.blend.method)
        if method not in {"none", system.blend.method} and system.blend.reranker_name is None:
            name = values.get(RERANKER, next(iter(self.rerankers), None))
            if name is None:
                raise ConfigError(f"{BLEND_METHOD}: the dataset has no rerank list: choose 'none'")
            blend = blends.build({"method": method, "reranker": name})
            system = system.model_copy(update={"blend": blend})
        system = apply_parameters(system, values, self.source_roles(system))
        for location, problem in system.find_misfits(self.roles, tuple(self.rerankers)):
            raise ConfigError(f"{'.'.join(map(str, location))}: {problem}")
        return system


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

    def spread_values(self, count: int) -> list[float]:
        """At most ``count`` values from one end of a slider to the other, in equal steps of it."""
        low, high = self.parameter.bounds
        steps = np.linspace(0, 1, count)
        values = low * (high / low) ** steps if self.parameter.log else low + (high - low) * steps
        is_whole = self.parameter.kind == "int"
        return list(dict.fromkeys(round(v) if is_whole else float(f"{v:.4g}") for v in values))

    @property
    def choices(self) -> tuple[Value, ...]:
        """The allowed values; empty for a number."""
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
        parts = self._part_parameters(system, roles)
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
        """Yield the dialect, methods and reranker if all queries share them, and the depths."""
        if system.query_classes is None:
            if not system.stages:
                yield choice(DIALECT, None, *dialects.list_names())
            sources = tuple((name, roles[name]) for name in system.runs)
            methods = _list_methods(system.dialect, sources)
            yield choice(FUSION_METHOD, *dict.fromkeys((system.fusion.method, *methods)))
            if self.builder.rerankers:
                yield choice(BLEND_METHOD, *blends.list_names())
                if system.blend.reranker_name is not None:
                    yield choice(RERANKER, *sorted(self.builder.rerankers))
                    yield integer(RERANK_DEPTH, 1, max(self.rerank_depth, 1))
        longest = {name: self.longest.get(name, 1) for name in system.runs}
        if isinstance(system.depth, dict):
            for name, most in longest.items():
                yield integer(f"depth.{name}", 1, most)
        else:
            yield integer("depth", 1, max(longest.values()))


@lru_cache(maxsize=64)
def _list_methods(
    dialect: str | None, sources: tuple[tuple[str, frozenset[str]], ...]
) -> tuple[str, ...]:
    """The fusion methods that can fuse these sources as they are by default."""
    registry = fusions if dialect is None else dialects.find_plugin(dialect).fusions()
    names = []
    for name in registry.list_names():
        with suppress(FusionBenchError):
            registry.build(name).check_sources(*map(list, zip(*sources, strict=True)))
            names.append(name)
    return tuple(names)


def _read_value(system: System, path: str, roles: SourceRoles) -> Any:  # noqa: ANN401 - or ABSENT
    """Return the value at a path, or :data:`ABSENT`."""
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


#: Systems whose values are remembered.
VALUES_KEPT: Final = 256
#: Systems after which derived arrays are forgotten: those of one may be as large as the runs.
MOST_DERIVED: Final = 24
#: Someone waits for a single system: shards of arrays that stay in the caches, for every processor.
SHARDS: Final = ShardLimits(candidates=400_000)


class SystemEvaluator:
    """Evaluates one system at a time on the same queries; not for several threads at once.

    Args:
        runs: Aligned, only the queries that the console shows.
        measures: (M,).
    """

    def __init__(self, runs: AlignedRuns, measures: Sequence[Measure]) -> None:
        self.runs = runs
        self.measures = tuple(measures)
        self._values: dict[str, FloatArray] = {}
        self._computed = 0

    def evaluate(self, system: System) -> FloatArray:
        """(M, Q): the values of a system.

        Raises:
            FusionBenchError: It cannot be computed.
        """
        key = system.model_dump_json(exclude={"name"})
        if key not in self._values:
            self._computed += 1
            if self._computed % MOST_DERIVED == 0:
                self.runs = replace(self.runs)  # the same arrays with an empty cache
            (scores,) = evaluate_systems([system], self.runs, self.measures, limits=SHARDS)
            if len(self._values) >= VALUES_KEPT:
                del self._values[next(iter(self._values))]
            self._values[key] = scores.values
        return self._values[key]
