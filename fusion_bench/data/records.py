"""What is known of a query, a document, a rerank list, a source that only some queries read."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from fusion_bench.config.query_types import type_of
from fusion_bench.errors import ConfigError, UnknownNameError

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


#: Field of a query → the values with which a source is on; every field must have one of its own.
Condition: TypeAlias = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Switch:
    """The queries for which a source is on; for all others it is switched off.

    Attributes:
        queries: Their ids.
        condition: What decides it; empty where nothing but the queries is known.
    """

    queries: frozenset[str]
    condition: Condition = field(default_factory=dict, hash=False)

    @classmethod
    def for_queries(cls, condition: Condition, queries: Iterable[Query]) -> Switch:
        """The switch of a source with a condition.

        Args:
            condition: When it is on.
            queries: Every query that may be asked, with what is known of it.
        """
        return cls(frozenset(q.id for q in queries if meets_condition(q, condition)), condition)

    def explain_off(self, query: Query) -> str:
        """Why the source is off for a query: ``intent is rules``."""
        failed = (
            f"{name} is {'not known' if (value := switch_value(query, name)) is None else value}"
            for name, allowed in self.condition.items()
            if switch_value(query, name) not in allowed
        )
        return " and ".join(failed) or "all of its sources are off"


def meets_condition(query: Query, condition: Condition) -> bool:
    """Whether a source with this condition is on for a query."""
    return all(switch_value(query, name) in allowed for name, allowed in condition.items())


def switch_value(query: Query, name: str) -> str | None:
    """The value of a field that a condition looks at; None = not known.

    ``type`` follows the rule of weights by type: a query without a type, or with a confidence
    below 0.7, is ``hybrid``.
    """
    if name != "type":
        return query.value_of(name)
    return type_of(query.type, query.confidence, () if query.type is None else (query.type,))


def format_condition(condition: Condition) -> str:
    """A condition in one line: ``intent: meta, synergy; language: ja``."""
    return "; ".join(f"{name}: {', '.join(values)}" for name, values in condition.items())


def check_field(name: str, queries: Iterable[Query], where: str) -> None:
    """Refuse a field by which queries cannot be told apart.

    Args:
        name: The field.
        queries: Every query.
        where: Prefix of a message.

    Raises:
        ConfigError: It holds a list or an object.
        UnknownNameError: No query has it.
    """
    known: dict[str, None] = {}
    for query in queries:
        if name in query.nested:
            raise ConfigError(
                f"{where}: field {name!r} of query {query.id!r} holds a list or an object: only "
                "text, numbers, true and false can be compared"
            )
        known |= dict.fromkeys(query.compared_fields)
    if name not in known:
        raise UnknownNameError("field of the queries", name, known, where=where)


#: Role of such a list: it may be a system alone, and no fusion takes it as one of several sources.
FINAL_ROLE: Final = "final"


def drop_final(names: Sequence[str], roles: Sequence[Collection[str]]) -> list[str]:
    """The lists that are sources; all of them where none is.

    Args:
        names: Of the lists.
        roles: Of each of them.
    """
    sources = [name for name, of in zip(names, roles, strict=True) if FINAL_ROLE not in of]
    return sources or list(names)
