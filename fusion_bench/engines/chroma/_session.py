"""A connected Chroma server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pydantic import JsonValue

from fusion_bench.connector import (
    Hit,
    PullQuery,
    make_hit,
)
from fusion_bench.engines._connectors.answers import (
    digest_of,
    number_at,
    path_of,
    refuse_error,
    signed_score,
    value_at,
)
from fusion_bench.util.http import JsonClient
from fusion_bench.util.http.json_fields import malformed_error, mapping_at

PREFIX: Final = "/api/v2"
DOCUMENT, SCORE = "#document", "#score"

if TYPE_CHECKING:
    from fusion_bench.engines.chroma.connector import ChromaConnector


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
        return read_columns(data, "distances", texts=texts)

    async def read_fused(self, query: PullQuery, *, depth: int, texts: bool) -> Sequence[Hit]:
        """The search API's fused list; a score is the negative of what Chroma sorts by."""
        return await self._search(self._connector.fused_search(query, depth), depth, texts=texts)

    async def _search(self, search: dict[str, Any], depth: int, *, texts: bool) -> Sequence[Hit]:
        keys = [SCORE, *([DOCUMENT] if texts else [])]
        body = {"searches": [{**search, "select": {"keys": keys}}]}
        data = await self._post("search", body, depth, texts=texts)
        return read_columns(data, "scores", texts=texts)

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Version, collection, count of documents, digest of the collection's configuration."""
        description = await self.find_collection()
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

    async def _post(self, action: str, body: dict[str, Any], depth: int, *, texts: bool) -> Any:  # noqa: ANN401 - JSON
        data = await self._client.post_json(
            self._collections_path(self._collection_id, action),
            body,
            extra_bytes=self._connector.answer_bytes(depth, texts=texts),
        )
        refuse_error(self._client, data)
        return data

    def _collections_path(self, *parts: str) -> str:
        tenant, database = self._connector.tenant, self._connector.database
        place = path_of("tenants", tenant, "databases", database, "collections", *parts)
        return f"{PREFIX}{place}"


def read_columns(data: Any, scores: str, *, texts: bool) -> list[Hit]:  # noqa: ANN401 - JSON
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
