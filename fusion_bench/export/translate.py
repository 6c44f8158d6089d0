"""A system in the terms of an engine, whatever the system is made of."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.ranking.system_ranking import name_system_in_errors
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.fuse import Trainable

#: Engines that are suggested, the first that fits.
COMMON = ("elasticsearch", "opensearch", "llamaindex")


def choose_query_type(system: System, query_type: str | None) -> System:
    """The plain system of a query type; the system itself where none is asked for.

    Raises:
        UnknownNameError: It has no numbers of that type.
    """
    if query_type is None:
        return system
    known = system.query_types or ()
    if query_type not in known:
        where = f"system {system.name!r}"
        raise UnknownNameError("query type", query_type, known, where=where)
    return system.of_type(query_type)


def translate_system(
    dialect: type[Dialect], system: System, roles: Mapping[str, frozenset[str]]
) -> Translation:
    """The nearest system of a dialect.

    Args:
        dialect: The engine's.
        system: Any system.
        roles: Of its sources, by name; a source that is left out has none.

    Raises:
        ConfigError: Its weights do not fit its sources.
    """
    if system.stages:
        listed = ", ".join(system.stages)
        return _refuse(f"stages: {dialect.title} fuses its own lists in one step ({listed})")
    parts = [part.fusion for part in (system.by_query_type or {}).values()] or [system.fusion]
    for fusion in parts:
        if isinstance(fusion, Trainable):
            return _refuse(f"fusion: {dialect.title} cannot learn: {fusion.method!r} is trained")
    known = {name: roles.get(name, frozenset()) for name in system.runs}
    with name_system_in_errors(system):
        return dialect.translate(system, known)


def suggest_engine(system: System) -> type[Dialect] | None:
    """An engine to write a system for: its own, or one of :data:`COMMON` that has its fusion.

    None where it reads one list only, or where none of these can do it.
    """
    if len(system.runs) < 2:
        return None
    if system.dialect is not None:
        return dialects.find_plugin(system.dialect)
    for name in COMMON:
        dialect = dialects.find_plugin(name)
        # Weights by role need the dataset: then the command itself finds out.
        with suppress(ConfigError):
            if translate_system(dialect, system, {}).system is None:
                continue
        return dialect
    return None


def _refuse(reason: str) -> Translation:
    return Translation("unsupported", (reason,))


def read_back(dialect: type[Dialect], configuration: Configuration, name: str) -> System:
    """The system that a configuration describes.

    Args:
        dialect: The engine's.
        configuration: As it was written.
        name: What to call the system.
    """
    return System.model_validate({"name": name, **dialect.read(configuration.files)})
