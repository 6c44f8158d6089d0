"""Keys of a method that the command line sets: ``--set model=rerank-2``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fusion_bench.errors import ConfigError
from fusion_bench.experiment.overrides import parse_value


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
