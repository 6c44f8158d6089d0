"""Chroma in a folder, which its library opens; it is the engine of the server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import JsonValue

from fusion_bench.connector import EngineSession, Hit, PullQuery
from fusion_bench.engines._connectors.answers import digest_of
from fusion_bench.engines._connectors.client_library import call_library, wrap_errors
from fusion_bench.engines.chroma._session import read_columns
from fusion_bench.engines.chroma.dialect import Chroma
from fusion_bench.errors import ConfigError
from fusion_bench.util.optional_imports import import_optional

if TYPE_CHECKING:
    from fusion_bench.engines.chroma.connector import ChromaConnector

T = TypeVar("T")

#: What a database has in its folder.
DATABASE_FILE: Final = "chroma.sqlite3"


@asynccontextmanager
async def open_folder(connector: ChromaConnector, path: str) -> AsyncIterator[EngineSession]:
    """Open the database of a folder.

    Raises:
        ConfigError: There is no such database or collection, or the search API is asked for.
        MissingExtraError: chromadb is not installed.
        ProviderError: The library refuses it.
    """
    if connector.search_api:
        raise ConfigError("search_api: a folder of Chroma has none: remove it")
    if not (Path(path) / DATABASE_FILE).is_file():
        raise ConfigError(f"path: {path} is no folder of Chroma: it has no {DATABASE_FILE}")
    library = import_optional("chromadb", extra="chroma", purpose="pull from a folder of Chroma")
    settings = library.config.Settings(anonymized_telemetry=False)
    with wrap_errors(Chroma.title):
        client = library.PersistentClient(
            path, settings, tenant=connector.tenant, database=connector.database
        )
        known = sorted(collection.name for collection in client.list_collections())
        if connector.collection not in known:
            raise ConfigError(
                f"collection: there is no {connector.collection!r} (known: "
                f"{', '.join(known) or 'none'})"
            )
        collection = client.get_collection(connector.collection, embedding_function=None)
    yield LocalSession(connector, collection, library.__version__)


class LocalSession:
    """A collection of a folder.

    Args:
        connector: Its settings.
        collection: chromadb's.
        version: Of chromadb.
    """

    def __init__(self, connector: ChromaConnector, collection: Any, version: str) -> None:  # noqa: ANN401 - chromadb's
        self._connector, self._collection, self._version = connector, collection, version

    async def read_leg(
        self, leg: str, query: PullQuery, *, depth: int, texts: bool
    ) -> Sequence[Hit]:
        """The nearest documents; a score is the negative of a distance."""
        request = self._connector.leg_query(leg, query, depth)
        include = ["distances", *(["documents"] if texts else [])]
        data = await self._call(lambda: self._collection.query(**request, include=include))
        return read_columns(dict(data), "distances", texts=texts)

    async def read_fused(self, query: PullQuery, *, depth: int, texts: bool) -> Sequence[Hit]:
        """Nothing: a folder has no search API, and without it ``fused`` cannot be set."""
        raise NotImplementedError

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Version, collection, count of documents, digest of the collection's configuration."""
        return await self._call(self._fingerprint)

    def _fingerprint(self) -> Mapping[str, JsonValue]:
        return {
            "version": self._version,
            "collection": self._connector.collection,
            "collection_id": str(self._collection.id),
            "documents": self._collection.count(),
            "configuration": digest_of(self._collection.configuration_json),
        }

    async def _call(self, question: Callable[[], T]) -> T:
        return await call_library(Chroma.title, question, self._connector.timeout)
