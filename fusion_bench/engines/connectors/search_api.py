"""The search API of Elasticsearch and OpenSearch: each part of a hybrid query alone."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import Field, JsonValue, model_validator

from fusion_bench.engines.connectors import (
    Hit,
    PullQuery,
    QueryForm,
    SourceName,
    SourceSettings,
    connectors,
)
from fusion_bench.engines.connectors._base import incomplete_error
from fusion_bench.engines.connectors._sessions import (
    PAGE,
    DocumentFields,
    FusedByDialect,
    HttpSession,
    RequestHttpConnector,
    digest_of,
    fill_template,
    number_at,
    path_of,
    template_form,
    value_at,
    vector_of,
)
from fusion_bench.engines.dialects.elasticsearch import FILE, MOST_CANDIDATES, Elasticsearch
from fusion_bench.engines.dialects.opensearch import PIPELINE, REQUEST, OpenSearch
from fusion_bench.io.layouts.lists import UNFINISHED
from fusion_bench.util.http_client import BASIC, BEARER, JsonClient, KeyHeader, open_client

Authentication: TypeAlias = Literal["api_key", "basic", "bearer"]
HEADERS: Final[Mapping[Authentication, KeyHeader]] = {
    "api_key": KeyHeader("Authorization", "ApiKey "),
    "basic": BASIC,
    "bearer": BEARER,
}


#: How long a scroll waits for the next page.
SCROLL: Final = "2m"


class SearchApiSession(HttpSession):
    """A server that is connected."""

    rows = ("hits", "hits")
    own_id = ("_id",)
    score = ("_score",)
    fields = ("_source",)
    _connector: SearchApiConnector

    def _search_path(self, source: str) -> str:
        return self._connector.source_path if source else path_of(self._connector.index, "_search")

    def _select_fields(self, body: dict[str, Any], fields: list[str]) -> dict[str, Any]:
        return {**body, "_source": fields or False}

    def _check(self, data: Any) -> None:  # noqa: ANN401 - JSON
        super()._check(data)
        _check_complete(data)

    async def read_documents(self, place: JsonValue) -> tuple[Sequence[Hit], JsonValue]:
        """A page of a scroll over the index, which ends by itself after a while."""
        if place is None:
            search = {"size": PAGE, "sort": ["_doc"], "query": {"match_all": {}}}
            body = self._select_fields(search, self._connector.read_fields(texts=True))
            path = f"{path_of(self._connector.index, '_search')}?scroll={SCROLL}"
        else:
            path, body = "/_search/scroll", {"scroll": SCROLL, "scroll_id": place}
        data = await self._post(path, body, self._connector.answer_bytes(PAGE, texts=True))
        rows = self._find_rows(data)
        return self._list_documents(rows), value_at(data, "_scroll_id") if rows else None

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Version, index, count of documents, digest of mapping and settings.

        A key for searches alone may not read version, mapping and settings.
        """
        index = self._connector.index
        root = await self._get_permitted("/")
        count = await self._client.get_json(path_of(index, "_count"))
        _check_complete(count)
        mapping = await self._get_permitted(path_of(index, "_mapping"))
        settings = await self._get_permitted(path_of(index, "_settings"))
        return {
            "version": value_at(root, "version", "number"),
            "index": index,
            "documents": number_at(count, "count"),
            "configuration": digest_of([mapping, settings]),
        }


def _check_complete(data: Any) -> None:  # noqa: ANN401 - JSON
    """Refuse an answer to which a shard or a cluster gave nothing, or that came too late.

    Raises:
        ProviderError: Kind ``server``; kind ``malformed`` where a count is no number.
    """
    for key, flaw in UNFINISHED.items():
        if value_at(data, key):
            raise incomplete_error(flaw)
    failed = number_at(data, "_shards", "failed")
    if failed:
        total = number_at(data, "_shards", "total")
        raise incomplete_error(f"{failed} of {total} shards failed")
    for state in ("skipped", "partial", "failed", "running"):  # of a search across clusters
        count = number_at(data, "_clusters", state)
        if count:
            total = number_at(data, "_clusters", "total")
            raise incomplete_error(f"{count} of {total} clusters: {state}")


