"""Qdrant's connector: the query API, one request a leg."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any, ClassVar

from pydantic import Field, JsonValue

from fusion_bench.config.limits import MOST_RANK, Rank
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
from fusion_bench.engines._connectors.answers import (
    path_of,
    require_text_field,
    signed_score,
    sparse_vector_of,
    value_at,
    vector_of,
)
from fusion_bench.engines._connectors.fused_answers import FusedByDialect
from fusion_bench.engines._connectors.server_or_folder import ServerOrFolder
from fusion_bench.engines.qdrant._local import open_folder
from fusion_bench.engines.qdrant._session import QdrantSession
from fusion_bench.engines.qdrant.dialect import FILE, Qdrant
from fusion_bench.util.http import KeyHeader
from fusion_bench.util.http.json_fields import mapping_at


class QdrantLeg(LegSettings):
    """A search by one vector of the points.

    Attributes:
        using: Name of the vector; None = the unnamed one.
        sparse: Whether it is a sparse vector.
        model: The server makes the vector from the query's text with this model, such as
            ``qdrant/bm25``.
        exact: Whether every point is compared, without the index.
    """

    using: str | None = None
    sparse: bool = False
    model: str | None = None
    exact: bool = False

    @property
    def query_form(self) -> QueryForm:
        """A dense or a sparse vector, or the text that the server's model reads."""
        if self.model is not None:
            return "text"
        return "sparse_vector" if self.sparse else "vector"


@connectors.register
class QdrantConnector(FusedByDialect, ServerOrFolder):
    """Qdrant: each vector of the points is a leg.

    Attributes:
        collection: Name of the collection.
        id_field: Key of the payload that holds a document's id; None = the id of the point.
        text_field: Key of the payload that holds its text.
        filter: A filter as JSON: only the points that it admits are searched.
    """

    source: ClassVar[str] = "https://api.qdrant.tech/api-reference/search/query-points"
    dialect: ClassVar[str] = Qdrant.name
    key_header: ClassVar[KeyHeader] = KeyHeader("api-key")
    has_window_by_leg: ClassVar[bool] = True
    limit_name: ClassVar[str] = "most_documents"
    limit_advice: ClassVar[str] = "ask for fewer, or raise it"

    method: str = "qdrant"
    collection: str
    legs: Annotated[Mapping[LegName, QdrantLeg], Field(min_length=1)]
    id_field: str | None = None
    text_field: str | None = None
    filter: dict[str, JsonValue] | None = None
    most_documents: Rank = MOST_RANK

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[EngineSession]:
        """Read how the collection measures distance, at the server or in the folder."""
        if self.path is not None:
            async with open_folder(self, self.path) as session:
                yield session
            return
        async with self.open_http() as client:
            info = await client.get_json(path_of("collections", self.collection))
            yield QdrantSession(self, client, mapping_at(info, "result"))

    def describe_score(self, leg: str) -> str:  # noqa: ARG002 - the same of every leg
        """A similarity, or the negative of a distance."""
        return "Qdrant's score; the negative of the distance for Euclid and Manhattan"

    def leg_request(self, leg: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The body of the search of one leg, without payload."""
        return {**self._search(leg, query), "limit": depth}

    def fused_request(self, query: PullQuery, depth: int) -> dict[str, Any]:
        """The body of the fused search, as the export writes it, with this query in it."""
        request = json.loads(Qdrant.write(self.fused_system(depth)).files[FILE])
        request["prefetch"] = [
            {**self._search(entry["using"], query), "limit": entry["limit"]}
            for entry in request["prefetch"]
        ]
        return dict(request)

    def payload_keys(self, *, texts: bool) -> list[str]:
        """The keys of the payload that are read."""
        keys = (self.id_field, require_text_field(self.text_field, texts=texts))
        return [key for key in keys if key is not None]

    def read_point(self, point: Mapping[str, Any], *, sign: int, texts: bool) -> Hit:
        """The hit of a point of an answer.

        Raises:
            ProviderError: Kind ``malformed``.
        """
        document = point.get("id")
        if self.id_field is not None:
            document = value_at(point, "payload", self.id_field)
        text = value_at(point, "payload", self.text_field) if texts and self.text_field else None
        return make_hit(document, signed_score(point.get("score"), sign), text)

    def _search(self, leg: str, query: PullQuery) -> dict[str, Any]:
        settings = self.legs[leg]
        search: dict[str, Any] = {}
        if settings.model is not None:
            search["query"] = {"text": query.text, "model": settings.model}
        elif settings.sparse:
            weights = sorted(sparse_vector_of(query, leg).items())
            search["query"] = {
                "indices": [dimension for dimension, _ in weights],
                "values": [weight for _, weight in weights],
            }
        else:
            search["query"] = vector_of(query, leg)
        if settings.using is not None:
            search["using"] = settings.using
        if self.filter is not None:
            search["filter"] = self.filter
        if settings.exact:
            search["params"] = {"exact": True}
        return search
