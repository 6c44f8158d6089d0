"""Sources that only some queries read, such as one for a single intent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from fusion_bench.config.query_types import type_of
from fusion_bench.data.ordering import BoolArray, make_readonly
from fusion_bench.data.records import Query
from fusion_bench.errors import ConfigError, UnknownNameError

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


def mark_switched_off(switches: Sequence[Switch | None], queries: Sequence[str]) -> BoolArray:
    """(S, Q): whether each source is switched off for each query.

    Args:
        switches: The switch of each source, None = on for all queries, (S,).
        queries: Query ids, (Q,).

    Returns:
        A read-only array.
    """
    off = np.zeros((len(switches), len(queries)), dtype=bool)
    for row, switch in zip(off, switches, strict=True):
        if switch is not None:
            row[:] = [query not in switch.queries for query in queries]
    make_readonly(off)
    return off


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
