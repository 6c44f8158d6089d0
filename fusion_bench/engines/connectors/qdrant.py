"""Qdrant: its sources; a connected server, or a folder that its library opens.

Qdrant Edge is Qdrant's own engine as a library. The local mode of qdrant-client is a second
implementation in Python.
"""

from __future__ import annotations

import importlib.metadata
import json
from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, JsonValue

from fusion_bench.config.models import MOST_RANK, Rank
from fusion_bench.engines.connectors import (
    EngineSession,
    Hit,
    PullQuery,
    QueryForm,
    SourceName,
    SourceSettings,
    connectors,
)
from fusion_bench.engines.connectors._sessions import (
    PAGE,
    DocumentFields,
    HttpSession,
    LockedSession,
    ServerOrFolder,
    Session,
    digest_of,
    json_sparse,
    number_at,
    path_of,
    refuse_error,
    rows_at,
    value_at,
    vector_of,
    wrap_errors,
)
from fusion_bench.engines.dialects.vector_databases import QDRANT_FILE, Qdrant
from fusion_bench.errors import ConfigError
from fusion_bench.util.files import read_regular_text
from fusion_bench.util.http_client import KeyHeader
from fusion_bench.util.json_text import mapping_at
from fusion_bench.util.optional_imports import import_optional

#: Distances of which a smaller one is better.
DISTANCES = frozenset({"Euclid", "Manhattan"})


def source_sign(info: Any, settings: QdrantSource) -> int:  # noqa: ANN401 - JSON
    """−1 where the scores of a source are distances, else 1.

    Args:
        info: The description of the collection.
        settings: The source.

    Raises:
        ConfigError: The source searches by a dense vector that the collection does not have.
    """
    vectors = mapping_at(info, "config", "params", "vectors")
    is_unnamed = "distance" in vectors
    known = {"": vectors} if is_unnamed else vectors
    name = settings.using or ""
    if name not in known and settings.query_form == "vector":
        listed = ", ".join(repr(each) for each in known if each) or "the unnamed one"
        wanted = f"vector {name!r}" if name else "unnamed vector"
        raise ConfigError(f"using: the collection has no {wanted} (dense vectors: {listed})")
    return -1 if value_at(known, name, "distance") in DISTANCES else 1


class PointSession(Session):
    """An engine whose rows are points."""

    fields = ("payload",)
    _connector: QdrantConnector

    def _read_signs(self, info: Any) -> None:  # noqa: ANN401 - JSON
        """See which sources have distances.

        Raises:
            ConfigError: A source searches by a vector that the collection does not have.
        """
        sources = self._connector.legs.items()
        self.signs = {name: source_sign(info, source) for name, source in sources}


class QdrantSession(PointSession, HttpSession):
    """A server that is connected."""

    rows = ("result", "points")
    _connector: QdrantConnector

    async def prepare(self) -> None:
        """Read how the collection measures distance."""
        info = await self._client.get_json(path_of("collections", self._connector.collection))
        self._read_signs(mapping_at(info, "result"))

    def _search_path(self, _source: str) -> str:
        return path_of("collections", self._connector.collection, "points", "query")

    def _select_fields(self, body: dict[str, Any], fields: list[str]) -> dict[str, Any]:
        return {**body, "with_payload": fields or False, "with_vector": False}

    def _check(self, data: Any) -> None:  # noqa: ANN401 - JSON
        super()._check(data)
        refuse_error(self._client, data, "status", "error")

    async def read_documents(self, place: JsonValue) -> tuple[Sequence[Hit], JsonValue]:
        """A page of the points."""
        path = path_of("collections", self._connector.collection, "points", "scroll")
        extra = self._connector.answer_bytes(PAGE, texts=True)
        data = await self._post(path, self._connector.list_request(place), extra)
        rows = rows_at(data, "result", "points")
        return self._list_documents(rows), value_at(data, "result", "next_page_offset")

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Version, collection, count of points, digest of the collection's configuration."""
        collection = self._connector.collection
        root = await self._client.get_json("/")
        info = await self._client.get_json(path_of("collections", collection))
        count = await self._client.post_json(
            path_of("collections", collection, "points", "count"), {"exact": True}
        )
        return {
            "version": value_at(root, "version"),
            "collection": collection,
            "documents": number_at(count, "result", "count"),
            "configuration": digest_of(value_at(info, "result", "config")),
        }


