"""A system in the terms of an engine, whatever the system is made of."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from fusion_bench.config.query_classes import BY_INTENT, BY_TYPE
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.ranking.system_ranking import name_system_in_errors
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.fuse import Trainable

#: Engines that are suggested, the first that fits.
COMMON = ("elasticsearch", "opensearch", "llamaindex")


def choose_class(system: System, query_type: str | None, intent: str | None) -> System:
    """The plain system of a query type or an intent; the system itself where none is asked for.

    Raises:
        UnknownNameError: It has no numbers of that type or intent.
    """
    for key, name in ((BY_TYPE, query_type), (BY_INTENT, intent)):
        if name is None:
            continue
        known = (system.query_classes or ()) if system.class_key is key else ()
        if name not in known:
            raise UnknownNameError(key.title, name, known, where=f"system {system.name!r}")
        return system.of_class(name)
    return system


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
    parts = [part.fusion for part in (system.class_configs or {}).values()] or [system.fusion]
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
