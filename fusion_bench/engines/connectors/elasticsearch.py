"""Elasticsearch's connector: each retriever of a hybrid query alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field, JsonValue, model_validator

from fusion_bench.engines.connectors import LegName, LegSettings, PullQuery, QueryForm, connectors
from fusion_bench.engines.connectors._answers import vector_of
from fusion_bench.engines.connectors._search_api import SearchApiConnector
from fusion_bench.engines.connectors._sessions import fill_template, template_form
from fusion_bench.engines.dialects._search_requests import MOST_CANDIDATES, write_match
from fusion_bench.engines.dialects.elasticsearch import FILE, Elasticsearch

#: Candidates of a shard for each document that is asked for, and the fewest.
CANDIDATES_PER_DOCUMENT: Final = 2
FEWEST_CANDIDATES: Final = 100


class ElasticsearchLeg(LegSettings):
    """One retriever.

    Attributes:
        fields: Text fields of a ``match`` or ``multi_match`` query.
        vector_field: Vector field of a ``knn`` retriever.
        num_candidates: Of this retriever, for each shard; None = twice the depth.
        retriever: Another retriever as JSON, with ``QUERY``, ``QUERY_VECTOR`` and ``DEPTH``.
    """

    fields: tuple[str, ...] = ()
    vector_field: str | None = None
    num_candidates: Annotated[int, Field(ge=1, le=MOST_CANDIDATES)] | None = None
    retriever: dict[str, JsonValue] | None = None

    @model_validator(mode="after")
    def _check_search(self) -> ElasticsearchLeg:
        given = (bool(self.fields), self.vector_field is not None, self.retriever is not None)
        if sum(given) != 1:
            raise ValueError("one of fields, vector_field and retriever is needed")
        if self.retriever is not None and len(self.retriever) != 1:
            raise ValueError("retriever: one kind is needed, such as standard: {query: …}")
        if self.num_candidates is not None and self.vector_field is None:
            raise ValueError("num_candidates belongs to vector_field")
        return self

    @property
    def query_form(self) -> QueryForm:
        """A vector for ``knn``, and for a template that has one."""
        if self.retriever is not None:
            return template_form(self.retriever)
        return "vector" if self.vector_field is not None else "text"


@connectors.register
class ElasticsearchConnector(SearchApiConnector):
    """Elasticsearch: each retriever is a leg, searched alone."""

    source: ClassVar[str] = (
        "https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-search"
    )
    dialect: ClassVar[str] = Elasticsearch.name

    method: str = "elasticsearch"
    legs: Annotated[Mapping[LegName, ElasticsearchLeg], Field(min_length=1)]

    def leg_request(self, leg: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The retriever of a leg, and nothing else."""
        retriever = self._write_retriever(leg, query, depth)
        return {"retriever": retriever, "size": depth, "track_total_hits": False}

    def fused_request(self, query: PullQuery, depth: int) -> dict[str, Any]:
        """The exported request with the retrievers of the legs."""
        system = self.fused_system(depth)
        request: dict[str, Any] = json.loads(Elasticsearch.write(system).files[FILE])
        ((_, body),) = request["retriever"].items()
        for leg, entry in zip(self.legs, body["retrievers"], strict=True):
            entry["retriever"] = self._write_retriever(leg, query, self.window_of(leg, depth))
        return request

    def _write_retriever(self, leg: str, query: PullQuery, depth: int) -> dict[str, Any]:
        settings = self.legs[leg]
        if settings.retriever is not None:
            return dict(fill_template(settings.retriever, query, leg, depth))
        if settings.vector_field is None:
            return {"standard": {"query": write_match(settings.fields, query.text)}}
        candidates = min(max(CANDIDATES_PER_DOCUMENT * depth, FEWEST_CANDIDATES), MOST_CANDIDATES)
        return {
            "knn": {
                "field": settings.vector_field,
                "query_vector": vector_of(query, leg),
                "k": depth,
                "num_candidates": max(settings.num_candidates or candidates, depth),
            }
        }
