"""Qdrant: its legs; a connected server, or a folder that its library opens.

Qdrant Edge is Qdrant's own engine as a library. The local mode of qdrant-client is a second
implementation in Python.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, TypeVar

from pydantic import Field, JsonValue

from fusion_bench.config.models import MOST_RANK, Rank
from fusion_bench.engines.connectors import (
    EngineSession,
    Hit,
    LegName,
    LegSettings,
    PullQuery,
    QueryForm,
    connectors,
    make_hit,
)
from fusion_bench.engines.connectors._answers import (
    FusedByDialect,
    digest_of,
    number_at,
    path_of,
    refuse_error,
    require_text_field,
    rows_at,
    signed_score,
    sparse_vector_of,
    value_at,
    vector_of,
)
from fusion_bench.engines.connectors._sessions import ServerOrFolder, call_library, wrap_errors
from fusion_bench.engines.dialects.qdrant import FILE, Qdrant
from fusion_bench.errors import ConfigError
from fusion_bench.util.http_client import JsonClient, KeyHeader
from fusion_bench.util.json_text import mapping_at
from fusion_bench.util.optional_imports import import_optional

#: Distances of which a smaller one is better.
DISTANCES = frozenset({"Euclid", "Manhattan"})


def leg_sign(info: Any, settings: QdrantLeg) -> int:  # noqa: ANN401 - JSON
    """−1 where the scores of a leg are distances, else 1.

    Args:
        info: The description of the collection.
        settings: The leg.

    Raises:
        ConfigError: The leg searches by a dense vector that the collection does not have.
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


class QdrantSession:
    """A server that is connected.

    Args:
        connector: Its settings.
        client: The connection.
        info: The description of the collection.
    """

    def __init__(
        self, connector: QdrantConnector, client: JsonClient, info: Mapping[str, Any]
    ) -> None:
        self._connector, self._client = connector, client
        self._signs = {name: leg_sign(info, leg) for name, leg in connector.legs.items()}

    async def read_leg(
        self, leg: str, query: PullQuery, *, depth: int, texts: bool
    ) -> Sequence[Hit]:
        """One search by the leg's vector."""
        body = self._connector.leg_request(leg, query, depth)
        return await self._search(body, depth, sign=self._signs[leg], texts=texts)

    async def read_fused(self, query: PullQuery, *, depth: int, texts: bool) -> Sequence[Hit]:
        """A search with a prefetch a leg and the fusion over them."""
        body = self._connector.fused_request(query, depth)
        return await self._search(body, depth, sign=1, texts=texts)

    async def _search(
        self, body: dict[str, Any], depth: int, *, sign: int, texts: bool
    ) -> Sequence[Hit]:
        keys = self._connector.payload_keys(texts=texts)
        data = await self._client.post_json(
            path_of("collections", self._connector.collection, "points", "query"),
            {**body, "with_payload": keys or False, "with_vector": False},
            extra_bytes=self._connector.answer_bytes(depth, texts=texts),
        )
        refuse_error(self._client, data)
        refuse_error(self._client, data, "status", "error")
        return [
            self._connector.read_point(point, sign=sign, texts=texts)
            for point in rows_at(data, "result", "points")
        ]

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


T = TypeVar("T")

#: What a shard of Qdrant Edge has in its folder, and what a database of the local mode has.
SHARD_FILE: Final = "edge_config.json"
DATABASE_FILE: Final = "meta.json"
#: The only model that a library computes: BM25 with the server's defaults.
BM25: Final = "qdrant/bm25"
PURPOSE: Final = "pull from a folder of Qdrant"


@asynccontextmanager
async def open_folder(connector: QdrantConnector, path: str) -> AsyncIterator[EngineSession]:
    """Open a folder, and close it at the end.

    Raises:
        ConfigError: It is no folder of Qdrant, or a leg cannot be searched there.
        ProviderError: The library refuses it.
    """
    folder = Path(path)
    for name, leg in connector.legs.items():
        if leg.model not in {None, BM25}:
            raise ConfigError(f"legs.{name}: model: in a folder only {BM25} is computed")
    session: LocalSession
    if (folder / SHARD_FILE).is_file():
        if connector.filter is not None:
            raise ConfigError("filter: a shard of Qdrant Edge is searched without one: remove it")
        session = EdgeSession(connector, folder)
    elif (folder / DATABASE_FILE).is_file():
        session = ClientSession(connector, folder)
    else:
        raise ConfigError(
            f"path: {path} is no shard of Qdrant Edge (it has no {SHARD_FILE}) and no database of "
            f"qdrant-client's local mode (it has no {DATABASE_FILE})"
        )
    try:
        session.read_signs()
        yield session
    finally:
        session.close()


