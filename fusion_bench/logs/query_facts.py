"""What a log says of each query: its type, and what corrective RAG made of its results."""

from __future__ import annotations

from typing import Any, Final

from fusion_bench.config.query_types import type_of
from fusion_bench.logs.logged_queries import LoggedQuery
from fusion_bench.schema import CRAGScore, QueryType

#: A query is as good as its best result.
VERDICTS: Final = ("correct", "ambiguous", "incorrect")


def search_type(query: LoggedQuery) -> str:
    """The type whose weights the dataset gives the query, as commands decide it."""
    facts = describe_query(query)
    return type_of(facts["type"], facts.get("confidence"), tuple(QueryType))


def describe_query(query: LoggedQuery) -> dict[str, Any]:
    """The query's line in ``queries.jsonl``.

    Its type is the one that the search ran with. A logged classification that leads to that type
    gives type and confidence. The verdict of corrective RAG is that of the best result.
    """
    facts: dict[str, Any] = {"id": query.id, "text": query.query.text}
    facts["type"] = str(query.query.type)
    classified = query.classification
    if classified is not None and query.query.type in (classified.type, classified.sure_type):
        facts |= {"type": str(classified.type), "confidence": classified.confidence}
    scores = [item.relevance.crag for item in query.items if item.relevance.crag is not None]
    if scores:
        facts |= _describe_verdict(scores)
    if query.known is not None:
        names = ("intent", "group", "split")
        given = {name: getattr(query.known, name) for name in names}
        facts |= {name: value for name, value in given.items() if value is not None}
    return facts


def _describe_verdict(scores: list[CRAGScore]) -> dict[str, Any]:
    best = min(scores, key=lambda score: VERDICTS.index(score.relevance))
    facts: dict[str, Any] = {
        "crag": best.relevance,
        "crag_confidence": best.confidence,
        "needs_web_search": best.needs_web_search,
    }
    refined = next((score.refined_query for score in scores if score.refined_query), None)
    return facts if refined is None else {**facts, "refined_query": refined}
