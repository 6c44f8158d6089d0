"""Changes to the keys of an experiment's file: replaced values, sweeps over several.

``rrf: {runs: [a, b], fusion: {method: rrf, k: [10, 60]}}`` is read as the systems ``rrf k=10`` and
``rrf k=60``; several lists give every combination.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import getitem
from typing import Any, Final, TypeAlias, get_args, get_origin

from pydantic import BaseModel

from fusion_bench.config.models import Location
from fusion_bench.config.query_types import CLASS_KEYS, find_class_key
from fusion_bench.config.registry import MethodRegistry
from fusion_bench.config.yaml_files import Source, format_flow_yaml
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend import Blend, blends
from fusion_bench.methods.fuse import Fusion, fusions
from fusion_bench.methods.normalize import Normalizer, normalizers

#: Keys whose value is a method: its name alone, or a mapping with ``method``.
METHOD_KEYS: Final = ("fusion", "blend", "normalize")


def apply_overrides(source: Source, overrides: Sequence[str]) -> Source:
    """Replace values of an experiment.

    Args:
        source: The experiment as YAML says it.
        overrides: ``KEY=VALUE`` each, the value as YAML; a later one wins.

    Returns:
        The source with the values in their places; it remembers which ones were set.

    Raises:
        ConfigError: No ``KEY=VALUE``, a value that is no YAML, or a path through a value that
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
        if not location and key not in here and key in (here.get("systems") or ()):
            inner = "" if re.split("[.=]", rest)[0] in System.model_fields else "fusion."
            raise ConfigError(
                f"--set {override}: {key!r} is a system: --set systems.{key}.{inner}{rest}"
            )
        if location == ("systems",) and key not in here:
            raise UnknownNameError("system", key, map(str, here), where=f"--set {override}")
        location = (*location, key)
        if separator == "=":
            here[key] = parse_value(rest, override)
            return location
        systems = data.get("systems") if location[0] == "systems" and len(location) > 2 else None
        system = systems.get(location[1]) if isinstance(systems, dict) else None
        runs = system.get("runs") if isinstance(system, dict) else None
        value = here[key] if isinstance(here, list) else here.get(key)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        is_split = is_number and isinstance(here, dict) and _may_differ_per_source(here, key)
        if is_split and runs and isinstance(runs, list):
            if not any(rest.startswith(f"{run}=") for run in runs):
                raise ConfigError(
                    f"--set {override}: {key} is {value} for all runs: name one of them "
                    f"({', '.join(map(str, runs))})"
                )
            value = dict.fromkeys(runs, value)
        if value is None:
            default = System.model_fields[key].default if key in METHOD_KEYS[:2] else None
            value = {} if default is None else {"method": default.method}
        elif isinstance(value, str) and key in METHOD_KEYS:
            value = {"method": value}
        if not isinstance(value, dict | list):
            path = ".".join(map(str, location))
            raise ConfigError(f"--set {override}: {path} is {value!r}, which has no keys")
        here[key] = value
        here = value


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
        raise ConfigError(f"--set {override}: KEY=VALUE is needed, such as systems.rrf.fusion.k=20")
    if isinstance(here, list):
        raise ConfigError(
            f"--set {override}: {match['key']!r} is no item of a list of {len(here)}: items are "
            "numbered from 0"
        )
    return match["key"], match["separator"], match["rest"]


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
        override: The option's ``KEY=VALUE``, for the error.

    Raises:
        ConfigError: It is no YAML.
    """
    from yaml import YAMLError  # late: only what is typed needs a parser

    from fusion_bench.config.yaml_values import ValueProblem, parse_yaml  # as above

    try:
        value: object = parse_yaml(text)
    except ValueProblem as error:
        raise ConfigError(f"--set {override}: {error.problem}") from None
    except (YAMLError, ValueError, RecursionError):
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


REGISTRIES: Final[Mapping[type, MethodRegistry[Any]]] = {
    Fusion: fusions,
    Blend: blends,
    Normalizer: normalizers,
}


def find_lists(annotation: Any, data: object) -> Iterator[Location]:  # noqa: ANN401 - a type
    """Places of lists where one value belongs.

    Args:
        annotation: The type that ``data`` is to become.
        data: As YAML says it.
    """
    if isinstance(data, list):
        if not _takes_list(annotation):
            yield ()
    elif isinstance(data, Mapping):
        by_class = find_class_key(data)
        if by_class is not None and isinstance(data[by_class.key], Mapping):
            for key, value in data[by_class.key].items():
                yield from ((by_class.key, key, *rest) for rest in find_lists(annotation, value))
            return
        for key, value in data.items():
            is_open = isinstance(value, list | Mapping)  # finding its type may import methods
            inner = _annotation_below(annotation, data, key) if is_open else None
            if inner is not None:
                yield from ((key, *rest) for rest in find_lists(inner, value))


def _takes_list(annotation: Any) -> bool:  # noqa: ANN401 - a type
    """Whether some value of this type is written as a list."""
    if annotation is Any:
        return True
    origin = get_origin(annotation) or annotation
    if isinstance(origin, type) and issubclass(origin, Sequence | set | frozenset):
        return not issubclass(origin, str | bytes)
    return not _is_mapping(origin) and any(map(_takes_list, get_args(annotation)))


def _annotation_below(annotation: Any, data: Mapping[Any, Any], key: object) -> Any:  # noqa: ANN401 - types
    """The type of one key's value; None = the type has no such key."""
    origin = get_origin(annotation) or annotation
    if _is_mapping(origin):
        return (get_args(annotation) or (Any, Any))[-1]
    if isinstance(origin, type) and issubclass(origin, BaseModel):
        fields = _model_for(origin, data).model_fields
        if "root" in fields:
            return _annotation_below(fields["root"].annotation, data, key)
        return fields[str(key)].annotation if key in fields else None
    members = (_annotation_below(member, data, key) for member in get_args(annotation))
    return next((member for member in members if member is not None), None)


