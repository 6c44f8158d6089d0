"""Vespa's connector: one query with one rank profile a leg."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field, JsonValue, model_validator

from fusion_bench.config.limits import Rank
from fusion_bench.connector import (
    EngineSession,
    HttpConnector,
    LegName,
    LegSettings,
    PullQuery,
    QueryForm,
    connectors,
)
from fusion_bench.engines._connectors.answers import (
    vector_of,
)
from fusion_bench.engines._connectors.fused_answers import FusedByDialect
from fusion_bench.engines._connectors.query_templates import DEPTH
from fusion_bench.engines.vespa._session import VespaSession
from fusion_bench.engines.vespa.dialect import QUERY, Vespa

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
