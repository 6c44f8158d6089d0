"""A connected Milvus server."""

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
    require_text_field,
    rows_at,
    signed_score,
    value_at,
)
from fusion_bench.errors import FailureKind, ProviderError
from fusion_bench.util.http import JsonClient
from fusion_bench.util.http.json_fields import malformed_error

PREFIX: Final = "/v2/vectordb"
#: Metrics of which a smaller value is better.
DISTANCES: Final = frozenset({"L2", "HAMMING", "JACCARD"})
#: Codes of errors that pass: not ready, unavailable, too many requests at once, rate limit.
PASSING_CODES: Final[Mapping[int, FailureKind]] = {
    1: "server",
    2: "server",
    4: "rate_limit",
    8: "rate_limit",
}

if TYPE_CHECKING:
    from fusion_bench.engines.milvus.connector import MilvusConnector


class MilvusSession:
    """A server that is connected.

    Args:
        connector: Its settings.
        client: The connection.
    """

    def __init__(self, connector: MilvusConnector, client: JsonClient) -> None:
        self._connector, self._client = connector, client
        self._key, self._metrics = "id", dict[str, str]()

    async def describe_collection(self) -> Any:  # noqa: ANN401 - JSON
        """Read the description of the collection: its primary key, the metrics of its indexes."""
        data = await self._post("/collections/describe", {})
        for field in rows_at(data, "fields"):
            if field.get("primaryKey") is True:
                self._key = str(field.get("name"))
        for index in rows_at(data, "indexes"):
            self._metrics[str(index.get("fieldName"))] = str(index.get("metricType")).upper()
        self._connector.check_metrics(self._metrics)
        return data

    async def read_leg(
        self, leg: str, query: PullQuery, *, depth: int, texts: bool
    ) -> Sequence[Hit]:
        """One search in the leg's vector field."""
        body = self._connector.leg_request(leg, query, depth)
        metric = self._metrics.get(self._connector.field_of(leg), "")
        sign = -1 if metric in DISTANCES else 1
        return await self._search("/entities/search", body, depth, sign=sign, texts=texts)

    async def read_fused(self, query: PullQuery, *, depth: int, texts: bool) -> Sequence[Hit]:
        """A hybrid search over all legs."""
        body = self._connector.fused_request(query, depth)
        return await self._search("/entities/hybrid_search", body, depth, sign=1, texts=texts)

    async def _search(
        self, path: str, body: dict[str, Any], depth: int, *, sign: int, texts: bool
    ) -> Sequence[Hit]:
        id_field = self._connector.id_field or self._key
        text_field = require_text_field(self._connector.text_field, texts=texts)
        fields = [id_field, *([text_field] if text_field else [])]
        extra = self._connector.answer_bytes(depth, texts=texts)
        data = await self._post(path, {**body, "outputFields": fields}, extra_bytes=extra)
        return [
            make_hit(
                row.get(id_field),
                signed_score(row.get("distance"), sign),
                value_at(row, text_field) if text_field else None,
            )
            for row in rows_at({"data": data}, "data")
        ]

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Collection, count of entities, digest of the collection's description.

        The RESTful API does not state the version of the server.
        """
        stats = await self._post("/collections/get_stats", {})
        data = await self.describe_collection()
        stable = {key: data.get(key) for key in ("fields", "indexes", "functions", "properties")}
        return {
            "collection": self._connector.collection,
            "database": self._connector.database,
            "documents": number_at(stats, "rowCount"),
            "configuration": digest_of(stable),
        }

    async def _post(self, path: str, body: dict[str, Any], *, extra_bytes: int = 0) -> Any:  # noqa: ANN401 - JSON
        place = {
            "dbName": self._connector.database,
            "collectionName": self._connector.collection,
        }
        answer = await self._client.post_json(
            f"{PREFIX}{path}", {**place, **body}, extra_bytes=extra_bytes
        )
        code = value_at(answer, "code")
        if code in {0, 200}:
            return answer.get("data")
        if not isinstance(code, int):
            raise malformed_error("it has no code")
        message = self._client.quote_text(str(value_at(answer, "message")))
        raise ProviderError(
            f"{self._client.base_url}{PREFIX}{path}: code {code}: {message}",
            kind=PASSING_CODES.get(code, "refused"),
        )
