"""Chroma: its sources; a connected server, or a folder that its library opens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, JsonValue, model_validator

from fusion_bench.config.models import MOST_RANK, Rank
from fusion_bench.engines.connectors import (
    EngineSession,
    Hit,
    PullQuery,
    SearchSource,
    SourceName,
    connectors,
    make_hit,
)
from fusion_bench.engines.connectors._sessions import (
    PAGE,
    HttpSession,
    LibrarySession,
    ServerOrFolder,
    digest_of,
    json_sparse,
    number_at,
    path_of,
    refuse_error,
    signed_score,
    value_at,
    vector_of,
    wrap_errors,
)
from fusion_bench.engines.dialects._dialect import weights_by_source, windows_by_source
from fusion_bench.engines.dialects.vector_databases import Chroma
from fusion_bench.errors import ConfigError
from fusion_bench.util.http_client import KeyHeader
from fusion_bench.util.json_text import malformed_error, mapping_at
from fusion_bench.util.optional_imports import import_optional

PREFIX: Final = "/api/v2"
DOCUMENT, SCORE = "#document", "#score"


class ChromaSession(HttpSession):
    """A server that is connected."""

    _connector: ChromaConnector
    _collection_id = ""

    async def prepare(self) -> None:
        """Look the collection up, whose id further requests name."""
        await self._describe_collection()

    async def _describe_collection(self) -> dict[str, Any]:
        place = self._collections_path(self._connector.collection)
        data = mapping_at(await self._client.get_json(place))
        if not isinstance(data.get("id"), str):
            raise malformed_error("the collection has no id")
        self._collection_id = data["id"]
        return data

    async def _search(
        self, body: dict[str, Any], _source: str, depth: int, *, texts: bool
    ) -> Sequence[Hit]:
        action, scores = "query", "distances"
        if self._connector.search_api:
            action, scores = "search", "scores"
            keys = [SCORE, *([DOCUMENT] if texts else [])]
            body = {"searches": [{**body, "select": {"keys": keys}}]}
        else:
            body = {**body, "include": _list_included(texts=texts)}
        path = self._collections_path(self._collection_id, action)
        extra = self._connector.answer_bytes(depth, texts=texts)
        data = await self._client.post_json(path, body, extra_bytes=extra)
        refuse_error(self._client, data)
        return _read_columns(data, scores, texts=texts)

    async def read_documents(self, place: JsonValue) -> tuple[Sequence[Hit], JsonValue]:
        """A page of the collection."""
        body = {**self._connector.list_request(), "limit": PAGE, "offset": place or 0}
        path = self._collections_path(self._collection_id, "get")
        extra = self._connector.answer_bytes(PAGE, texts=True)
        data = await self._client.post_json(path, body, extra_bytes=extra)
        refuse_error(self._client, data)
        return _next_page(read_documents(data), place)

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Version, collection, count of documents, digest of the collection's configuration."""
        description = await self._describe_collection()
        version = await self._client.get_json(f"{PREFIX}/version")
        count = await self._client.get_json(self._collections_path(self._collection_id, "count"))
        return {
            "version": version if isinstance(version, str) else None,
            "collection": self._connector.collection,
            "collection_id": self._collection_id,
            "documents": number_at(count),
            "configuration": digest_of(
                [description.get(key) for key in ("configuration_json", "dimension", "schema")]
            ),
        }

    def _collections_path(self, *parts: str) -> str:
        tenant, database = self._connector.tenant, self._connector.database
        place = path_of("tenants", tenant, "databases", database, "collections", *parts)
        return f"{PREFIX}{place}"


def _list_included(*, texts: bool) -> list[str]:
    """The columns beside the ids of the answer to a query."""
    return ["distances", *(["documents"] if texts else [])]


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


def read_documents(data: Any) -> list[Hit]:  # noqa: ANN401 - JSON
    """The documents of an answer in columns.

    Raises:
        ProviderError: Kind ``malformed``: a column is missing, or of another length.
    """
    ids, texts = value_at(data, "ids"), value_at(data, "documents")
    if not isinstance(ids, list) or not isinstance(texts, list) or len(ids) != len(texts):
        raise malformed_error("it has no columns ids and documents of one length")
    return [make_hit(document, 0.0, text) for document, text in zip(ids, texts, strict=True)]


def _column_at(data: Any, name: str) -> list[Any]:  # noqa: ANN401 - JSON
    columns = value_at(data, name)
    if not isinstance(columns, list) or len(columns) != 1 or not isinstance(columns[0], list):
        raise malformed_error(f"it has no column {name!r} of one query")
    return list(columns[0])


#: What a database has in its folder.
DATABASE_FILE: Final = "chroma.sqlite3"


class LocalSession(LibrarySession):
    """A collection of a folder.

    Args:
        connector: Its settings.
        collection: chromadb's.
        version: Of chromadb.
    """

    title = Chroma.title
    _connector: ChromaConnector

    def __init__(self, connector: ChromaConnector, collection: Any, version: str) -> None:  # noqa: ANN401 - chromadb's
        super().__init__(connector)
        self._collection, self._version = collection, version

    async def _search(
        self, body: dict[str, Any], _source: str, _depth: int, *, texts: bool
    ) -> Sequence[Hit]:
        include = _list_included(texts=texts)
        data = await self._call(lambda: self._collection.query(**body, include=include))
        return _read_columns(dict(data), "distances", texts=texts)

    async def read_documents(self, place: JsonValue) -> tuple[Sequence[Hit], JsonValue]:
        """A page of the collection."""
        body = {**self._connector.list_request(), "limit": PAGE, "offset": place or 0}
        data = await self._call(lambda: self._collection.get(**body))
        return _next_page(read_documents(dict(data)), place)

    def _describe(self) -> Mapping[str, JsonValue]:
        return {
            "version": self._version,
            "collection": self._connector.collection,
            "collection_id": str(self._collection.id),
            "documents": self._collection.count(),
            "configuration": digest_of(self._collection.configuration_json),
        }


