"""Qdrant in a folder: a shard of Qdrant Edge, or a database of the client's local mode.

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
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import JsonValue

from fusion_bench.connector import EngineSession, Hit, PullQuery
from fusion_bench.engines._connectors.answers import digest_of
from fusion_bench.engines._connectors.client_library import call_library, wrap_errors
from fusion_bench.engines.qdrant._session import leg_sign
from fusion_bench.engines.qdrant.dialect import Qdrant
from fusion_bench.errors import ConfigError
from fusion_bench.util.optional_imports import import_optional

if TYPE_CHECKING:
    from fusion_bench.engines.qdrant.connector import QdrantConnector

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
