"""Values of an experiment or a method that the command line replaces: ``--set``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import yaml

from fusion_bench.config.models import Location
from fusion_bench.config.yaml_files import Source, ValueProblem, parse_yaml
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import fusions

#: Keys whose value is a method: its name alone, or a mapping with ``method``.
METHOD_KEYS: Final = ("fusion", "blend", "normalize")


def apply_overrides(source: Source, overrides: Sequence[str]) -> Source:
    """Replace values of an experiment.

    Args:
        source: The experiment as YAML says it.
        overrides: ``PATH=VALUE`` each, the value as YAML; a later one wins.

    Returns:
        The source with the values in their places; it remembers which ones were set.

    Raises:
        ConfigError: No ``PATH=VALUE``, a value that is no YAML, or a path through a value that
            has no keys.
        UnknownNameError: A system that the experiment does not have.
    """
    if not overrides:
        return source
    data = _copy_data(source.data)
    places: dict[Location, str] = {}
    for override in overrides:
        places[_set_value(data, override)] = override
    return replace(source, data=data, overrides=places)


def _copy_data(data: Any) -> Any:  # noqa: ANN401 - as YAML says it
    """A copy in which no two places share a mapping, as anchors and merge keys make them do."""
    if isinstance(data, dict):
        return {key: _copy_data(value) for key, value in data.items()}
    return [_copy_data(value) for value in data] if isinstance(data, list) else data


def _set_value(data: dict[Any, Any], override: str) -> Location:
    """Put one value in its place, and return the place."""
    here: Any = data
    rest = override
    location: Location = ()
    while True:
        key, separator, rest = _split_key(here, rest, override)
        if location == ("systems",) and key not in here:
            raise UnknownNameError("system", key, map(str, here), where=f"--set {override}")
        location = (*location, key)
        if separator == "=":
            here[key] = parse_value(rest, override)
            return location
        _split_number_by_run(here, key, rest, override, _runs_of_system(data, location))
        here = _open_value(here, key, override, location)


def _split_key(here: Any, text: str, override: str) -> tuple[Any, str, str]:  # noqa: ANN401 - as YAML says it
    """The first key of a path, what ends it (``.`` or ``=``), and the rest.

    A key of the experiment may hold dots and equals signs itself: the longest that fits is meant.
    """
    known = range(len(here)) if isinstance(here, list) else here
    for key in sorted(known, key=lambda key: -len(str(key))):
        rest = text.removeprefix(str(key))
        if text.startswith(str(key)) and rest[:1] in {".", "="}:
            return key, rest[0], rest[1:]
    match = re.match(r"(?P<key>[^.=]+)(?P<separator>[.=])(?P<rest>.*)", text, re.DOTALL)
    if match is None:
        raise ConfigError(
            f"--set {override}: PATH=VALUE is needed, such as systems.rrf.fusion.k=20"
        )
    if isinstance(here, list):
        raise ConfigError(
            f"--set {override}: {match['key']!r} is no item of a list of {len(here)}: items are "
            "numbered from 0"
        )
    return match["key"], match["separator"], match["rest"]


def _runs_of_system(data: dict[Any, Any], location: Location) -> list[Any]:
    """The names of the runs of the system that a place is in; none where it is in no system."""
    systems = data.get("systems") if location[0] == "systems" and len(location) > 2 else None
    system = systems.get(location[1]) if isinstance(systems, dict) else None
    runs = system.get("runs") if isinstance(system, dict) else None
    return runs if isinstance(runs, list) else []


def _split_number_by_run(
    fusion: Any,  # noqa: ANN401 - as YAML says it
    key: Any,  # noqa: ANN401 - as above
    rest: str,
    override: str,
    runs: list[Any],
) -> None:
    """Write a number for all sources as one a run, where one of them gets another."""
    value = fusion.get(key) if isinstance(fusion, dict) else None
    if not _is_number(value) or not runs or not _may_differ_per_source(fusion, key):
        return
    if not any(rest.startswith(f"{run}=") for run in runs):
        raise ConfigError(
            f"--set {override}: {key} is {value} for all runs: name one of them "
            f"({', '.join(map(str, runs))})"
        )
    fusion[key] = dict.fromkeys(runs, value)


def _open_value(here: Any, key: Any, override: str, location: Location) -> Any:  # noqa: ANN401 - as above
    """The mapping or list below a key, made where there is none."""
    value = here[key] if isinstance(here, list) else here.get(key)
    if value is None:
        default = System.model_fields[key].default if key in METHOD_KEYS[:2] else None
        value = {} if default is None else {"method": default.method}
    elif isinstance(value, str) and key in METHOD_KEYS:
        value = {"method": value}
    if not isinstance(value, dict | list):
        path = ".".join(map(str, location))
        raise ConfigError(f"--set {override}: {path} is {value!r}, which has no keys")
    here[key] = value
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _may_differ_per_source(method: object, key: object) -> bool:
    """Whether a key of a fusion takes a mapping by source in place of a number."""
    try:
        return key in fusions.find_model(method).per_source
    except ConfigError:  # no fusion, or one that reading the experiment refuses
        return False


def parse_value(text: str, override: str) -> object:
    """A value as YAML.

    Args:
        text: The value.
        override: The option's ``PATH=VALUE``, for the error.

    Raises:
        ConfigError: It is no YAML.
    """
    try:
        value: object = parse_yaml(text)
    except ValueProblem as error:
        raise ConfigError(f"--set {override}: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ConfigError(f"--set {override}: {text!r} is not a value in YAML") from None
    return value


def set_options(
    given: Mapping[str, Any],
    changes: Sequence[str],
    *,
    option: str = "--set",
    example: str = "model=rerank-2",
) -> dict[str, Any]:
    """A configuration with ``KEY=VALUE`` or ``KEY.KEY=VALUE`` put in; values are YAML.

    Args:
        given: The configuration.
        changes: What is put in.
        option: The option of the command line that holds them, for errors.
        example: A change that would do, for errors.

    Raises:
        ConfigError: A change has another form.
    """
    data = dict(given)
    for change in changes:
        path, equals, value = change.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys):
            raise ConfigError(f"{option} {change!r}: KEY=VALUE is needed, such as {example}")
        read: Any = parse_value(value, change)
        for key in reversed(keys):
            read = {key: read}
        data = merge_mappings(data, read)
    return data


def merge_mappings(base: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """``given`` over ``base``, mappings key by key."""
    merged = dict(base)
    for key, value in given.items():
        inside = merged.get(key)
        both = isinstance(inside, Mapping) and isinstance(value, Mapping)
        merged[key] = merge_mappings(inside, value) if both else value  # type: ignore[arg-type]
    return merged
