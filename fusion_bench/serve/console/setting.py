"""A setting: a system of the experiment, and the values that replace its own."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BeforeValidator, Field

from fusion_bench.blend import blends
from fusion_bench.config.models import StrictModel
from fusion_bench.config.parameters import Value
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.experiment.dialect import parse_dialect
from fusion_bench.experiment.system import System
from fusion_bench.tune.space.parameter_paths import SourceRoles, apply_parameters, stage_roles

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
        if DIALECT in values:
            system = self._translate(system, values.pop(DIALECT))
        if not values:
            return system
        system = self._add_reranker(system, values)
        system = apply_parameters(system, values, self.source_roles(system))
        for location, problem in system.find_misfits(self.roles, tuple(self.rerankers)):
            raise ConfigError(f"{'.'.join(map(str, location))}: {problem}")
        return system

    def _translate(self, system: System, dialect: Value) -> System:
        """The nearest system in the terms of an engine; None = in the package's own terms."""
        if dialect == system.dialect:
            return system
        if dialect is None:
            return System(system.name, system.runs, blend=system.blend)
        engine = parse_dialect(dialect)
        translation = engine.translate(system, self.source_roles(system))
        if translation.system is None:
            reasons = "; ".join(translation.reasons)
            raise ConfigError(f"{DIALECT}: {engine.title} cannot run this system: {reasons}")
        return translation.system.model_copy(update={"name": system.name})

    def _add_reranker(self, system: System, values: Mapping[str, Value]) -> System:
        """The system with a blend that has a reranker, where one is asked for and it has none."""
        method = values.get(BLEND_METHOD, system.blend.method)
        if method in {"none", system.blend.method} or system.blend.reranker_name is not None:
            return system
        name = values.get(RERANKER, next(iter(self.rerankers), None))
        if name is None:
            raise ConfigError(f"{BLEND_METHOD}: the dataset has no rerank list: choose 'none'")
        return system.model_copy(
            update={"blend": blends.build({"method": method, "reranker": name})}
        )