#: What a shard of Qdrant Edge has in its folder, and what a database of the local mode has.
SHARD_FILE: Final = "edge_config.json"
DATABASE_FILE: Final = "meta.json"
#: The only model that a library computes: BM25 with the server's defaults.
BM25: Final = "qdrant/bm25"
PURPOSE: Final = "pull from a folder of Qdrant"


class LocalSession(PointSession, LockedSession):
    """A folder that is open.

    Args:
        connector: Its settings.
    """

    title = Qdrant.title
    _connector: QdrantConnector

    def __init__(self, connector: QdrantConnector) -> None:
        super().__init__(connector)
        self._config: dict[str, Any] = {}
        self._bm25: Any = None

    def _describe(self) -> Mapping[str, JsonValue]:
        version, count = self._count_points()
        return {
            "version": version,
            "collection": self._connector.collection,
            "documents": count,
            "configuration": digest_of(self._config),
        }

    async def _search(
        self, body: dict[str, Any], source: str, _depth: int, *, texts: bool
    ) -> Sequence[Hit]:
        keys = self._connector.read_fields(texts=texts)
        points = await self._call(lambda: self._query(self._embed_texts(body), keys))
        rows = (
            {"id": point.id, "score": point.score, "payload": point.payload or {}}
            for point in points
        )
        return self._make_hits(rows, source, texts=texts)

    def open_points(self) -> None:
        """See which sources have distances."""
        self._read_signs({"config": self._config})

    def _embed_texts(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request with sparse vectors in place of texts, as a server's BM25 makes them."""
        body = {**body, "prefetch": [self._embed_texts(part) for part in body.get("prefetch", [])]}
        query = body["query"]
        if isinstance(query, dict) and "model" in query:
            if self._bm25 is None:
                edge = import_optional("qdrant_edge", extra="qdrant", purpose=PURPOSE)
                self._bm25 = edge.Bm25(edge.Bm25Config(language="english"))
            vector = self._bm25.embed_query(query["text"])
            body["query"] = {"indices": list(vector.indices), "values": list(vector.values)}
        return body

    async def read_documents(self, place: JsonValue) -> tuple[Sequence[Hit], JsonValue]:
        """A page of the points."""
        body = self._connector.list_request(place)
        points, following = await self._call(lambda: self._scroll(body))
        rows = ({"id": point.id, "payload": point.payload or {}} for point in points)
        return self._list_documents(rows), following

    @abstractmethod
    def _scroll(self, body: dict[str, Any]) -> tuple[Sequence[Any], JsonValue]:
        """The points of a request, and where the next ones begin."""

    @abstractmethod
    def close(self) -> None:
        """Close the folder."""

    @abstractmethod
    def _query(self, body: Mapping[str, Any], keys: Sequence[str]) -> Sequence[Any]:
        """The points of a request, each with these keys of its payload."""

    @abstractmethod
    def _count_points(self) -> tuple[str, int]:
        """The version of the library, and the number of points."""


class EdgeSession(LocalSession):
    """A shard of Qdrant Edge.

    Args:
        connector: Its settings.
        folder: The shard's.
    """

    def __init__(self, connector: QdrantConnector, folder: Path) -> None:
        super().__init__(connector)
        self._edge = import_optional("qdrant_edge", extra="qdrant", purpose=PURPOSE)
        with wrap_errors(Qdrant.title):
            self._shard = self._edge.EdgeShard.load(str(folder))
            text = read_regular_text(folder / SHARD_FILE)
        self._config = {"params": json.loads(text)}

    def close(self) -> None:
        """Close the shard."""
        self._shard.close()

    def _query(self, body: Mapping[str, Any], keys: Sequence[str]) -> Sequence[Any]:
        edge = self._edge
        request = edge.QueryRequest(
            limit=body["limit"],
            query=self._make_query(body),
            prefetches=[
                edge.Prefetch(
                    limit=part["limit"], query=self._make_query(part), params=self._params(part)
                )
                for part in body["prefetch"]
            ],
            params=self._params(body),
            with_payload=list(keys) or False,
        )
        points: Sequence[Any] = self._shard.query(request)
        return points

    def _scroll(self, body: dict[str, Any]) -> tuple[Sequence[Any], JsonValue]:
        keys = {key: value for key, value in body.items() if key != "with_vector"}
        points, following = self._shard.scroll(self._edge.ScrollRequest(**keys))
        return points, following

    def _make_query(self, body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - qdrant_edge's
        query, edge = body["query"], self._edge
        if isinstance(query, dict) and "rrf" in query:
            return edge.Fusion.Rrf(**query["rrf"])
        if isinstance(query, dict) and "fusion" in query:
            return edge.Fusion.Dbsf()
        if isinstance(query, dict):
            query = edge.SparseVector(query["indices"], query["values"])
        return edge.Query.Nearest(query, using=body.get("using"))

    def _params(self, body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - qdrant_edge's
        return self._edge.SearchParams(exact=True) if body.get("params") else None

    def _count_points(self) -> tuple[str, int]:
        version = importlib.metadata.version("qdrant-edge-py")
        return f"Qdrant Edge {version}", self._shard.info().points_count


class ClientSession(LocalSession):
    """A database of the local mode of qdrant-client.

    Args:
        connector: Its settings.
        folder: The database's.
    """

    def __init__(self, connector: QdrantConnector, folder: Path) -> None:
        super().__init__(connector)
        library = import_optional("qdrant_client", extra="qdrant", purpose=PURPOSE)
        self._models = library.models
        with wrap_errors(Qdrant.title):
            # Its SQLite connection is made in one thread and closed in another.
            self._client = library.QdrantClient(
                path=str(folder), force_disable_check_same_thread=True
            )
            try:
                info = self._client.get_collection(connector.collection)
            except ValueError as error:
                self._client.close()
                raise ConfigError(f"collection: {error}") from None
        self._config = info.config.model_dump(mode="json")

    def close(self) -> None:
        """Close the database, which unlocks its folder."""
        self._client.close()

    def _query(self, body: Mapping[str, Any], keys: Sequence[str]) -> Sequence[Any]:
        request = self._models.QueryRequest.model_validate(body)
        answer = self._client.query_points(
            self._connector.collection,
            query=request.query,
            using=request.using,
            prefetch=request.prefetch or None,
            limit=request.limit,
            search_params=request.params,
            query_filter=request.filter,
            with_payload=list(keys) or False,
        )
        points: Sequence[Any] = answer.points
        return points

    def _scroll(self, body: dict[str, Any]) -> tuple[Sequence[Any], JsonValue]:
        request = self._models.ScrollRequest.model_validate(body)
        points, following = self._client.scroll(
            self._connector.collection,
            scroll_filter=request.filter,
            limit=request.limit,
            offset=request.offset,
            with_payload=request.with_payload,
        )
        return points, following

    def _count_points(self) -> tuple[str, int]:
        version = importlib.metadata.version("qdrant-client")
        count: int = self._client.count(self._connector.collection, exact=True).count
        return f"qdrant-client {version}, local mode", count


class QdrantSource(SourceSettings):
    """A search by one vector of the points.

    Attributes:
        using: Name of the vector; None = the unnamed one.
        sparse: Whether it is a sparse vector.
        model: The server makes the vector from the query's text with this model, such as
            ``qdrant/bm25``.
        exact: Whether every point is compared, without the index.
    """

    using: str | None = None
    sparse: bool = False
    model: str | None = None
    exact: bool = False

    @property
    def query_form(self) -> QueryForm:
        """A dense or a sparse vector, or the text that the server's model reads."""
        if self.model is not None:
            return "text"
        return "sparse_vector" if self.sparse else "vector"


@connectors.register
class QdrantConnector(DocumentFields, ServerOrFolder):
    """Qdrant: each vector of the points is a leg.

    Attributes:
        collection: Name of the collection.
        id_field: Key of the payload that holds a document's id; None = the id of the point.
        text_field: Key of the payload that holds its text.
        filter: A filter as JSON: only the points that it admits are searched.
    """

    source = "https://api.qdrant.tech/api-reference/search/query-points"
    dialect = Qdrant.name
    session_type = QdrantSession
    scores = "Qdrant's score; the negative of the distance for Euclid and Manhattan"
    key_header = KeyHeader("api-key")
    lists_documents = True
    limit_name = "most_documents"
    limit_advice = "ask for fewer, or raise it"

    method: str = "qdrant"
    legs: Annotated[Mapping[SourceName, QdrantSource], Field(min_length=1)]
    filter: dict[str, JsonValue] | None = None
    most_documents: Rank = MOST_RANK

    @asynccontextmanager
    async def open_folder(self, path: str) -> AsyncIterator[EngineSession]:
        """Open a shard of Qdrant Edge, or a database of the local mode."""
        folder = Path(path)
        for name, source in self.legs.items():
            if source.model not in {None, BM25}:
                raise ConfigError(f"legs.{name}: model: in a folder only {BM25} is computed")
        session: LocalSession
        if (folder / SHARD_FILE).is_file():
            if self.filter is not None:
                raise ConfigError(
                    "filter: a shard of Qdrant Edge is searched without one: remove it"
                )
            session = EdgeSession(self, folder)
        elif (folder / DATABASE_FILE).is_file():
            session = ClientSession(self, folder)
        else:
            raise ConfigError(
                f"path: {path} is no shard of Qdrant Edge (it has no {SHARD_FILE}) and no database "
                f"of qdrant-client's local mode (it has no {DATABASE_FILE})"
            )
        try:
            session.open_points()
            yield session
        finally:
            session.close()

    def source_request(self, source: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The body of the search of one source, without payload."""
        return {**self._search(source, query), "limit": depth}

    def list_request(self, place: JsonValue) -> dict[str, Any]:
        """A page of the points that ``filter`` admits, from a point on."""
        fields: list[str] | bool = self.read_fields(texts=True) or False
        body: dict[str, Any] = {"limit": PAGE, "with_payload": fields, "with_vector": False}
        given = {"offset": place, "filter": self.filter}
        return body | {key: value for key, value in given.items() if value is not None}

    def fused_request(self, query: PullQuery, depth: int) -> dict[str, Any]:
        """The body of the fused search, as the export writes it, with this query in it."""
        request = json.loads(Qdrant.write(self.fused_system(depth)).files[QDRANT_FILE])
        request["prefetch"] = [
            {**self._search(entry["using"], query), "limit": entry["limit"]}
            for entry in request["prefetch"]
        ]
        return dict(request)

    def _search(self, source: str, query: PullQuery) -> dict[str, Any]:
        settings = self.legs[source]
        search: dict[str, Any] = {}
        if settings.model is not None:
            search["query"] = {"text": query.text, "model": settings.model}
        elif settings.sparse:
            search["query"] = json_sparse(query, source)
        else:
            search["query"] = vector_of(query, source)
        if settings.using is not None:
            search["using"] = settings.using
        if self.filter is not None:
            search["filter"] = self.filter
        if settings.exact:
            search["params"] = {"exact": True}
        return search