class LocalSession:
    """A folder that is open.

    Args:
        connector: Its settings.
    """

    def __init__(self, connector: QdrantConnector) -> None:
        self._connector = connector
        self._lock = asyncio.Lock()
        self._config: dict[str, Any] = {}
        self._signs: dict[str, int] = {}
        self._bm25: Any = None

    def read_signs(self) -> None:
        """See which legs have distances.

        Raises:
            ConfigError: A leg searches by a vector that the collection does not have.
        """
        info = {"config": self._config}
        legs = self._connector.legs
        self._signs = {name: leg_sign(info, leg) for name, leg in legs.items()}

    async def read_leg(
        self, leg: str, query: PullQuery, *, depth: int, texts: bool
    ) -> Sequence[Hit]:
        """One search by the leg's vector."""
        body = self._connector.leg_request(leg, query, depth)
        return await self._search(body, sign=self._signs[leg], texts=texts)

    async def read_fused(self, query: PullQuery, *, depth: int, texts: bool) -> Sequence[Hit]:
        """A search with a prefetch a leg and the fusion over them."""
        body = self._connector.fused_request(query, depth)
        return await self._search(body, sign=1, texts=texts)

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Version of the library, collection, count of points, digest of the configuration."""
        return await self._call(self._fingerprint)

    async def _search(self, body: dict[str, Any], *, sign: int, texts: bool) -> list[Hit]:
        keys = self._connector.payload_keys(texts=texts)
        points = await self._call(lambda: self._query(self._embed_texts(body), keys))
        return [
            self._connector.read_point(
                {"id": point.id, "score": point.score, "payload": point.payload or {}},
                sign=sign,
                texts=texts,
            )
            for point in points
        ]

    async def _call(self, question: Callable[[], T]) -> T:
        async with self._lock:  # neither library promises that calls may run at the same time
            return await call_library(Qdrant.title, question, self._connector.timeout)

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

    @abstractmethod
    def close(self) -> None:
        """Close the folder."""

    @abstractmethod
    def _query(self, body: Mapping[str, Any], keys: Sequence[str]) -> Sequence[Any]:
        """The points of a request, each with these keys of its payload."""

    @abstractmethod
    def _fingerprint(self) -> Mapping[str, JsonValue]: ...


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
            text = (folder / SHARD_FILE).read_text(encoding="utf-8")
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

    def _fingerprint(self) -> Mapping[str, JsonValue]:
        return {
            "version": f"Qdrant Edge {importlib.metadata.version('qdrant-edge-py')}",
            "collection": self._connector.collection,
            "documents": self._shard.info().points_count,
            "configuration": digest_of(self._config),
        }


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

    def _fingerprint(self) -> Mapping[str, JsonValue]:
        count = self._client.count(self._connector.collection, exact=True).count
        return {
            "version": f"qdrant-client {importlib.metadata.version('qdrant-client')}, local mode",
            "collection": self._connector.collection,
            "documents": count,
            "configuration": digest_of(self._config),
        }


class QdrantLeg(LegSettings):
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
class QdrantConnector(FusedByDialect, ServerOrFolder):
    """Qdrant: each vector of the points is a leg.

    Attributes:
        collection: Name of the collection.
        id_field: Key of the payload that holds a document's id; None = the id of the point.
        text_field: Key of the payload that holds its text.
        filter: A filter as JSON: only the points that it admits are searched.
    """

    source: ClassVar[str] = "https://api.qdrant.tech/api-reference/search/query-points"
    dialect: ClassVar[str] = Qdrant.name
    key_header: ClassVar[KeyHeader] = KeyHeader("api-key")
    has_window_by_leg: ClassVar[bool] = True
    limit_name: ClassVar[str] = "most_documents"
    limit_advice: ClassVar[str] = "ask for fewer, or raise it"

    method: str = "qdrant"
    collection: str
    legs: Annotated[Mapping[LegName, QdrantLeg], Field(min_length=1)]
    id_field: str | None = None
    text_field: str | None = None
    filter: dict[str, JsonValue] | None = None
    most_documents: Rank = MOST_RANK

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[EngineSession]:
        """Read how the collection measures distance, at the server or in the folder."""
        if self.path is not None:
            async with open_folder(self, self.path) as session:
                yield session
            return
        async with self.open_http() as client:
            info = await client.get_json(path_of("collections", self.collection))
            yield QdrantSession(self, client, mapping_at(info, "result"))

    def describe_score(self, leg: str) -> str:  # noqa: ARG002 - the same of every leg
        """A similarity, or the negative of a distance."""
        return "Qdrant's score; the negative of the distance for Euclid and Manhattan"

    def leg_request(self, leg: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The body of the search of one leg, without payload."""
        return {**self._search(leg, query), "limit": depth}

    def fused_request(self, query: PullQuery, depth: int) -> dict[str, Any]:
        """The body of the fused search, as the export writes it, with this query in it."""
        request = json.loads(Qdrant.write(self.fused_system(depth)).files[FILE])
        request["prefetch"] = [
            {**self._search(entry["using"], query), "limit": entry["limit"]}
            for entry in request["prefetch"]
        ]
        return dict(request)

    def payload_keys(self, *, texts: bool) -> list[str]:
        """The keys of the payload that are read."""
        keys = (self.id_field, require_text_field(self.text_field, texts=texts))
        return [key for key in keys if key is not None]

    def read_point(self, point: Mapping[str, Any], *, sign: int, texts: bool) -> Hit:
        """The hit of a point of an answer.

        Raises:
            ProviderError: Kind ``malformed``.
        """
        document = point.get("id")
        if self.id_field is not None:
            document = value_at(point, "payload", self.id_field)
        text = value_at(point, "payload", self.text_field) if texts and self.text_field else None
        return make_hit(document, signed_score(point.get("score"), sign), text)

    def _search(self, leg: str, query: PullQuery) -> dict[str, Any]:
        settings = self.legs[leg]
        search: dict[str, Any] = {}
        if settings.model is not None:
            search["query"] = {"text": query.text, "model": settings.model}
        elif settings.sparse:
            weights = sorted(sparse_vector_of(query, leg).items())
            search["query"] = {
                "indices": [dimension for dimension, _ in weights],
                "values": [weight for _, weight in weights],
            }
        else:
            search["query"] = vector_of(query, leg)
        if settings.using is not None:
            search["using"] = settings.using
        if self.filter is not None:
            search["filter"] = self.filter
        if settings.exact:
            search["params"] = {"exact": True}
        return search