def _is_mapping(origin: Any) -> bool:  # noqa: ANN401 - a type
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _model_for(model: type[BaseModel], data: Mapping[Any, Any]) -> type[BaseModel]:
    """The class of the method that ``data`` names; the base where it names none."""
    for base, registry in REGISTRIES.items():
        if issubclass(model, base) and isinstance(data.get("method"), str):
            try:
                return registry.find_model(data)
            except ConfigError:
                return model  # reading the system says what is wrong
    return model


#: Most systems of an experiment with sweeps.
MOST_SYSTEMS: Final = 200

#: Places of lists, each with the value that was taken from the list.
Choices: TypeAlias = tuple[tuple[Location, object], ...]


def expand_sweeps(source: Source) -> tuple[Source, dict[str, tuple[str, ...]]]:
    """Replace every system that has lists of values.

    Args:
        source: An experiment as YAML says it, valid or not; what is no sweep stays as it is.

    Returns:
        The experiment with a system for every combination, and the names that each swept system
        became.

    Raises:
        ConfigError: An empty list, a list in a list, a value that is listed twice, a name that is
            taken, or more than 200 systems.
    """
    systems = source.data.get("systems")
    if not isinstance(systems, Mapping):
        return source, {}
    expanded: dict[Any, Any] = {}
    swept: dict[str, tuple[str, ...]] = {}
    for name, spec in systems.items():
        variants = _expand_system(spec, source, name) if isinstance(spec, Mapping) else []
        if not variants or not variants[0][1]:
            variants_by_name = {name: spec}
        else:
            variants_by_name = _name_variants(name, variants, {*systems, *expanded}, source)
            swept[str(name)] = tuple(variants_by_name)
        expanded |= variants_by_name
        if swept and len(expanded) > MOST_SYSTEMS:
            raise _too_many(source)
    if not swept:
        return source, {}
    data = {**source.data, "systems": expanded}
    lines = _copy_places(source.lines, swept)
    overrides = _copy_places(source.overrides, swept)
    return replace(source, data=data, lines=lines, overrides=overrides), swept


def _expand_system(spec: Any, source: Source, name: object) -> list[tuple[Any, Choices]]:  # noqa: ANN401 - as YAML says it
    """Every combination of a system's lists; the first list changes slowest."""
    location = next(find_lists(System, spec), None)
    if location is None:
        return [(spec, ())]
    where = source.where(("systems", str(name), *location))
    values = reduce(getitem, location, spec)
    if not values:
        raise ConfigError(f"{where}: an empty list: one value, or a list to sweep, is needed")
    variants: list[tuple[Any, Choices]] = []
    for i, value in enumerate(values):
        if isinstance(value, list):
            raise ConfigError(f"{where}: a list in a list: a sweep is one list of values")
        if value in values[:i]:
            raise ConfigError(f"{where}: {_format_value(value)} is listed twice: keep one")
        changed = _with_value(spec, location, value)
        for variant, rest in _expand_system(changed, source, name):
            variants.append((variant, ((location, value), *rest)))
            if len(variants) > MOST_SYSTEMS:
                raise _too_many(source)
    return variants


def _too_many(source: Source) -> ConfigError:
    return ConfigError(
        f"{source.where(('systems',))}: the lists stand for more than {MOST_SYSTEMS} systems: "
        "shorten them, or search with 'fusion-bench tune'"
    )


def _with_value(data: Any, location: Location, value: object) -> Any:  # noqa: ANN401 - as above
    """A copy with another value in one place."""
    if not location:
        return value
    key, *rest = location
    return {**data, key: _with_value(data[key], tuple(rest), value)}


def _name_variants(
    name: object,
    variants: Sequence[tuple[Any, Choices]],
    taken: set[Any],
    source: Source,
) -> dict[str, Any]:
    """The variants by name: ``NAME k=10``."""
    short = {}
    for place in dict.fromkeys(place for _, choices in variants for place, _ in choices):
        parts = [str(part) for part in place if part not in CLASS_KEYS]
        if len(parts) > 1 and parts[-1] == "method":
            parts.pop()
        if len(parts) > 1 and parts[0] in {"fusion", "blend"}:
            parts.pop(0)
        short[place] = ".".join(parts)
    repeated = {path for path in short.values() if [*short.values()].count(path) > 1}
    labels = {
        place: ".".join(map(str, place)) if path in repeated else path
        for place, path in short.items()
    }
    named: dict[str, Any] = {}
    for spec, choices in variants:
        values = (f"{labels[place]}={_format_value(value)}" for place, value in choices)
        variant = " ".join([str(name), *values])
        if variant in taken or variant in named:
            where = source.where(("systems", str(name)))
            raise ConfigError(f"{where}: its list also means {variant!r}: rename one system")
        named[variant] = spec
    return named


def _format_value(value: object) -> str:
    """A value on one line, as YAML writes it."""
    if isinstance(value, Mapping) and list(value) == ["method"]:
        value = value["method"]
    if isinstance(value, str):
        return value
    return format_flow_yaml(value, sort_keys=True)


def _copy_places(
    places: Mapping[Location, Any], swept: Mapping[str, tuple[str, ...]]
) -> dict[Location, Any]:
    """What is known of places, for the systems that others became as well."""
    copied = dict(places)
    for place, known in places.items():
        if place[:1] == ("systems",) and len(place) > 1:
            for variant in swept.get(str(place[1]), ()):
                copied["systems", variant, *place[2:]] = known
    return copied
