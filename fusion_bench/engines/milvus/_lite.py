"""Milvus Lite: a database in a folder, which pymilvus opens.

Milvus Lite 3 is a second implementation of Milvus, in Python.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import JsonValue

from fusion_bench.connector import EngineSession, Hit, PullQuery, make_hit
from fusion_bench.engines._connectors.answers import digest_of, require_text_field
from fusion_bench.engines._connectors.client_library import call_library, wrap_errors
from fusion_bench.engines.milvus._session import DISTANCES
from fusion_bench.errors import ConfigError
from fusion_bench.util.optional_imports import import_optional

if TYPE_CHECKING:
    from fusion_bench.engines.milvus.connector import MilvusConnector

T = TypeVar("T")

TITLE: Final = "Milvus Lite"
PURPOSE: Final = "pull from Milvus Lite"
#: In place of a metric: fused scores.
FUSED: Final = "fused"


@asynccontextmanager
async def open_database(connector: MilvusConnector, path: str) -> AsyncIterator[EngineSession]:
    """Open a database, and close it at the end.

    Raises:
        ConfigError: There is no such database or collection.
        ProviderError: The library refuses it.
    """
    if not path.endswith(".db") or not Path(path).exists():
        raise ConfigError(f"path: {path} is no database of Milvus Lite, such as milvus.db")
    library = import_optional("pymilvus", extra="milvus", purpose=PURPOSE)
    import_optional("milvus_lite", extra="milvus", purpose=PURPOSE)
    with wrap_errors(TITLE):
        client = library.MilvusClient(path)
    try:
        yield LiteSession(connector, library, client)
    finally:
        client.close()


class LiteSession:
    """A database that is open.

    Args:
        connector: Its settings.
        library: pymilvus.
        client: Its client.

    Raises:
        ConfigError: There is no such collection.
        ProviderError: The library refuses it.
    """

    def __init__(self, connector: MilvusConnector, library: Any, client: Any) -> None:  # noqa: ANN401 - pymilvus's
        self._connector, self._library, self._client = connector, library, client
        self._lock = asyncio.Lock()
        name = connector.collection
        with wrap_errors(TITLE):
            if not client.has_collection(name):
                known = ", ".join(sorted(client.list_collections())) or "none"
                raise ConfigError(f"collection: there is no {name!r} (known: {known})")
            self._description = client.describe_collection(name)
            indexes = [client.describe_index(name, index) for index in client.list_indexes(name)]
            client.load_collection(name)
        self._metrics = {index["field_name"]: index["metric_type"] for index in indexes}
        connector.check_metrics(self._metrics)
        self._key = next(
            (field["name"] for field in self._description["fields"] if field.get("is_primary")),
            "id",
        )

    async def read_leg(
        self, leg: str, query: PullQuery, *, depth: int, texts: bool
    ) -> Sequence[Hit]:
        """One search in the leg's vector field."""
        search = self._search_of(leg, query, depth)
        field = self._connector.field_of(leg)
        options = {
            "data": search["data"],
            "anns_field": field,
            "search_params": {"params": self._connector.legs[leg].params},
            "filter": self._connector.filter or "",
        }
        rows = await self._read_rows(self._client.search, options, depth, texts=texts)
        return self._make_hits(rows, self._metrics.get(field, ""), texts=texts)

    async def read_fused(self, query: PullQuery, *, depth: int, texts: bool) -> Sequence[Hit]:
        """A hybrid search over all legs."""
        connector, library = self._connector, self._library
        request = connector.fused_request(query, depth)
        searches = []
        for leg, search in zip(connector.legs, request["search"], strict=True):
            searches.append(
                library.AnnSearchRequest(
                    data=self._search_of(leg, query, depth)["data"],
                    anns_field=search["annsField"],
                    param={"params": search.get("params", {})},
                    limit=search["limit"],
                    expr=connector.filter,
                )
            )
        parameters = request["rerank"]["params"]
        if request["rerank"]["strategy"] == "rrf":
            ranker = library.RRFRanker(**parameters)
        else:
            ranker = library.WeightedRanker(
                *parameters["weights"], norm_score=parameters["norm_score"]
            )
        options = {"reqs": searches, "ranker": ranker}
        rows = await self._read_rows(self._client.hybrid_search, options, depth, texts=texts)
        return self._make_hits(rows, FUSED, texts=texts)

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Version, collection, count of entities, digest of the collection's description."""
        name = self._connector.collection
        stats = await self._call(lambda: self._client.get_collection_stats(name))
        fields = ("fields", "functions", "properties")
        stable = [str(self._description.get(key)) for key in fields]
        return {
            "version": f"Milvus Lite {importlib.metadata.version('milvus-lite')}",
            "collection": name,
            "documents": stats["row_count"],
            "configuration": digest_of([stable, self._metrics]),
        }

    def _search_of(self, leg: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The search of a leg; the dimensions of a sparse vector are numbers here."""
        search = self._connector.leg_search(leg, query, depth)
        if self._connector.legs[leg].search != "sparse_vector":
            return search
        (weights,) = search["data"]
        return {**search, "data": [{int(key): weight for key, weight in weights.items()}]}

    async def _read_rows(
        self, search: Callable[..., Any], options: Mapping[str, Any], depth: int, *, texts: bool
    ) -> list[Any]:
        connector = self._connector
        text_field = require_text_field(connector.text_field, texts=texts)
        names = [connector.id_field or self._key, *([text_field] if text_field else [])]
        answer = await self._call(
            lambda: search(connector.collection, **options, limit=depth, output_fields=names)
        )
        return list(answer[0])

    async def _call(self, question: Callable[[], T]) -> T:
        async with self._lock:
            return await call_library(TITLE, question, self._connector.timeout)

    def _make_hits(self, rows: Sequence[Any], metric: str, *, texts: bool) -> list[Hit]:
        id_field, text_field = self._connector.id_field or self._key, self._connector.text_field
        return [
            make_hit(
                row["entity"].get(id_field, row["id"] if id_field == self._key else None),
                score_of(row["distance"], metric),
                row["entity"].get(text_field) if texts else None,
            )
            for row in rows
        ]


def score_of(distance: float, metric: str) -> float:
    """The score, greater is better, of what Milvus Lite calls a distance.

    Milvus Lite 3.2 gives BM25, which is never below 0, with its sign turned.
    """
    if metric == "BM25":
        return abs(distance)
    return -distance if metric in DISTANCES else distance
