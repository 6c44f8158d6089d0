"""Where a system as YAML says it has a list, and its model wants one value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel

from fusion_bench.blend import Blend, blends
from fusion_bench.config.models import Location
from fusion_bench.config.query_classes import find_class_key
from fusion_bench.config.registry import MethodRegistry
from fusion_bench.errors import ConfigError
from fusion_bench.fuse import Fusion, fusions
from fusion_bench.normalize import Normalizer, normalizers
from fusion_bench.policies import Policy, policies

REGISTRIES: Final[Mapping[type, MethodRegistry[Any]]] = {
    Fusion: fusions,
    Blend: blends,
    Normalizer: normalizers,
    Policy: policies,
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
            inner = _annotation_below(annotation, data, key)
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
