"""Weaviate: its sources, its GraphQL, its connected server."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator, Field, JsonValue, model_validator

from fusion_bench.config.models import Rank
from fusion_bench.engines.connectors import (
    PullQuery,
    QueryForm,
    SourceName,
    SourceSettings,
    connectors,
)
from fusion_bench.engines.connectors._sessions import (
    FusedByDialect,
    HttpSession,
    RequestHttpConnector,
    digest_of,
    number_at,
    path_of,
    rows_at,
    signed_score,
    value_at,
    vector_of,
)
from fusion_bench.engines.dialects.pairs import WINDOW, Weaviate
from fusion_bench.errors import ConfigError

GRAPHQL_PATH: Final = "/v1/graphql"
_NAME: Final = re.compile(r"[_A-Za-z][_0-9A-Za-z]*")


def _check_property(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no property: letters, digits and _ are allowed")
    return name


def _check_boosted(text: str) -> str:
    name, _, boost = text.partition("^")
    _check_property(name)
    if boost and not boost.isdecimal():
        raise ValueError(f"{text!r}: a boost is a whole number, such as {name}^2")
    return text


def _check_collection(name: str) -> str:
    if not _NAME.fullmatch(name) or not name[0].isupper():
        raise ValueError(f"{name!r} is no collection: its name begins with a capital letter")
    return name


Property: TypeAlias = Annotated[str, AfterValidator(_check_property)]
Boosted: TypeAlias = Annotated[str, AfterValidator(_check_boosted)]
CollectionName: TypeAlias = Annotated[str, AfterValidator(_check_collection)]


def _write_literal(value: object) -> str:
    """A value of GraphQL: texts have the escapes of JSON, and all else is written alike."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


class WeaviateSession(HttpSession):
    """A server that is connected."""

    own_id = ("_additional", "id")
    _connector: WeaviateConnector

    def _search_path(self, _source: str) -> str:
        return GRAPHQL_PATH

    def _select_fields(self, body: dict[str, Any], fields: list[str]) -> dict[str, Any]:
        return {"query": self._connector.write_query(body, fields)}

    def _find_rows(self, data: Any) -> Sequence[Mapping[str, Any]]:  # noqa: ANN401 - JSON
        return rows_at(data, "data", "Get", self._connector.collection)

    def _read_score(self, row: Mapping[str, Any], source: str) -> object:
        name = self._connector.score_of(source)
        score = value_at(row, "_additional", name)
        with suppress(ValueError):  # what is no number is refused later
            score = float(score) if isinstance(score, str) else score  # BM25F comes as a text
        return signed_score(score, -1 if name == "distance" else 1)

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Version, collection, count of objects, digest of the collection's configuration."""
        name, tenant = self._connector.collection, self._connector.tenant
        meta = await self._get_permitted("/v1/meta")
        schema = await self._get_permitted(f"/v1{path_of('schema', name)}")
        place = "" if tenant is None else f"(tenant: {_write_literal(tenant)})"
        query = f"{{ Aggregate {{ {name}{place} {{ meta {{ count }} }} }} }}"
        data = await self._post(GRAPHQL_PATH, {"query": query})
        (row,) = rows_at(data, "data", "Aggregate", name)[:1] or [{}]
        return {
            "version": value_at(meta, "version"),
            "collection": name,
            "documents": number_at(row, "meta", "count"),
            "configuration": digest_of(schema),
        }


#: Documents of each search that a server fuses where nothing else is set.
SERVER_WINDOW: Final = 100


class WeaviateSource(SourceSettings):
    """The keyword search, or a vector search.

    Attributes:
        properties: Properties of a keyword search, ``title^2`` with a boost.
        vector: Name of the vector of a vector search; ``default`` is the unnamed one.
        vectorized: Whether the server makes the vector from the query's text.
    """

    properties: tuple[Boosted, ...] = ()
    vector: Annotated[str, Field(min_length=1)] | None = None
    vectorized: bool = False

    @model_validator(mode="after")
    def _check_search(self) -> WeaviateSource:
        if bool(self.properties) == (self.vector is not None):
            raise ValueError("either properties or vector is needed")
        return self

    @property
    def query_form(self) -> QueryForm:
        """A vector for a vector search whose vector the server does not make."""
        return "text" if self.properties or self.vectorized else "vector"


