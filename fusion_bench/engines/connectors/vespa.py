"""Vespa: its legs, its connected container."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field, JsonValue, model_validator

from fusion_bench.config.models import Rank
from fusion_bench.engines.connectors import (
    EngineSession,
    Hit,
    HttpConnector,
    LegName,
    LegSettings,
    PullQuery,
    QueryForm,
    connectors,
    make_hit,
)
from fusion_bench.engines.connectors._answers import (
    FusedByDialect,
    field_at,
    get_permitted,
    number_at,
    refuse_error,
    require_text_field,
    rows_at,
    value_at,
    vector_of,
)
from fusion_bench.engines.connectors._base import incomplete_error
from fusion_bench.engines.connectors._sessions import DEPTH, RequestSession
from fusion_bench.engines.dialects.vespa import QUERY, Vespa
from fusion_bench.util.json_text import malformed_error

#: A YQL query that counts the documents.
COUNT: Final = "select * from sources * where true limit 0"


class VespaSession(RequestSession):
    """A container that is connected."""

    _connector: VespaConnector

    async def _search(self, body: dict[str, Any], depth: int, *, texts: bool) -> Sequence[Hit]:
        text_field = require_text_field(self._connector.text_field, texts=texts)
        data = await self._ask(body, self._connector.answer_bytes(depth, texts=True))
        # Without any hit there are no children.
        has_hits = value_at(data, "root", "fields", "totalCount") != 0
        rows = rows_at(data, "root", "children") if has_hits else []
        return [
            make_hit(
                read_id(row, self._connector.id_field),
                row.get("relevance"),
                field_at(row.get("fields"), text_field) if text_field else None,
            )
            for row in rows
        ]

    async def _ask(self, body: dict[str, Any], extra_bytes: int) -> Any:  # noqa: ANN401 - JSON
        timeout = f"{self._connector.timeout:g}s"
        data = await self._client.post_json(
            "/search/", {"timeout": timeout, **body}, extra_bytes=extra_bytes
        )
        if value_at(data, "root") is None:
            raise malformed_error("it has no root")
        refuse_error(self._client, data, "root", "errors")
        coverage = value_at(data, "root", "coverage")
        if coverage is not None and value_at(coverage, "full") is not True:
            percent = number_at(coverage, "coverage")
            raise incomplete_error(f"{percent} % of the documents were searched")
        return data

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Version, and the count of documents of all schemas."""
        version = await get_permitted(self._client, "/state/v1/version")
        data = await self._ask({"yql": COUNT, "hits": 0}, 0)
        return {
            "version": value_at(version, "version"),
            "documents": number_at(data, "root", "fields", "totalCount"),
        }


def read_id(row: Mapping[str, Any], id_field: str | None) -> object:
    """The id of a document: a field, or the last part of ``id:NAMESPACE:TYPE:KEYS:ID``.

    Raises:
        ProviderError: Kind ``malformed``: it is neither.
    """
    if id_field is not None:
        return field_at(row.get("fields"), id_field)
    for value in (value_at(row, "fields", "documentid"), row.get("id")):
        parts = value.split(":", 4) if isinstance(value, str) else []
        if len(parts) == 5 and parts[0] == "id":
            return parts[4]
    raise malformed_error(
        "a hit without Vespa's document id: set id_field to a field of the summary"
    )


#: ``maxHits`` of a query profile that sets none.
MOST_HITS: Final = 400


class VespaLeg(LegSettings):
    """One query with one rank profile.

    Attributes:
        yql: The query; ``DEPTH`` in it stands for the number of documents, as in
            ``{targetHits: DEPTH}nearestNeighbor(embedding, q)``.
        ranking: The rank profile.
        query_tensor: Name of the query tensor that gets the vector; None = the leg needs none.
        parameters: Further parameters of the request.
    """

    yql: str = Field(min_length=1)
    ranking: str = Field(min_length=1)
    query_tensor: str | None = None
    parameters: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def query_form(self) -> QueryForm:
        """A vector where there is a query tensor."""
        return "text" if self.query_tensor is None else "vector"


@connectors.register
class VespaConnector(FusedByDialect, HttpConnector):
    """Vespa: each pair of a query and a rank profile is a leg.

    Attributes:
        id_field: The field that holds a document's id; None = the last part of Vespa's own.
        text_field: The field that holds its text.
        fused_yql: The query of the fused answer.
        fused_ranking: The deployed rank profile that fuses.
    """

    source: ClassVar[str] = "https://docs.vespa.ai/en/reference/query-api-reference.html"
    dialect: ClassVar[str] = Vespa.name
    limit_name: ClassVar[str] = "maxHits of the query profile"

    method: str = "vespa"
    legs: Annotated[Mapping[LegName, VespaLeg], Field(min_length=1)]
    id_field: str | None = None
    text_field: str | None = None
    fused_yql: str | None = None
    fused_ranking: str = "fused"
    most_documents: Rank = MOST_HITS

    @model_validator(mode="after")
    def _check_fused_yql(self) -> VespaConnector:
        if (self.fused is None) != (self.fused_yql is None):
            raise ValueError("fused and fused_yql belong together: set both, or none")
        return self

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[EngineSession]:
        """Open the connections; nothing is asked."""
        async with self.open_http() as client:
            yield VespaSession(self, client)

    def leg_request(self, leg: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The query of one leg."""
        settings = self.legs[leg]
        return {
            **settings.parameters,
            **self._tensors((leg,), query),
            "yql": write_depth(settings.yql, depth),
            "query": query.text,
            "ranking": settings.ranking,
            "hits": depth,
        }

    def fused_request(self, query: PullQuery, depth: int) -> dict[str, Any]:
        """The exported query, with the deployed rank profile and the tensors of all legs."""
        exported: dict[str, Any] = json.loads(Vespa.write(self.fused_system(depth)).files[QUERY])
        parameters: dict[str, Any] = {}
        for leg in self.legs.values():
            parameters |= leg.parameters
        return {
            **parameters,
            **exported,
            **self._tensors(self.legs, query),
            "yql": write_depth(self.fused_yql or "", self.window or depth),
            "query": query.text,
            "ranking": self.fused_ranking,
        }

    def _tensors(
        self, legs: Sequence[str] | Mapping[str, VespaLeg], query: PullQuery
    ) -> dict[str, Any]:
        return {
            f"input.query({tensor})": vector_of(query, leg)
            for leg in legs
            if (tensor := self.legs[leg].query_tensor) is not None
        }


def write_depth(yql: str, depth: int) -> str:
    """A YQL query with the number of documents in it."""
    return re.sub(rf"\b{DEPTH}\b", str(depth), yql)
