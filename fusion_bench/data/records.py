"""What is known of a query, a document and the numbers of a rerank list."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

#: What the numbers of a rerank list mean; ``order`` = only which is greater.
ScoreSpace: TypeAlias = Literal["unit", "logit", "log_prob", "unbounded", "order"]


#: Fields of a query that have a meaning of their own and may be compared.
COMPARED_FIELDS: Final = ("type", "intent", "confidence", "group", "split")


@dataclass(frozen=True, slots=True)
class Query:
    """What is known of one query beside its judgements; every field but the id may be absent.

    Attributes:
        id: Its id.
        text: What was asked.
        type: Its class, such as ``local``.
        intent: What it is for.
        confidence: How sure the type is, 0 to 1.
        group: Queries of one group depend on each other.
        split: The part of the data that it belongs to.
        fields: Every other field by name; a number, true or false as its JSON text.
        nested: Names of other fields that hold a list or an object, and cannot be compared.
    """

    id: str
    text: str | None = None
    type: str | None = None
    intent: str | None = None
    confidence: float | None = None
    group: str | None = None
    split: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict, hash=False)
    nested: frozenset[str] = frozenset()

    def value_of(self, name: str) -> str | None:
        """The value of a field that may be compared, as text; None = absent."""
        if name not in COMPARED_FIELDS:
            return self.fields.get(name)
        value: str | float | None = getattr(self, name)
        return value if value is None or isinstance(value, str) else json.dumps(value)

    @property
    def compared_fields(self) -> tuple[str, ...]:
        """The fields that have a value and may be compared."""
        return (*(n for n in COMPARED_FIELDS if getattr(self, n) is not None), *self.fields)


def sort_field_values(values: Iterable[str | None]) -> list[str | None]:
    """The different values of a field of queries; None = absent, and stands last."""
    return sorted(set(values), key=lambda value: (value is None, value or ""))


@dataclass(frozen=True, slots=True)
class Document:
    """One document; only explanations and judging read the text."""

    id: str
    text: str
