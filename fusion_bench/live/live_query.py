"""What is known of a live query."""

from __future__ import annotations

from dataclasses import replace

from fusion_bench.data.records import Query
from fusion_bench.errors import ConfigError

#: Stands for the id of a query that has none: no trained part has learned from it.
LIVE_QUERY = "live query"


def make_query(
    query: str | Query, query_type: str | None, intent: str | None, confidence: float | None
) -> Query:
    """The query with these fields in place of its own.

    Raises:
        ConfigError: It is neither text nor a query.
    """
    if not isinstance(query, str | Query):
        raise ConfigError(f"query: text or a Query is needed, given {query!r:.80}")
    made = query if isinstance(query, Query) else Query(LIVE_QUERY, query)
    return replace(
        made,
        type=made.type if query_type is None else query_type,
        intent=made.intent if intent is None else intent,
        confidence=made.confidence if confidence is None else confidence,
    )
