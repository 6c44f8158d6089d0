"""The search API that Elasticsearch and OpenSearch have in common: sessions and answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar, Final, Literal, TypeAlias

from pydantic import Field, JsonValue

from fusion_bench.engines.connectors import EngineSession, Hit, HttpConnector, PullQuery, make_hit
from fusion_bench.engines.connectors._answers import (
    FusedByDialect,
    digest_of,
    field_at,
    get_permitted,
    number_at,
    path_of,
    refuse_error,
    require_text_field,
    rows_at,
    value_at,
)
from fusion_bench.engines.connectors._base import incomplete_error
from fusion_bench.io.json_shapes import UNFINISHED
from fusion_bench.util.http_client import BASIC, BEARER, JsonClient, KeyHeader, open_client

Authentication: TypeAlias = Literal["api_key", "basic", "bearer"]
HEADERS: Final[Mapping[Authentication, KeyHeader]] = {
    "api_key": KeyHeader("Authorization", "ApiKey "),
    "basic": BASIC,
    "bearer": BEARER,
}


class SearchApiConnector(FusedByDialect, HttpConnector):
    """An engine with ``POST /INDEX/_search``.

    Attributes:
        index: Name of the index, or of an alias.
        authentication: How the key is sent: ``api_key``; ``basic``, for a key that reads
            ``USER:PASSWORD``; ``bearer``.
        id_field: The field that holds a document's id; None = ``_id``.
        text_field: The field that holds its text.
    """

    limit_name: ClassVar[str] = "index.max_result_window"

    index: str = Field(min_length=1)
    authentication: Authentication = "api_key"
    id_field: str | None = None
    text_field: str | None = None

    def open_http(self) -> AbstractAsyncContextManager[JsonClient]:
        """A client that sends the key as ``authentication`` says."""
        header = HEADERS[self.authentication]
        return open_client(self.url, self, header)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[EngineSession]:
        """Open the connections; nothing is asked."""
        async with self.open_http() as client:
            yield SearchApiSession(self, client)

    @property
    def leg_path(self) -> str:
        """Where the search of a leg is sent."""
        return path_of(self.index, "_search")

    @abstractmethod
    def leg_request(self, leg: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The body of the search of one leg."""

    @abstractmethod
    def fused_request(self, query: PullQuery, depth: int) -> dict[str, Any]:
        """The body of the fused search, as the export writes it, with this query in it."""


class SearchApiSession:
    """A server that is connected.

    Args:
        connector: Its settings.
        client: The connection.
    """

    def __init__(self, connector: SearchApiConnector, client: JsonClient) -> None:
        self._connector, self._client = connector, client

    async def read_leg(
        self, leg: str, query: PullQuery, *, depth: int, texts: bool
    ) -> Sequence[Hit]:
        """One search with the leg's query alone."""
        body = self._connector.leg_request(leg, query, depth)
        return await self._search(self._connector.leg_path, body, depth, texts=texts)

    async def read_fused(self, query: PullQuery, *, depth: int, texts: bool) -> Sequence[Hit]:
        """One search that the engine fuses."""
        body = self._connector.fused_request(query, depth)
        path = path_of(self._connector.index, "_search")
        return await self._search(path, body, depth, texts=texts)

    async def _search(
        self, path: str, body: dict[str, Any], depth: int, *, texts: bool
    ) -> Sequence[Hit]:
        id_field = self._connector.id_field
        text_field = require_text_field(self._connector.text_field, texts=texts)
        fields = [name for name in (id_field, text_field) if name is not None]
        data = await self._client.post_json(
            path,
            {**body, "_source": fields or False},
            extra_bytes=self._connector.answer_bytes(depth, texts=texts),
        )
        refuse_error(self._client, data)
        check_complete(data)
        return [
            make_hit(
                row.get("_id") if id_field is None else field_at(row.get("_source"), id_field),
                row.get("_score"),
                field_at(row.get("_source"), text_field) if text_field else None,
            )
            for row in rows_at(data, "hits", "hits")
        ]

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Version, index, count of documents, digest of mapping and settings.

        A key for searches alone may not read version, mapping and settings.
        """
        index = self._connector.index
        root = await get_permitted(self._client, "/")
        count = await self._client.get_json(path_of(index, "_count"))
        check_complete(count)
        mapping = await get_permitted(self._client, path_of(index, "_mapping"))
        settings = await get_permitted(self._client, path_of(index, "_settings"))
        return {
            "version": value_at(root, "version", "number"),
            "index": index,
            "documents": number_at(count, "count"),
            "configuration": digest_of([mapping, settings]),
        }


def check_complete(data: Any) -> None:  # noqa: ANN401 - JSON
    """Refuse an answer to which a shard or a cluster gave nothing, or that came too late.

    Raises:
        ProviderError: Kind ``server``; kind ``malformed`` where a count is no number.
    """
    for key, flaw in UNFINISHED.items():
        if value_at(data, key):
            raise incomplete_error(flaw)
    failed = number_at(data, "_shards", "failed")
    if failed:
        total = number_at(data, "_shards", "total")
        raise incomplete_error(f"{failed} of {total} shards failed")
    for state in ("skipped", "partial", "failed", "running"):  # of a search across clusters
        count = number_at(data, "_clusters", state)
        if count:
            total = number_at(data, "_clusters", "total")
            raise incomplete_error(f"{count} of {total} clusters: {state}")
