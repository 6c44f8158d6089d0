"""What is known of a live query."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import replace
from numbers import Real

from fusion_bench.config.query_classes import BY_TYPE
from fusion_bench.config.query_types import CONV_03_05
from fusion_bench.data.records import Query
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.experiment.system import System

#: Stands for the id of a query that has none: no trained part has learned from it.
LIVE_QUERY = "live query"


def make_query(
    query: str | Query, query_type: str | None, intent: str | None, confidence: float | None
) -> Query:
    """The query with these fields in place of its own.

    Raises:
        ConfigError: It is neither text nor a query, its text is empty, or a field is not what it
            should be.
    """
    if not isinstance(query, str | Query):
        raise ConfigError(f"query: text or a Query is needed, given {query!r:.80}")
    made = query if isinstance(query, Query) else Query(LIVE_QUERY, query)
    if made.text is not None and (not isinstance(made.text, str) or not made.text.strip()):
        # BR-003: an empty text runs no search.
        raise ConfigError(f"query: a text that is not empty is needed, given {made.text!r:.80}")
    made = replace(
        made,
        type=made.type if query_type is None else query_type,
        intent=made.intent if intent is None else intent,
        confidence=made.confidence if confidence is None else confidence,
    )
    for name, value in (("query_type", made.type), ("intent", made.intent)):
        if value is not None and (not isinstance(value, str) or not value):
            raise ConfigError(f"{name}: a name or None is needed, given {value!r:.80}")
    if made.confidence is not None and not _lies_within(made.confidence, 1.0):
        raise ConfigError(
            f"confidence: a number from 0 to 1 or None is needed, given {made.confidence!r:.80}"
        )
    return made


def check_elapsed(elapsed_ms: float) -> None:
    """Refuse a time that is none.

    Raises:
        ConfigError: It is not a finite number from 0 on.
    """
    if not _lies_within(elapsed_ms, sys.float_info.max):
        raise ConfigError(
            f"elapsed_ms: a finite number of milliseconds from 0 on is needed, given "
            f"{elapsed_ms!r:.80}"
        )


def check_type(
    query_type: str | None, system: System, conditions: Collection[Mapping[str, Collection[str]]]
) -> None:
    """Refuse a type that nothing knows, where the system has numbers by type.

    The types of CONV-03-05 are known to every system: one without numbers gets those of
    ``hybrid``.

    Args:
        query_type: As the caller names it; None = not known.
        system: The system.
        conditions: When sources are on.

    Raises:
        UnknownNameError: The type is unknown.
    """
    if query_type is None or system.class_key is not BY_TYPE:
        return
    known = {*CONV_03_05, *(system.query_classes or ())}
    for condition in conditions:
        known |= set(condition.get(BY_TYPE.field, ()))
    if query_type not in known:
        raise UnknownNameError("type", query_type, known, where="query_type")


def _lies_within(value: object, high: float) -> bool:
    """Whether it is a number from 0 to this one."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    return bool(0 <= value <= high)  # type: ignore[operator] # a Real has an order
