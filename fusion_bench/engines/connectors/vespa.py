"""Vespa: its sources, its connected container."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import Field, JsonValue, model_validator

from fusion_bench.config.models import Rank
from fusion_bench.engines.connectors import (
    PullQuery,
    QueryForm,
    SourceName,
    SourceSettings,
    connectors,
)
from fusion_bench.engines.connectors._base import incomplete_error
from fusion_bench.engines.connectors._sessions import (
    DEPTH,
    DocumentFields,
    FusedByDialect,
    HttpSession,
    RequestHttpConnector,
    number_at,
    refuse_error,
    value_at,
    vector_of,
)
from fusion_bench.engines.dialects.search_servers import QUERY, Vespa
from fusion_bench.util.json_text import malformed_error

SEARCH_PATH: Final = "/search/"
#: A YQL query that counts the documents.
COUNT: Final = "select * from sources * where true limit 0"


class VespaSession(HttpSession):
    """A container that is connected."""

    rows = ("root", "children")
    score = ("relevance",)
    fields = ("fields",)
    _connector: VespaConnector

    def _search_path(self, _source: str) -> str:
        return SEARCH_PATH

    def _select_fields(self, body: dict[str, Any], _fields: list[str]) -> dict[str, Any]:
        return {"timeout": f"{self._connector.timeout:g}s", **body}

    def _check(self, data: Any) -> None:  # noqa: ANN401 - JSON
        if value_at(data, "root") is None:
            raise malformed_error("it has no root")
        refuse_error(self._client, data, "root", "errors")
        coverage = value_at(data, "root", "coverage")
        if coverage is not None and value_at(coverage, "full") is not True:
            percent = number_at(coverage, "coverage")
            raise incomplete_error(f"{percent} % of the documents were searched")

    def _find_rows(self, data: Any) -> Sequence[Mapping[str, Any]]:  # noqa: ANN401 - JSON
        # Without any hit there are no children.
        has_hits = value_at(data, "root", "fields", "totalCount") != 0
        return super()._find_rows(data) if has_hits else []

    def _read_id(self, row: Mapping[str, Any]) -> object:
        return read_id(row)

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Version, and the count of documents of all schemas."""
        version = await self._get_permitted("/state/v1/version")
        data = await self._post(SEARCH_PATH, self._select_fields({"yql": COUNT, "hits": 0}, []))
        return {
            "version": value_at(version, "version"),
            "documents": number_at(data, "root", "fields", "totalCount"),
        }


def read_id(row: Mapping[str, Any]) -> object:
    """The id of a document: the last part of ``id:NAMESPACE:TYPE:KEYS:ID``.

    Raises:
        ProviderError: Kind ``malformed``: there is none.
    """
    for value in (value_at(row, "fields", "documentid"), row.get("id")):
        parts = value.split(":", 4) if isinstance(value, str) else []
        if len(parts) == 5 and parts[0] == "id":
            return parts[4]
    raise malformed_error(
        "a hit without Vespa's document id: set id_field to a field of the summary"
    )


#: ``maxHits`` of a query profile that sets none.
MOST_HITS: Final = 400


class VespaSource(SourceSettings):
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
class VespaConnector(DocumentFields, FusedByDialect, RequestHttpConnector):
    """Vespa: each pair of a query and a rank profile is a leg.

    Attributes:
        id_field: The field that holds a document's id; None = the last part of Vespa's own.
        text_field: The field that holds its text.
        fused_yql: The query of the fused answer.
        fused_ranking: The deployed rank profile that fuses.
    """

    source = "https://docs.vespa.ai/en/reference/query-api-reference.html"
    dialect = Vespa.name
    session_type = VespaSession
    limit_name = "maxHits of the query profile"

    method: str = "vespa"
    legs: Annotated[Mapping[SourceName, VespaSource], Field(min_length=1)]
    fused_yql: str | None = None
    fused_ranking: str = "fused"
    most_documents: Rank = MOST_HITS

    @model_validator(mode="after")
    def _check_fused_yql(self) -> VespaConnector:
        if (self.fused is None) != (self.fused_yql is None):
            raise ValueError("fused and fused_yql belong together: set both, or none")
        return self

    def answer_bytes(self, depth: int, *, texts: bool) -> int:  # noqa: ARG002 - they always come
        """A summary holds the texts, too."""
        return super().answer_bytes(depth, texts=True)

    def source_request(self, source: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The query of one source."""
        settings = self.legs[source]
        return {
            **settings.parameters,
            **self._tensors((source,), query),
            "yql": _write_depth(settings.yql, depth),
            "query": query.text,
            "ranking": settings.ranking,
            "hits": depth,
        }

    def fused_request(self, query: PullQuery, depth: int) -> dict[str, Any]:
        """The exported query, with the deployed rank profile and the tensors of all sources."""
        exported: dict[str, Any] = json.loads(Vespa.write(self.fused_system(depth)).files[QUERY])
        parameters: dict[str, Any] = {}
        for source in self.legs.values():
            parameters |= source.parameters
        return {
            **parameters,
            **exported,
            **self._tensors(self.legs, query),
            "yql": _write_depth(self.fused_yql or "", self.window or depth),
            "query": query.text,
            "ranking": self.fused_ranking,
        }

    def _tensors(self, sources: Iterable[str], query: PullQuery) -> dict[str, Any]:
        return {
            f"input.query({tensor})": vector_of(query, source)
            for source in sources
            if (tensor := self.legs[source].query_tensor) is not None
        }


def _write_depth(yql: str, depth: int) -> str:
    """A YQL query with the number of documents in it."""
    return re.sub(rf"\b{DEPTH}\b", str(depth), yql)
