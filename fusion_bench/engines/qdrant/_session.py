"""A connected Qdrant server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from fusion_bench.connector import (
    Hit,
    PullQuery,
)
from fusion_bench.engines._connectors.answers import (
    digest_of,
    number_at,
    path_of,
    refuse_error,
    rows_at,
    value_at,
)
from fusion_bench.errors import ConfigError
from fusion_bench.util.http import JsonClient
from fusion_bench.util.http.json_fields import mapping_at

#: Distances of which a smaller one is better.
DISTANCES = frozenset({"Euclid", "Manhattan"})

if TYPE_CHECKING:
    from fusion_bench.engines.qdrant.connector import QdrantConnector, QdrantLeg


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
