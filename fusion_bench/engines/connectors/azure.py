"""Azure AI Search: its sources, its connected service."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
    DocumentFields,
    FusedByDialect,
    HttpSession,
    RequestHttpConnector,
    digest_of,
    number_at,
    path_of,
    value_at,
    vector_of,
)
from fusion_bench.engines.dialects.search_servers import AZURE_FILE, AzureAISearch
from fusion_bench.errors import ConfigError, ProviderError
from fusion_bench.util.http_client import KeyHeader


class AzureSession(HttpSession):
    """A service that is connected."""

    rows = ("value",)
    score = ("@search.score",)
    _connector: AzureConnector

    def _search_path(self, _source: str) -> str:
        return self._path("docs", "search")

    def _select_fields(self, body: dict[str, Any], fields: list[str]) -> dict[str, Any]:
        return {**body, "select": ",".join(fields)}

    def _check(self, data: Any) -> None:  # noqa: ANN401 - JSON
        super()._check(data)
        coverage = number_at(data, "@search.coverage")
        if coverage is not None and coverage != 100:
            raise incomplete_error(f"{coverage} % of the index was searched")
        if value_at(data, "@odata.nextLink") or value_at(data, "@search.nextPageParameters"):
            raise ProviderError(
                "incomplete answer: the service returned only a part of it: pull without texts, "
                "or with a smaller depth",
                kind="too_large",
            )

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Index, count of documents, digest of the index where the key may read it.

        A query key may not: only an admin key may.
        """
        count = await self._client.get_json(self._path("docs", "$count"))
        definition = await self._get_permitted(self._path())
        stable = {
            key: value for key, value in (definition or {}).items() if not key.startswith("@odata.")
        }
        return {
            "api_version": self._connector.api_version,
            "index": self._connector.index,
            "documents": number_at(count),
            "configuration": digest_of(stable) if stable else None,
        }

    def _path(self, *parts: str) -> str:
        version = self._connector.api_version
        return f"{path_of('indexes', self._connector.index, *parts)}?api-version={version}"


#: Most documents of one answer.
MOST_TOP: Final = 1_000
#: Documents of the text query that are fused where the version of the API has no setting for it.
TEXT_RECALL: Final = 1_000


class AzureSource(SourceSettings):
    """The text query, or one vector query.

    Attributes:
        fields: Searchable fields of the text query.
        vector_field: Field of a vector query.
        vectorized: Whether the service makes the vector from the query's text.
        exhaustive: Whether every vector is compared, without the index.
        options: Further keys of the request of a text query, such as ``queryType``.
    """

    fields: tuple[str, ...] = ()
    vector_field: str | None = None
    vectorized: bool = False
    exhaustive: bool = False
    options: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_search(self) -> AzureSource:
        if bool(self.fields) == (self.vector_field is not None):
            raise ValueError("either fields or vector_field is needed")
        if self.options and not self.fields:
            raise ValueError("options belong to the text query: to fields")
        return self

    @property
    def query_form(self) -> QueryForm:
        """A vector for a vector query whose vector the service does not make."""
        return "text" if self.fields or self.vectorized else "vector"


@connectors.register
class AzureConnector(DocumentFields, FusedByDialect, RequestHttpConnector):
    """Azure AI Search: the text query and each vector query are legs.

    Attributes:
        index: Name of the index.
        api_version: Version of the REST API; one that ends in ``-preview`` also sets how many
            documents of the text query are fused.
        id_field: The key field of the index.
        text_field: The field that holds a document's text.
        filter: An OData expression: only the documents that it admits are searched.
    """

    source = "https://learn.microsoft.com/en-us/rest/api/searchservice/documents/search-post"
    dialect = AzureAISearch.name
    session_type = AzureSession
    key_header = KeyHeader("api-key")
    has_window_by_source = True
    window_advice = "set an api_version that ends in -preview, and a smaller window"
    limit_name = "one answer of Azure AI Search"
    limit_advice = "ask for fewer"

    method: str = "azure"
    index: str = Field(min_length=1)
    api_version: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d(-preview)?$")] = (
        AzureAISearch.version
    )
    legs: Annotated[Mapping[SourceName, AzureSource], Field(min_length=1)]
    id_field: str = Field(min_length=1)
    filter: Annotated[str, Field(min_length=1)] | None = None
    most_documents: Annotated[Rank, Field(le=MOST_TOP)] = MOST_TOP

    @property
    def has_text_recall(self) -> bool:
        """Whether a request says how many documents of the text query are fused."""
        return self.api_version.endswith("-preview")

    def fused_options(self) -> dict[str, Any]:
        """The fusion, with the name of the text query."""
        texts = [name for name, source in self.legs.items() if source.fields]
        if len(texts) > 1:
            raise ConfigError(f"text: one text query is fused, given {', '.join(texts)}")
        return {"text": texts[0] if texts else None, **super().fused_options()}

    def window_of(self, source: str, depth: int) -> int:
        """A text query has 1,000 documents where the request cannot say so."""
        if self.legs[source].fields and not self.has_text_recall:
            return TEXT_RECALL
        return super().window_of(source, depth)

    def source_request(self, source: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The search of one source."""
        settings = self.legs[source]
        if settings.fields:
            text = {"search": query.text, "searchFields": ",".join(settings.fields)}
            return {**settings.options, **self._filter, **text, "top": depth}
        vectors = [self._vector_query(source, query, depth)]
        return {**self._filter, "vectorQueries": vectors, "top": depth}

    def fused_request(self, query: PullQuery, depth: int) -> dict[str, Any]:
        """The exported request with the fields and the vectors of the sources."""
        system = self.fused_system(depth)
        request: dict[str, Any] = json.loads(AzureAISearch.write(system).files[AZURE_FILE])
        text = request.pop("searchFields", None)
        if text is not None:
            request.update(self.source_request(text, query, depth))
        request.update(self._filter)
        request["vectorQueries"] = [
            {
                **self._vector_query(entry["fields"], query, entry["k"]),
                "weight": entry["weight"],
            }
            for entry in request["vectorQueries"]
        ]
        if not self.has_text_recall:
            request.pop("hybridSearch", None)
        return request

    @property
    def _filter(self) -> dict[str, Any]:
        return {} if self.filter is None else {"filter": self.filter}

    def _vector_query(self, source: str, query: PullQuery, depth: int) -> dict[str, Any]:
        settings = self.legs[source]
        kind: dict[str, Any] = (
            {"kind": "text", "text": query.text}
            if settings.vectorized
            else {"kind": "vector", "vector": vector_of(query, source)}
        )
        exhaustive = {"exhaustive": True} if settings.exhaustive else {}
        return {**kind, "fields": settings.vector_field, "k": depth, **exhaustive}