def _next_page(documents: Sequence[Hit], place: JsonValue) -> tuple[Sequence[Hit], JsonValue]:
    """A page that began at an offset, and the offset of the next; None = this is the last."""
    start = place if isinstance(place, int) else 0
    return documents, start + PAGE if len(documents) == PAGE else None


EMBEDDING: Final = "#embedding"


class ChromaSource(SearchSource):
    """A search by one embedding of the collection.

    Attributes:
        key: The embedding: ``#embedding`` is the collection's own; others need the search API.
        search: What is sent: the query's vector or, with the search API, its sparse vector.
    """

    key: str = EMBEDDING
    search: Literal["vector", "sparse_vector"] = "vector"


@connectors.register
class ChromaConnector(ServerOrFolder):
    """Chroma: each embedding of a collection is a leg.

    Attributes:
        collection: Name of the collection.
        tenant: Whose it is.
        database: Name of its database.
        search_api: Whether lists come from the search API, which Chroma Cloud has: it alone knows
            keys other than ``#embedding``, sparse vectors, and the fusion ``rrf``.
        where: A filter of metadata as JSON: only the documents that it admits are searched.
    """

    source = "https://docs.trychroma.com/reference/chroma-reference"
    dialect = Chroma.name
    session_type = ChromaSession
    scores = "the negative of Chroma's distance"
    key_header = KeyHeader("x-chroma-token")
    lists_documents = True
    limit_name = "most_documents"
    limit_advice = "ask for fewer, or raise it"

    method: str = "chroma"
    tenant: str = "default_tenant"
    database: str = "default_database"
    legs: Annotated[Mapping[SourceName, ChromaSource], Field(min_length=1)]
    search_api: bool = False
    where: dict[str, JsonValue] | None = None
    most_documents: Rank = MOST_RANK

    @model_validator(mode="after")
    def _check_api(self) -> ChromaConnector:
        if self.search_api:
            return self
        if self.fused is not None:
            raise ValueError("fused: only the search API fuses: set search_api: true, or remove it")
        for name, source in self.legs.items():
            if source.key != EMBEDDING or source.search != "vector":
                raise ValueError(
                    f"legs.{name}: a query knows the vector {EMBEDDING!r} alone: set "
                    "search_api: true for other keys and searches"
                )
        return self

    @asynccontextmanager
    async def open_folder(self, path: str) -> AsyncIterator[EngineSession]:
        """Open the database of a folder."""
        if self.search_api:
            raise ConfigError("search_api: a folder of Chroma has none: remove it")
        if not (Path(path) / DATABASE_FILE).is_file():
            raise ConfigError(f"path: {path} is no folder of Chroma: it has no {DATABASE_FILE}")
        library = import_optional(
            "chromadb", extra="chroma", purpose="pull from a folder of Chroma"
        )
        settings = library.config.Settings(anonymized_telemetry=False)
        with wrap_errors(Chroma.title):
            client = library.PersistentClient(
                path, settings, tenant=self.tenant, database=self.database
            )
            known = sorted(collection.name for collection in client.list_collections())
            if self.collection not in known:
                raise ConfigError(
                    f"collection: there is no {self.collection!r} (known: "
                    f"{', '.join(known) or 'none'})"
                )
            collection = client.get_collection(self.collection, embedding_function=None)
        yield LocalSession(self, collection, library.__version__)

    def source_request(self, source: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """A query of the collection without what is included, or a search without its keys."""
        if self.search_api:
            return self._search(self._knn(source, query, depth), depth)
        body = {"query_embeddings": [vector_of(query, source)], "n_results": depth}
        return body if self.where is None else {**body, "where": self.where}

    def list_request(self) -> dict[str, Any]:
        """The documents that ``where`` admits, with their texts, without the page."""
        body: dict[str, Any] = {"include": ["documents"]}
        return body if self.where is None else {**body, "where": self.where}

    def fused_request(self, query: PullQuery, depth: int) -> dict[str, Any]:
        """The ``rank`` and ``limit`` of the fused search: −Σ w/(k + position)."""
        system = self.fused_system(depth)
        fusion, windows = system.fusion.model_dump(), windows_by_source(system)
        weights = weights_by_source(system)
        options: dict[str, Any] = {"return_rank": True}
        if fusion.get("default") is not None:
            options["default"] = fusion["default"]
        terms: list[dict[str, Any]] = []
        for source, weight in weights.items():
            position = self._knn(source, query, windows[source], **options)
            below: dict[str, Any] = {"$sum": [{"$val": fusion["k"]}, position]}
            terms.append({"$div": {"left": {"$val": weight}, "right": below}})
        total: dict[str, Any] = terms[0] if len(terms) == 1 else {"$sum": terms}
        rank = {"$mul": [{"$val": -1.0}, total]}
        return self._search(rank, depth)

    def _search(self, rank: dict[str, Any], depth: int) -> dict[str, Any]:
        search = {"rank": rank, "limit": {"offset": 0, "limit": depth}}
        return search if self.where is None else {**search, "filter": self.where}

    def _knn(self, source: str, query: PullQuery, depth: int, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        settings = self.legs[source]
        value: Any
        if settings.search == "vector":
            value = vector_of(query, source)
        else:
            value = {"#type": "sparse_vector", **json_sparse(query, source)}
        return {"$knn": {"query": value, "key": settings.key, "limit": depth, **options}}