@connectors.register
class WeaviateConnector(FusedByDialect, RequestHttpConnector):
    """Weaviate: the keyword search and a vector search are the legs of its hybrid search.

    Attributes:
        collection: Name of the collection.
        tenant: Tenant of a collection that has tenants.
        id_field: The property that holds a document's id; None = the object's UUID.
        text_field: The property that holds its text.
        window: How many documents of each search the server fuses: its
            ``QUERY_HYBRID_MAXIMUM_RESULTS``, or the depth where that is greater.
    """

    source = "https://docs.weaviate.io/weaviate/api/graphql/search-operators"
    dialect = Weaviate.name
    session_type = WeaviateSession
    limit_name = "QUERY_MAXIMUM_RESULTS"

    method: str = "weaviate"
    collection: CollectionName
    tenant: str | None = None
    legs: Annotated[Mapping[SourceName, WeaviateSource], Field(min_length=1)]
    id_field: Property | None = None
    text_field: Property | None = None
    window: Rank | None = SERVER_WINDOW

    def fused_options(self) -> dict[str, Any]:
        """The fusion, with the name of the vector search."""
        vectors = [name for name, source in self.legs.items() if source.vector is not None]
        if len(self.legs) != 2 or len(vectors) != 1:
            raise ConfigError("alpha: it weighs a keyword search and a vector search, no more legs")
        return {"vector": vectors[0], **super().fused_options()}

    def window_of(self, source: str, depth: int) -> int:  # noqa: ARG002 - the same of each source
        """The server's window, or the depth where that is greater."""
        return max(self.window or SERVER_WINDOW, depth)

    def check_depth(self, source: str, depth: int) -> None:
        """Refuse a depth that does not fit; the message names the server's window."""
        for name, settings in self.legs.items():
            window = self.window_of(name, depth)
            if not source and self.fused is not None and (settings.depth or depth) != window:
                raise ConfigError(
                    f"legs.{name}: the server fuses {window:,} documents of each search, and "
                    f"{settings.depth or depth:,} of this one are pulled: pull {window:,}, or set "
                    f"{WINDOW} on the server and window to a smaller number"
                )
        super().check_depth(source, depth)

    def describe_score(self, source: str) -> str:
        """BM25F, or the negative of a distance."""
        is_vector = self.legs[source].vector is not None
        return "the negative of Weaviate's distance" if is_vector else "Weaviate's BM25F score"

    def source_request(self, source: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The search of one source as an argument of GraphQL."""
        settings, text = self.legs[source], _write_literal(query.text)
        target = self._write_target(source)
        if settings.vector is None:
            properties = _write_literal(list(settings.properties))
            arguments = f"bm25: {{query: {text}, properties: {properties}}}"
        elif settings.vectorized:
            arguments = f"nearText: {{concepts: [{text}]{target}}}"
        else:
            vector = _write_literal(vector_of(query, source))
            arguments = f"nearVector: {{vector: {vector}{target}}}"
        return {"arguments": arguments, "depth": depth, "score": self.score_of(source)}

    def score_of(self, source: str) -> str:
        """Name of a source's score in GraphQL: ``distance`` for a vector search."""
        is_vector = source and self.legs[source].vector is not None
        return "distance" if is_vector else "score"

    def fused_request(self, query: PullQuery, depth: int) -> dict[str, Any]:
        """The hybrid search as an argument of GraphQL."""
        fusion = self.fused_system(depth).fusion.model_dump()
        (vector,) = (name for name, source in self.legs.items() if source.vector is not None)
        (keyword,) = (name for name in self.legs if name != vector)
        parts = [
            f"query: {_write_literal(query.text)}",
            f"alpha: {_write_literal(fusion['alpha'])}",
            f"fusionType: {fusion['method']}",
            f"properties: {_write_literal(list(self.legs[keyword].properties))}",
        ]
        if not self.legs[vector].vectorized:
            parts.append(f"vector: {_write_literal(vector_of(query, vector))}")
        arguments = f"hybrid: {{{', '.join(parts)}{self._write_target(vector)}}}"
        return {"arguments": arguments, "depth": depth, "score": self.score_of("")}

    def write_query(self, request: Mapping[str, Any], fields: Sequence[str]) -> str:
        """A query of GraphQL.

        Args:
            request: The search, how many objects are wanted, and which score.
            fields: The properties that are read.
        """
        tenant = "" if self.tenant is None else f", tenant: {_write_literal(self.tenant)}"
        values = f"_additional {{ id {request['score']} }} {' '.join(fields)}"
        search = f"limit: {request['depth']}{tenant}, {request['arguments']}"
        return f"{{ Get {{ {self.collection}({search}) {{ {values} }} }} }}"

    def _write_target(self, source: str) -> str:
        vector = self.legs[source].vector
        return "" if vector in {None, "default"} else f", targetVectors: {_write_literal([vector])}"
