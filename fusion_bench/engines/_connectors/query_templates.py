"""Queries that a user writes as a template, with the placeholders that an export has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fusion_bench.connector import PullQuery, QueryForm
from fusion_bench.engines._connectors.answers import vector_of
from fusion_bench.engines._dialects.search_requests import QUERY, VECTOR

#: Stands for the number of documents that are asked for.
DEPTH: Final = "DEPTH"


def fill_template(template: Any, query: PullQuery, leg: str, depth: int) -> Any:  # noqa: ANN401 - JSON
    """A template with the query in it.

    A text that is nothing but a placeholder is replaced: ``QUERY`` by the query's text,
    ``QUERY_VECTOR`` by the numbers of its vector, ``DEPTH`` by the number of documents. So no
    query can change the structure of a request.

    Args:
        template: A JSON value.
        query: The query.
        leg: Whose vector is meant.
        depth: How many documents are asked for.
    """
    if isinstance(template, Mapping):
        return {key: fill_template(value, query, leg, depth) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [fill_template(value, query, leg, depth) for value in template]
    if template == QUERY:
        return query.text
    if template == VECTOR:
        return vector_of(query, leg)
    return depth if template == DEPTH else template


def template_form(template: Any) -> QueryForm:  # noqa: ANN401 - JSON
    """What a template searches with."""
    if isinstance(template, Mapping):
        template = [*template.values()]
    if isinstance(template, list | tuple):
        forms = {template_form(value) for value in template}
        return "vector" if "vector" in forms else "text"
    return "vector" if template == VECTOR else "text"
