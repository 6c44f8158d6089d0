"""Milvus's connector: the RESTful API v2, one search a leg."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field, JsonValue

from fusion_bench.config.limits import Rank
from fusion_bench.connector import (
    EngineSession,
    Hit,
    LegName,
    LegSettings,
    PullQuery,
    QueryForm,
    connectors,
    make_hit,
)
from fusion_bench.engines._answers import (
    digest_of,
    require_text_field,
    rows_at,
    signed_score,
    sparse_vector_of,
    value_at,
    vector_of,
)
from fusion_bench.engines._configuration import weights_by_source, windows_by_source
from fusion_bench.engines._fused import FusedByDialect
from fusion_bench.engines._places import ServerOrFolder
from fusion_bench.engines.milvus.dialect import MOST_DOCUMENTS, Milvus, MilvusWeighted
from fusion_bench.errors import ConfigError, FailureKind, ProviderError
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


class MilvusLeg(LegSettings):
    """A search by one vector field.

    Attributes:
        field: The vector field; None = of the leg's name.
        search: What is sent: the query's vector, its sparse vector, or its text, for a field that
            a function of the collection fills (BM25, an embedding model).
        params: Further parameters of the search, such as ``ef``.
    """

    field: str | None = None
    search: QueryForm = "vector"
    params: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def query_form(self) -> QueryForm:
        """As ``search`` says."""
        return self.search


@connectors.register
class MilvusConnector(FusedByDialect, ServerOrFolder):
    """Milvus: each vector field is a leg.

    Attributes:
        collection: Name of the collection.
        database: Name of its database.
        id_field: The field that holds a document's id; None = the primary key.
        text_field: The field that holds its text.
    """

    source: ClassVar[str] = "https://milvus.io/api-reference/restful/v2.6.x/About.md"
    dialect: ClassVar[str] = Milvus.name
    has_window_by_leg: ClassVar[bool] = True
    limit_name: ClassVar[str] = "Milvus"

    method: str = "milvus"
    collection: str
    database: str = "default"
    legs: Annotated[Mapping[LegName, MilvusLeg], Field(min_length=1)]
    id_field: str | None = None
    text_field: str | None = None
    most_documents: Rank = MOST_DOCUMENTS

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[EngineSession]:
        """Read the collection's primary key and the metrics of its fields."""
        if self.path is not None:
            raise ConfigError("path: local databases are not supported yet: use url")
        async with self.open_http() as client:
            session = MilvusSession(self, client)
            await session.describe_collection()
            yield session

    def field_of(self, leg: str) -> str:
        """The vector field of a leg."""
        return self.legs[leg].field or leg

    def leg_search(self, leg: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The search of one leg: ``data``, ``annsField`` and ``limit``."""
        form = self.legs[leg].search
        data: Any = query.text
        if form == "vector":
            data = vector_of(query, leg)
        elif form == "sparse_vector":
            weights = sorted(sparse_vector_of(query, leg).items())
            data = {str(dimension): weight for dimension, weight in weights}
        return {"data": [data], "annsField": self.field_of(leg), "limit": depth}

    def leg_request(self, leg: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The body of ``/entities/search`` without collection and fields."""
        search, params = self.leg_search(leg, query, depth), self.legs[leg].params
        return {**search, "searchParams": {"params": params}} if params else search

    def fused_request(self, query: PullQuery, depth: int) -> dict[str, Any]:
        """The body of ``/entities/hybrid_search`` without collection and fields."""
        system = self.fused_system(depth)
        windows = windows_by_source(system)
        searches = []
        for leg, settings in self.legs.items():
            search = self.leg_search(leg, query, windows[leg])
            searches.append({**search, "params": settings.params} if settings.params else search)
        fusion = system.fusion
        ranker: dict[str, Any] = {
            "strategy": "rrf",
            "params": {"k": fusion.model_dump().get("k")},
        }
        if isinstance(fusion, MilvusWeighted):
            weights = [*weights_by_source(system).values()]
            ranker = {
                "strategy": "weighted",
                "params": {"weights": weights, "norm_score": fusion.norm_score},
            }
        return {"search": searches, "rerank": ranker, "limit": depth}


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
            self._metrics[str(index.get("fieldName"))] = str(index.get("metricType"))
        return data

    async def read_leg(
        self, leg: str, query: PullQuery, *, depth: int, texts: bool
    ) -> Sequence[Hit]:
        """One search in the leg's vector field."""
        body = self._connector.leg_request(leg, query, depth)
        metric = self._metrics.get(self._connector.field_of(leg), "")
        sign = -1 if metric.upper() in DISTANCES else 1
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
            "documents": value_at(stats, "rowCount"),
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
