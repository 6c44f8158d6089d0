"""Chroma's connector: queries of a collection, and the search API where that is asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, JsonValue, model_validator

from fusion_bench.config.limits import MOST_RANK, Rank
from fusion_bench.connector import (
    EngineSession,
    LegName,
    PullQuery,
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
from fusion_bench.engines.chroma._local import open_folder
from fusion_bench.engines.chroma._session import ChromaSession
from fusion_bench.engines.chroma.dialect import Chroma
from fusion_bench.util.http import KeyHeader

EMBEDDING: Final = "#embedding"


class ChromaLeg(SearchLeg):
    """A search by one embedding of the collection.

    Attributes:
        key: The embedding: ``#embedding`` is the collection's own; others need the search API.
        search: What is sent: the query's vector or, with the search API, its sparse vector.
    """

    key: str = EMBEDDING
    search: Literal["vector", "sparse_vector"] = "vector"


@connectors.register
class ChromaConnector(FusedByDialect, ServerOrFolder):
    """Chroma: each embedding of a collection is a leg.

    Attributes:
        collection: Name of the collection.
        tenant: Whose it is.
        database: Name of its database.
        search_api: Whether lists come from the search API, which Chroma Cloud has: it alone knows
            keys other than ``#embedding``, sparse vectors, and the fusion ``rrf``.
        where: A filter of metadata as JSON: only the documents that it admits are searched.
    """

    source: ClassVar[str] = "https://docs.trychroma.com/reference/chroma-reference"
    dialect: ClassVar[str] = Chroma.name
    key_header: ClassVar[KeyHeader] = KeyHeader("x-chroma-token")
    has_window_by_leg: ClassVar[bool] = True
    limit_name: ClassVar[str] = "most_documents"
    limit_advice: ClassVar[str] = "ask for fewer, or raise it"

    method: str = "chroma"
    collection: str
    tenant: str = "default_tenant"
    database: str = "default_database"
    legs: Annotated[Mapping[LegName, ChromaLeg], Field(min_length=1)]
    search_api: bool = False
    where: dict[str, JsonValue] | None = None
    most_documents: Rank = MOST_RANK

    @model_validator(mode="after")
    def _check_api(self) -> ChromaConnector:
        if self.search_api:
            return self
        if self.fused is not None:
            raise ValueError("fused: only the search API fuses: set search_api: true, or remove it")
        for name, leg in self.legs.items():
            if leg.key != EMBEDDING or leg.search != "vector":
                raise ValueError(
                    f"legs.{name}: a query knows the vector {EMBEDDING!r} alone: set "
                    "search_api: true for other keys and searches"
                )
        return self

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[EngineSession]:
        """Look the collection up by its name."""
        if self.path is not None:
            async with open_folder(self, self.path) as folder:
                yield folder
            return
        async with self.open_http() as client:
            session = ChromaSession(self, client)
            await session.find_collection()
            yield session

    def leg_query(self, leg: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The body of a query of the collection, without what is included."""
        body = {"query_embeddings": [vector_of(query, leg)], "n_results": depth}
        return body if self.where is None else {**body, "where": self.where}

    def leg_search(self, leg: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The ``rank`` and ``limit`` of a search of one leg."""
        return self._search(self._knn(leg, query, depth), depth)

    def fused_search(self, query: PullQuery, depth: int) -> dict[str, Any]:
        """The ``rank`` and ``limit`` of the fused search: −Σ w/(k + position)."""
        system = self.fused_system(depth)
        fusion, windows = system.fusion.model_dump(), windows_by_source(system)
        weights = weights_by_source(system)
        options: dict[str, Any] = {"return_rank": True}
        if fusion.get("default") is not None:
            options["default"] = fusion["default"]
        terms: list[dict[str, Any]] = []
        for leg, weight in weights.items():
            position = self._knn(leg, query, windows[leg], **options)
            below: dict[str, Any] = {"$sum": [{"$val": fusion["k"]}, position]}
            terms.append({"$div": {"left": {"$val": weight}, "right": below}})
        total: dict[str, Any] = terms[0] if len(terms) == 1 else {"$sum": terms}
        rank = {"$mul": [{"$val": -1.0}, total]}
        return self._search(rank, depth)

    def describe_score(self, leg: str) -> str:  # noqa: ARG002 - the same of every leg
        """The negative of a distance."""
        return "the negative of Chroma's distance"

    def _search(self, rank: dict[str, Any], depth: int) -> dict[str, Any]:
        search = {"rank": rank, "limit": {"offset": 0, "limit": depth}}
        return search if self.where is None else {**search, "filter": self.where}

    def _knn(self, leg: str, query: PullQuery, depth: int, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        settings = self.legs[leg]
        value: Any
        if settings.search == "vector":
            value = vector_of(query, leg)
        else:
            weights = sorted(sparse_vector_of(query, leg).items())
            value = {
                "#type": "sparse_vector",
                "indices": [dimension for dimension, _ in weights],
                "values": [weight for _, weight in weights],
            }
        return {"$knn": {"query": value, "key": settings.key, "limit": depth, **options}}
