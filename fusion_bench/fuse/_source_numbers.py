"""Numbers that may differ per source: one for all, or a mapping by source name or role."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from pydantic import PlainSerializer

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError

Roles = Sequence[frozenset[str]]


def _keep_value(value: Any) -> Any:  # noqa: ANN401 - a number or a mapping
    return value


#: For a field that is a number or a mapping: a whole number stays one when it is written.
AS_GIVEN: Final = PlainSerializer(_keep_value)


def match_sources(
    field: str, keys: Iterable[str], sources: Sequence[str], roles: Roles
) -> list[str | None]:
    """The key that fits each source, by its name or by one of its roles; None = no key does.

    Args:
        field: What the keys belong to, for the message.
        keys: Names and roles.
        sources: (S,).
        roles: Of each source, (S,).

    Raises:
        ConfigError: Two keys fit one source.
    """
    listed = list(keys)
    matched: list[str | None] = []
    for name, role in zip(sources, roles, strict=True):
        fitting = [key for key in listed if key == name or key in role]
        if len(fitting) > 1:
            raise ConfigError(
                f"{field}: {' and '.join(map(repr, fitting))} both fit source {name!r}: keep one"
            )
        matched.append(fitting[0] if fitting else None)
    return matched


def refuse_unmatched(
    field: str,
    keys: Iterable[str],
    matched: Iterable[str | None],
    sources: Sequence[str],
    roles: Roles,
) -> None:
    """Raise for a key that fits no source.

    Args:
        field: What the keys belong to, for the message.
        keys: Names and roles that must fit.
        matched: What :func:`match_sources` returned.
        sources: (S,).
        roles: Of each source, (S,).
    """
    used = set(matched)
    for key in keys:
        if key not in used:
            known = sorted({*sources, *(role for names in roles for role in names)})
            raise ConfigError(
                f"{field}: {key!r} fits no source in use (names and roles in use: "
                f"{', '.join(known)})"
            )


def numbers_by_source(
    field: str,
    value: float | Mapping[str, float],
    default: float,
    sources: Sequence[str],
    roles: Roles,
) -> FloatArray:
    """(S,): the number of each source.

    Args:
        field: Its name, for the message.
        value: One for all sources, or a mapping; a key that fits no source has no effect.
        default: The number of a source that the mapping does not name.
        sources: (S,).
        roles: Of each source, (S,).

    Raises:
        ConfigError: Two keys fit one source.
    """
    if not isinstance(value, Mapping):
        return np.full(len(sources), float(value))
    matched = match_sources(field, value, sources, roles)
    return np.array([default if key is None else value[key] for key in matched], dtype=np.float64)