class SearchApiSource(SourceSettings):
    """One part of a hybrid query.

    Attributes:
        template_field: The field with another search as JSON, with ``QUERY``, ``QUERY_VECTOR`` and
            ``DEPTH``.
        fields: Text fields of a ``match`` or ``multi_match`` query.
        vector_field: Vector field of a search for near vectors.
    """

    template_field: ClassVar[str]

    fields: tuple[str, ...] = ()
    vector_field: str | None = None

    @property
    def template(self) -> dict[str, JsonValue] | None:
        """The other search."""
        template: dict[str, JsonValue] | None = getattr(self, self.template_field)
        return template

    @model_validator(mode="after")
    def _check_search(self) -> SearchApiSource:
        given = (bool(self.fields), self.vector_field is not None, self.template is not None)
        if sum(given) != 1:
            raise ValueError(f"one of fields, vector_field and {self.template_field} is needed")
        return self

    @property
    def query_form(self) -> QueryForm:
        """A vector for near vectors, and for a template that has one."""
        if self.template is not None:
            return template_form(self.template)
        return "vector" if self.vector_field is not None else "text"


class SearchApiConnector(DocumentFields, FusedByDialect, RequestHttpConnector):
    """An engine with ``POST /INDEX/_search``.

    Attributes:
        index: Name of the index, or of an alias.
        authentication: How the key is sent: ``api_key``; ``basic``, for a key that reads
            ``USER:PASSWORD``; ``bearer``.
        id_field: The field that holds a document's id; None = ``_id``.
        text_field: The field that holds its text.
    """

    session_type = SearchApiSession
    lists_documents = True
    limit_name = "index.max_result_window"

    index: str = Field(min_length=1)
    legs: Annotated[Mapping[SourceName, SearchApiSource], Field(min_length=1)]
    authentication: Authentication = "api_key"

    def open_http(self) -> AbstractAsyncContextManager[JsonClient]:
        """A client that sends the key as ``authentication`` says."""
        header = HEADERS[self.authentication]
        return open_client(self.url, self, header)

    @property
    def source_path(self) -> str:
        """Path to which the search of a source is sent."""
        return path_of(self.index, "_search")

    def _write_search(self, source: str, query: PullQuery, depth: int) -> dict[str, Any]:
        settings = self.legs[source]
        if settings.template is not None:
            return dict(fill_template(settings.template, query, source, depth))
        if settings.vector_field is not None:
            return self._write_vector(source, query, depth)
        fields = settings.fields
        if len(fields) == 1 and not {"^", "*"} & set(fields[0]):
            return self._write_text({"match": {fields[0]: {"query": query.text}}})
        return self._write_text({"multi_match": {"query": query.text, "fields": list(fields)}})

    def _write_text(self, match: dict[str, Any]) -> dict[str, Any]:
        return match

    @abstractmethod
    def _write_vector(self, source: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """A search for near vectors."""


#: Candidates of a shard for each document that is asked for, and the fewest.
CANDIDATES_PER_DOCUMENT: Final = 2
FEWEST_CANDIDATES: Final = 100


class ElasticsearchSource(SearchApiSource):
    """One retriever.

    Attributes:
        fields: Text fields of a ``match`` or ``multi_match`` query.
        vector_field: Vector field of a ``knn`` retriever.
        num_candidates: Of this retriever, for each shard; None = twice the depth.
        retriever: Another retriever as JSON, with ``QUERY``, ``QUERY_VECTOR`` and ``DEPTH``.
    """

    template_field = "retriever"

    num_candidates: Annotated[int, Field(ge=1, le=MOST_CANDIDATES)] | None = None
    retriever: dict[str, JsonValue] | None = None

    @model_validator(mode="after")
    def _check_options(self) -> ElasticsearchSource:
        if self.retriever is not None and len(self.retriever) != 1:
            raise ValueError("retriever: one kind is needed, such as standard: {query: …}")
        if self.num_candidates is not None and self.vector_field is None:
            raise ValueError("num_candidates belongs to vector_field")
        return self


@connectors.register
class ElasticsearchConnector(SearchApiConnector):
    """Elasticsearch: each retriever is a leg, searched alone."""

    source = "https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-search"
    dialect = Elasticsearch.name

    method: str = "elasticsearch"
    legs: Annotated[Mapping[SourceName, ElasticsearchSource], Field(min_length=1)]

    def source_request(self, source: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The retriever of a source, and nothing else."""
        retriever = self._write_search(source, query, depth)
        return {"retriever": retriever, "size": depth, "track_total_hits": False}

    def fused_request(self, query: PullQuery, depth: int) -> dict[str, Any]:
        """The exported request with the retrievers of the sources."""
        system = self.fused_system(depth)
        request: dict[str, Any] = json.loads(Elasticsearch.write(system).files[FILE])
        ((_, body),) = request["retriever"].items()
        for source, entry in zip(self.legs, body["retrievers"], strict=True):
            entry["retriever"] = self._write_search(source, query, self.window_of(source, depth))
        return request

    def _write_text(self, match: dict[str, Any]) -> dict[str, Any]:
        return {"standard": {"query": match}}

    def _write_vector(self, source: str, query: PullQuery, depth: int) -> dict[str, Any]:
        settings = self.legs[source]
        candidates = min(max(CANDIDATES_PER_DOCUMENT * depth, FEWEST_CANDIDATES), MOST_CANDIDATES)
        return {
            "knn": {
                "field": settings.vector_field,
                "query_vector": vector_of(query, source),
                "k": depth,
                "num_candidates": max(settings.num_candidates or candidates, depth),
            }
        }


class OpenSearchSource(SearchApiSource):
    """One query of a hybrid query.

    Attributes:
        fields: Text fields of a ``match`` or ``multi_match`` query.
        vector_field: Vector field of a ``knn`` query, or of a ``neural`` one.
        model_id: The model by which the server makes the vector of a ``neural`` query.
        query: Another query as JSON, with ``QUERY``, ``QUERY_VECTOR`` and ``DEPTH``.
    """

    template_field = "query"

    model_id: str | None = None
    query: dict[str, JsonValue] | None = None

    @model_validator(mode="after")
    def _check_options(self) -> OpenSearchSource:
        if self.model_id is not None and self.vector_field is None:
            raise ValueError("model_id belongs to vector_field")
        return self

    @property
    def query_form(self) -> QueryForm:
        """The text where the server makes the vector."""
        return "text" if self.model_id is not None else super().query_form


@connectors.register
class OpenSearchConnector(SearchApiConnector):
    """OpenSearch: each query of a hybrid query is a leg, searched alone.

    Attributes:
        search_pipeline: The pipeline of the searches of single legs; ``_none`` also switches off
            the default one of the index, which could rerank.
    """

    source = "https://docs.opensearch.org/latest/api-reference/search-apis/search/"
    dialect = OpenSearch.name

    method: str = "opensearch"
    legs: Annotated[Mapping[SourceName, OpenSearchSource], Field(min_length=1)]
    authentication: Authentication = "basic"
    search_pipeline: Annotated[str, Field(min_length=1)] = "_none"

    @property
    def source_path(self) -> str:
        """Path of a search with the pipeline of single sources."""
        return f"{super().source_path}?search_pipeline={path_of(self.search_pipeline)[1:]}"

    def source_request(self, source: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The query of a source, and nothing else."""
        search = self._write_search(source, query, depth)
        return {"query": search, "size": depth, "track_total_hits": False}

    def fused_request(self, query: PullQuery, depth: int) -> dict[str, Any]:
        """The exported request with the queries of the sources, and the pipeline inside it."""
        files = OpenSearch.write(self.fused_system(depth)).files
        request: dict[str, Any] = json.loads(files[REQUEST])
        request["query"]["hybrid"]["queries"] = [
            self._write_search(source, query, self.window_of(source, depth)) for source in self.legs
        ]
        return {**request, "search_pipeline": json.loads(files[PIPELINE])}

    def _write_vector(self, source: str, query: PullQuery, depth: int) -> dict[str, Any]:
        settings = self.legs[source]
        if settings.model_id is not None:
            neural = {"query_text": query.text, "model_id": settings.model_id, "k": depth}
            return {"neural": {settings.vector_field: neural}}
        return {"knn": {settings.vector_field: {"vector": vector_of(query, source), "k": depth}}}
