"""Milvus's connector: the RESTful API v2, one search a leg."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any, ClassVar

from pydantic import Field, JsonValue

from fusion_bench.config.limits import Rank
from fusion_bench.connector import (
    EngineSession,
    LegName,
    PullQuery,
    QueryForm,
    SearchLeg,
    connectors,
)
from fusion_bench.engines._connectors.answers import (
    sparse_vector_of,
    vector_of,
)
from fusion_bench.engines._connectors.fused_answers import FusedByDialect
from fusion_bench.engines._connectors.server_or_folder import ServerOrFolder
from fusion_bench.engines._dialects.configuration import weights_by_source, windows_by_source
from fusion_bench.engines.milvus._lite import open_database
from fusion_bench.engines.milvus._session import MilvusSession
from fusion_bench.engines.milvus.dialect import MOST_DOCUMENTS, Milvus, MilvusWeighted
from fusion_bench.errors import ConfigError


class MilvusLeg(SearchLeg):
    """A search by one vector field.

    Attributes:
        field: The vector field; None = of the leg's name.
        search: What is sent: the query's vector, its sparse vector, or its text, for a field that
            a function of the collection fills (BM25, an embedding model).
        params: Further parameters of the search, such as ``ef``.
    """

    field: str | None = None
    search: QueryForm = "vector"
    params: dict[str, JsonValue] = Field(default_factory=dict)


@connectors.register
class MilvusConnector(FusedByDialect, ServerOrFolder):
    """Milvus: each vector field is a leg.

    Attributes:
        collection: Name of the collection.
        database: Name of its database.
        id_field: The field that holds a document's id; None = the primary key.
        text_field: The field that holds its text.
        filter: A boolean expression: only the entities that it admits are searched.
    """

    source: ClassVar[str] = "https://milvus.io/api-reference/restful/v2.6.x/About.md"
    dialect: ClassVar[str] = Milvus.name
    has_window_by_leg: ClassVar[bool] = True
    limit_name: ClassVar[str] = "Milvus"

    method: str = "milvus"
    collection: str
    database: str = "default"
    legs: Annotated[Mapping[LegName, MilvusLeg], Field(min_length=1)]
    id_field: str | None = None
    text_field: str | None = None
    filter: Annotated[str, Field(min_length=1)] | None = None
    most_documents: Rank = MOST_DOCUMENTS

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[EngineSession]:
        """Read the collection's primary key and the metrics of its fields."""
        if self.path is not None:
            async with open_database(self, self.path) as session:
                yield session
            return
        async with self.open_http() as client:
            server = MilvusSession(self, client)
            await server.describe_collection()
            yield server

    def describe_score(self, leg: str) -> str:  # noqa: ARG002 - the same of every leg
        """A similarity, or the negative of a distance."""
        return "Milvus's distance; its negative for L2, HAMMING and JACCARD"

    def check_metrics(self, metrics: Mapping[str, str]) -> None:
        """Refuse a leg without an index, and a fusion by another metric than the field's.

        Args:
            metrics: Vector field → metric, as the collection states them.

        Raises:
            ConfigError: A field has no index, or ``weighted`` names another metric.
        """
        for leg in self.legs:
            if self.field_of(leg) not in metrics:
                raise ConfigError(
                    f"legs.{leg}: field {self.field_of(leg)!r} has no index (indexed: "
                    f"{', '.join(sorted(metrics)) or 'none'})"
                )
        fusion = None if self.fused is None else self.fused_system(1).fusion
        if not isinstance(fusion, MilvusWeighted):
            return
        for leg in self.legs:
            given, metric = fusion.metric_of(leg), metrics[self.field_of(leg)]
            if metric != given:
                raise ConfigError(
                    f"fused.metric: {given} for leg {leg!r}, and field {self.field_of(leg)!r} has "
                    f"{metric}: set metric: {{{leg}: {metric}}}"
                )

    def field_of(self, leg: str) -> str:
        """The vector field of a leg."""
        return self.legs[leg].field or leg

    def leg_search(self, leg: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The search of one leg: ``data``, ``annsField`` and ``limit``."""
        form = self.legs[leg].search
        data: Any = query.text
        if form == "vector":
            data = vector_of(query, leg)
        elif form == "sparse_vector":
            weights = sorted(sparse_vector_of(query, leg).items())
            data = {str(dimension): weight for dimension, weight in weights}
        search = {"data": [data], "annsField": self.field_of(leg), "limit": depth}
        return search if self.filter is None else {**search, "filter": self.filter}

    def leg_request(self, leg: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The body of ``/entities/search`` without collection and fields."""
        search, params = self.leg_search(leg, query, depth), self.legs[leg].params
        return {**search, "searchParams": {"params": params}} if params else search

    def fused_request(self, query: PullQuery, depth: int) -> dict[str, Any]:
        """The body of ``/entities/hybrid_search`` without collection and fields."""
        system = self.fused_system(depth)
        windows = windows_by_source(system)
        searches = []
        for leg, settings in self.legs.items():
            search = self.leg_search(leg, query, windows[leg])
            searches.append({**search, "params": settings.params} if settings.params else search)
        fusion = system.fusion
        ranker: dict[str, Any] = {
            "strategy": "rrf",
            "params": {"k": fusion.model_dump().get("k")},
        }
        if isinstance(fusion, MilvusWeighted):
            weights = [*weights_by_source(system).values()]
            ranker = {
                "strategy": "weighted",
                "params": {"weights": weights, "norm_score": fusion.norm_score},
            }
        return {"search": searches, "rerank": ranker, "limit": depth}
