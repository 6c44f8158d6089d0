"""OpenSearch's connector: each query of a hybrid query alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, JsonValue, model_validator

from fusion_bench.engines.connectors import LegName, LegSettings, PullQuery, QueryForm, connectors
from fusion_bench.engines.connectors._answers import path_of, vector_of
from fusion_bench.engines.connectors._search_api import Authentication, SearchApiConnector
from fusion_bench.engines.connectors._sessions import fill_template, template_form
from fusion_bench.engines.dialects._search_requests import write_match
from fusion_bench.engines.dialects.opensearch import PIPELINE, REQUEST, OpenSearch


class OpenSearchLeg(LegSettings):
    """One query of a hybrid query.

    Attributes:
        fields: Text fields of a ``match`` or ``multi_match`` query.
        vector_field: Vector field of a ``knn`` query, or of a ``neural`` one.
        model_id: The model by which the server makes the vector of a ``neural`` query.
        query: Another query as JSON, with ``QUERY``, ``QUERY_VECTOR`` and ``DEPTH``.
    """

    fields: tuple[str, ...] = ()
    vector_field: str | None = None
    model_id: str | None = None
    query: dict[str, JsonValue] | None = None

    @model_validator(mode="after")
    def _check_search(self) -> OpenSearchLeg:
        given = (bool(self.fields), self.vector_field is not None, self.query is not None)
        if sum(given) != 1:
            raise ValueError("one of fields, vector_field and query is needed")
        if self.model_id is not None and self.vector_field is None:
            raise ValueError("model_id belongs to vector_field")
        return self

    @property
    def query_form(self) -> QueryForm:
        """A vector for ``knn``, and for a template that has one."""
        if self.query is not None:
            return template_form(self.query)
        return "vector" if self.vector_field is not None and self.model_id is None else "text"


@connectors.register
class OpenSearchConnector(SearchApiConnector):
    """OpenSearch: each query of a hybrid query is a leg, searched alone.

    Attributes:
        search_pipeline: The pipeline of the searches of single legs; ``_none`` also switches off
            the default one of the index, which could rerank.
    """

    source: ClassVar[str] = "https://docs.opensearch.org/latest/api-reference/search-apis/search/"
    dialect: ClassVar[str] = OpenSearch.name

    method: str = "opensearch"
    legs: Annotated[Mapping[LegName, OpenSearchLeg], Field(min_length=1)]
    authentication: Authentication = "basic"
    search_pipeline: Annotated[str, Field(min_length=1)] = "_none"

    @property
    def leg_path(self) -> str:
        """With the pipeline of single legs."""
        return f"{super().leg_path}?search_pipeline={path_of(self.search_pipeline)[1:]}"

    def leg_request(self, leg: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The query of a leg, and nothing else."""
        search = self._write_query(leg, query, depth)
        return {"query": search, "size": depth, "track_total_hits": False}

    def fused_request(self, query: PullQuery, depth: int) -> dict[str, Any]:
        """The exported request with the queries of the legs, and the pipeline inside it."""
        files = OpenSearch.write(self.fused_system(depth)).files
        request: dict[str, Any] = json.loads(files[REQUEST])
        request["query"]["hybrid"]["queries"] = [
            self._write_query(leg, query, self.window_of(leg, depth)) for leg in self.legs
        ]
        return {**request, "search_pipeline": json.loads(files[PIPELINE])}

    def _write_query(self, leg: str, query: PullQuery, depth: int) -> dict[str, Any]:
        settings = self.legs[leg]
        if settings.query is not None:
            return dict(fill_template(settings.query, query, leg, depth))
        if settings.vector_field is None:
            return write_match(settings.fields, query.text)
        if settings.model_id is not None:
            neural = {"query_text": query.text, "model_id": settings.model_id, "k": depth}
            return {"neural": {settings.vector_field: neural}}
        return {"knn": {settings.vector_field: {"vector": vector_of(query, leg), "k": depth}}}
