"""A connected Weaviate server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from fusion_bench.connector import (
    Hit,
    PullQuery,
    make_hit,
)
from fusion_bench.engines._connectors.answers import (
    digest_of,
    get_permitted,
    number_at,
    path_of,
    refuse_error,
    rows_at,
    signed_score,
    value_at,
)
from fusion_bench.engines.weaviate._graphql import parse_number, write_literal
from fusion_bench.util.http import JsonClient

if TYPE_CHECKING:
    from fusion_bench.engines.weaviate.connector import WeaviateConnector


class WeaviateSession:
    """A server that is connected.

    Args:
        connector: Its settings.
        client: The connection.
    """

    def __init__(self, connector: WeaviateConnector, client: JsonClient) -> None:
        self._connector, self._client = connector, client

    async def read_leg(
        self, leg: str, query: PullQuery, *, depth: int, texts: bool
    ) -> Sequence[Hit]:
        """One search; the score of a vector search is the negative of a distance."""
        arguments = self._connector.leg_arguments(leg, query)
        is_vector = self._connector.legs[leg].vector is not None
        return await self._search(
            arguments, "distance" if is_vector else "score", depth, texts=texts
        )

    async def read_fused(self, query: PullQuery, *, depth: int, texts: bool) -> Sequence[Hit]:
        """One hybrid search."""
        arguments = self._connector.fused_arguments(query, depth)
        return await self._search(arguments, "score", depth, texts=texts)

    async def _search(
        self, arguments: str, score: str, depth: int, *, texts: bool
    ) -> Sequence[Hit]:
        connector = self._connector
        data = await self._ask(
            connector.write_query(arguments, score, depth, texts=texts),
            connector.answer_bytes(depth, texts=texts),
        )
        hits = []
        for row in rows_at(data, "data", "Get", connector.collection):
            document = value_at(row, "_additional", "id")
            number = parse_number(value_at(row, "_additional", score))
            hits.append(
                make_hit(
                    document if connector.id_field is None else row.get(connector.id_field),
                    signed_score(number, -1 if score == "distance" else 1),
                    row.get(connector.text_field) if texts and connector.text_field else None,
                )
            )
        return hits

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Version, collection, count of objects, digest of the collection's configuration."""
        name, tenant = self._connector.collection, self._connector.tenant
        meta = await get_permitted(self._client, "/v1/meta")
        schema = await get_permitted(self._client, f"/v1{path_of('schema', name)}")
        place = "" if tenant is None else f"(tenant: {write_literal(tenant)})"
        data = await self._ask(f"{{ Aggregate {{ {name}{place} {{ meta {{ count }} }} }} }}", 0)
        (row,) = rows_at(data, "data", "Aggregate", name)[:1] or [{}]
        return {
            "version": value_at(meta, "version"),
            "collection": name,
            "documents": number_at(row, "meta", "count"),
            "configuration": digest_of(schema),
        }

    async def _ask(self, query: str, extra_bytes: int) -> Any:  # noqa: ANN401 - JSON
        data = await self._client.post_json(
            "/v1/graphql", {"query": query}, extra_bytes=extra_bytes
        )
        refuse_error(self._client, data)
        return data
