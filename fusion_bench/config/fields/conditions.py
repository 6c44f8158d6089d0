"""Conditions on fields of a query, as YAML states them: ``{intent: [meta], language: ja}``."""

from __future__ import annotations

import json
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from fusion_bench.config.models import UniqueNames, refuse_repeats

#: Fields that no two queries share.
UNIQUE_FIELDS = frozenset({"id", "text"})


def _list_values(value: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
    """The values as text: one stands for a list of one, a number for its JSON."""
    values = value if isinstance(value, list | tuple) else [value]
    return tuple(json.dumps(v) if isinstance(v, bool | int | float) else v for v in values)


def check_field_name(name: str) -> str:
    """The name of a field.

    Raises:
        ValueError: Every query has another value there.
    """
    if name in UNIQUE_FIELDS:
        raise ValueError(f"{name!r} is different for every query: name another field")
    return name


FieldName: TypeAlias = Annotated[str, AfterValidator(check_field_name)]
#: Names of different fields.
FieldNames: TypeAlias = Annotated[tuple[FieldName, ...], AfterValidator(refuse_repeats)]
#: Values of a field, of which a query must have one.
FieldValues: TypeAlias = Annotated[UniqueNames, Field(min_length=1), BeforeValidator(_list_values)]
#: Field → values; a query must have one of the values of every field.
FieldConditions: TypeAlias = dict[FieldName, FieldValues]
