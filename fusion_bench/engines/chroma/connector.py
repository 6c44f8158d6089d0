"""Chroma's connector: queries of a collection, and the search API where that is asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field, JsonValue, model_validator

from fusion_bench.connector import (
    EngineSession,
    Hit,
    LegName,
    LegSettings,
    PullQuery,
    QueryForm,
    connectors,
    make_hit,
)
from fusion_bench.engines._answers import (
    digest_of,
    path_of,
    signed_score,
    sparse_vector_of,
    value_at,
    vector_of,
)
from fusion_bench.engines._configuration import weights_by_source, windows_by_source
from fusion_bench.engines._fused import FusedByDialect
from fusion_bench.engines._places import ServerOrFolder
from fusion_bench.engines.chroma.dialect import Chroma
from fusion_bench.errors import ConfigError
from fusion_bench.util.http import JsonClient, KeyHeader
from fusion_bench.util.http.json_fields import malformed_error, mapping_at

PREFIX: Final = "/api/v2"
EMBEDDING: Final = "#embedding"
DOCUMENT, SCORE = "#document", "#score"


class ChromaLeg(LegSettings):
    """A search by one embedding of the collection.

    Attributes:
        key: The embedding: ``#embedding`` is the collection's own; others need the search API.
        search: What is sent: the query's vector, its sparse vector, or, with the search API, its
            text, which the server embeds.
    """

    key: str = EMBEDDING
    search: QueryForm = "vector"

    @property
    def query_form(self) -> QueryForm:
        """As ``search`` says."""
        return self.search


@connectors.register
class ChromaConnector(FusedByDialect, ServerOrFolder):
    """Chroma: each embedding of a collection is a leg.

    Attributes:
        collection: Name of the collection.
        tenant: Whose it is.
        database: Name of its database.
        search_api: Whether lists come from the search API, which Chroma Cloud has: it alone knows
            keys other than ``#embedding``, texts, and the fusion ``rrf``.
    """

    source: ClassVar[str] = "https://docs.trychroma.com/reference/chroma-reference"
    dialect: ClassVar[str] = Chroma.name
    key_header: ClassVar[KeyHeader] = KeyHeader("x-chroma-token")
    has_window_by_leg: ClassVar[bool] = True
    limit_name: ClassVar[str] = "Chroma"

    method: str = "chroma"
    collection: str
    tenant: str = "default_tenant"
    database: str = "default_database"
    legs: Annotated[Mapping[LegName, ChromaLeg], Field(min_length=1)]
    search_api: bool = False

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
            raise ConfigError("path: local databases are not supported yet: use url")
        async with self.open_http() as client:
            session = ChromaSession(self, client)
            await session.find_collection()
            yield session

    def leg_query(self, leg: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The body of a query of the collection, without what is included."""
        return {"query_embeddings": [vector_of(query, leg)], "n_results": depth}

    def leg_search(self, leg: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The ``rank`` and ``limit`` of a search of one leg."""
        return {"rank": self._knn(leg, query, depth), "limit": {"offset": 0, "limit": depth}}

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
        return {"rank": rank, "limit": {"offset": 0, "limit": depth}}

    def _knn(self, leg: str, query: PullQuery, depth: int, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        settings = self.legs[leg]
        value: Any = query.text
        if settings.search == "vector":
            value = vector_of(query, leg)
        elif settings.search == "sparse_vector":
            weights = sorted(sparse_vector_of(query, leg).items())
            value = {
                "#type": "sparse_vector",
                "indices": [dimension for dimension, _ in weights],
                "values": [weight for _, weight in weights],
            }
        return {"$knn": {"query": value, "key": settings.key, "limit": depth, **options}}


class ChromaSession:
    """A server that is connected.

    Args:
        connector: Its settings.
        client: The connection.
    """

    def __init__(self, connector: ChromaConnector, client: JsonClient) -> None:
        self._connector, self._client, self._collection_id = connector, client, ""

    async def find_collection(self) -> dict[str, Any]:
        """The description of the collection, whose id further requests name."""
        place = self._collections_path(self._connector.collection)
        data = mapping_at(await self._client.get_json(place))
        if not isinstance(data.get("id"), str):
            raise malformed_error("the collection has no id")
        self._collection_id = data["id"]
        return data

    async def read_leg(
        self, leg: str, query: PullQuery, *, depth: int, texts: bool
    ) -> Sequence[Hit]:
        """The nearest documents; a score is the negative of a distance."""
        if self._connector.search_api:
            body = self._connector.leg_search(leg, query, depth)
            return await self._search(body, depth, texts=texts)
        include = ["distances", *(["documents"] if texts else [])]
        body = {**self._connector.leg_query(leg, query, depth), "include": include}
        data = await self._post("query", body, depth, texts=texts)
        return _read_columns(data, "distances", texts=texts)

    async def read_fused(self, query: PullQuery, *, depth: int, texts: bool) -> Sequence[Hit]:
        """The search API's fused list; a score is the negative of what Chroma sorts by."""
        return await self._search(self._connector.fused_search(query, depth), depth, texts=texts)

    async def _search(self, search: dict[str, Any], depth: int, *, texts: bool) -> Sequence[Hit]:
        keys = [SCORE, *([DOCUMENT] if texts else [])]
        body = {"searches": [{**search, "select": {"keys": keys}}]}
        data = await self._post("search", body, depth, texts=texts)
        return _read_columns(data, "scores", texts=texts)

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Version, collection, count of documents, digest of the collection's configuration."""
        description = await self.find_collection()
        version = await self._client.get_json(f"{PREFIX}/version")
        count = await self._client.get_json(self._collections_path(self._collection_id, "count"))
        return {
            "version": version if isinstance(version, str) else None,
            "collection": self._connector.collection,
            "collection_id": self._collection_id,
            "documents": count if isinstance(count, int) else None,
            "configuration": digest_of(
                [description.get(key) for key in ("configuration_json", "dimension", "schema")]
            ),
        }

    async def _post(self, action: str, body: dict[str, Any], depth: int, *, texts: bool) -> Any:  # noqa: ANN401 - JSON
        return await self._client.post_json(
            self._collections_path(self._collection_id, action),
            body,
            extra_bytes=self._connector.answer_bytes(depth, texts=texts),
        )

    def _collections_path(self, *parts: str) -> str:
        tenant, database = self._connector.tenant, self._connector.database
        place = path_of("tenants", tenant, "databases", database, "collections", *parts)
        return f"{PREFIX}{place}"


def _read_columns(data: Any, scores: str, *, texts: bool) -> list[Hit]:  # noqa: ANN401 - JSON
    """The hits of the first and only query of an answer in columns.

    Raises:
        ProviderError: Kind ``malformed``: a column is missing, or of another length.
    """
    ids, distances = _column_at(data, "ids"), _column_at(data, scores)
    documents = _column_at(data, "documents") if texts else [None] * len(ids)
    if not len(ids) == len(distances) == len(documents):
        raise malformed_error(f"its columns ids and {scores} are of different lengths")
    return [
        make_hit(document, signed_score(distance, -1), text)
        for document, distance, text in zip(ids, distances, documents, strict=True)
    ]


def _column_at(data: Any, name: str) -> list[Any]:  # noqa: ANN401 - JSON
    columns = value_at(data, name)
    if not isinstance(columns, list) or len(columns) != 1 or not isinstance(columns[0], list):
        raise malformed_error(f"it has no column {name!r} of one query")
    return list(columns[0])
