"""Milvus: its sources; a connected server, or Milvus Lite, a database in a folder.

Milvus Lite 3 is a second implementation of Milvus, in Python.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, JsonValue

from fusion_bench.config.models import Rank
from fusion_bench.engines.connectors import (
    EngineSession,
    Hit,
    PullQuery,
    QueryForm,
    SearchSource,
    SourceName,
    connectors,
)
from fusion_bench.engines.connectors._sessions import (
    DocumentFields,
    HttpSession,
    LockedSession,
    ServerOrFolder,
    digest_of,
    json_sparse,
    number_at,
    rows_at,
    value_at,
    vector_of,
    wrap_errors,
)
from fusion_bench.engines.dialects._dialect import weights_by_source, windows_by_source
from fusion_bench.engines.dialects.vector_databases import MOST_DOCUMENTS, Milvus, MilvusWeighted
from fusion_bench.errors import ConfigError, FailureKind, ProviderError
from fusion_bench.util.json_text import malformed_error
from fusion_bench.util.optional_imports import import_optional

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


class MilvusSession(HttpSession):
    """A server that is connected."""

    rows = ("data",)
    score = ("distance",)
    _connector: MilvusConnector

    async def prepare(self) -> None:
        """Read the primary key of the collection, and the metrics of its indexes."""
        await self._describe_collection()

    async def _describe_collection(self) -> Any:  # noqa: ANN401 - JSON
        data = value_at(await self._post("/collections/describe", {}), "data")
        keys = [str(each.get("name")) for each in rows_at(data, "fields") if each.get("primaryKey")]
        self.own_id = (keys[-1] if keys else "id",)
        metrics = {
            str(index.get("fieldName")): str(index.get("metricType")).upper()
            for index in rows_at(data, "indexes")
        }
        self._connector.check_metrics(metrics)
        self.signs = {
            source: -1 if metrics[self._connector.field_of(source)] in DISTANCES else 1
            for source in self._connector.legs
        }
        return data

    def _search_path(self, source: str) -> str:
        return "/entities/search" if source else "/entities/hybrid_search"

    def _select_fields(self, body: dict[str, Any], fields: list[str]) -> dict[str, Any]:
        return {**body, "outputFields": self._connector.list_fields(self.own_id[0], fields)}

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Collection, count of entities, digest of the collection's description.

        The RESTful API does not state the version of the server.
        """
        stats = await self._post("/collections/get_stats", {})
        data = await self._describe_collection()
        stable = {key: data.get(key) for key in ("fields", "indexes", "functions", "properties")}
        return {
            "collection": self._connector.collection,
            "database": self._connector.database,
            "documents": number_at(stats, "data", "rowCount"),
            "configuration": digest_of(stable),
        }

    async def _post(self, path: str, body: dict[str, Any], extra_bytes: int = 0) -> Any:  # noqa: ANN401 - JSON
        place = {"dbName": self._connector.database, "collectionName": self._connector.collection}
        url = f"{PREFIX}{path}"
        answer = await self._client.post_json(url, {**place, **body}, extra_bytes=extra_bytes)
        code = value_at(answer, "code")
        if code in {0, 200}:
            return answer
        if not isinstance(code, int):
            raise malformed_error("it has no code")
        message = self._client.quote_text(str(value_at(answer, "message")))
        raise ProviderError(
            f"{self._client.base_url}{url}: code {code}: {message}",
            kind=PASSING_CODES.get(code, "refused"),
        )


TITLE: Final = "Milvus Lite"
PURPOSE: Final = "pull from Milvus Lite"


class LiteSession(LockedSession):
    """A database that is open.

    Args:
        connector: Its settings.
        library: pymilvus.
        client: Its client.

    Raises:
        ConfigError: There is no such collection.
        ProviderError: The library refuses it.
    """

    title = TITLE
    _connector: MilvusConnector

    def __init__(self, connector: MilvusConnector, library: Any, client: Any) -> None:  # noqa: ANN401 - pymilvus's
        super().__init__(connector)
        self._library, self._client = library, client
        name = connector.collection
        with wrap_errors(TITLE):
            if not client.has_collection(name):
                known = ", ".join(sorted(client.list_collections())) or "none"
                raise ConfigError(f"collection: there is no {name!r} (known: {known})")
            self._description = client.describe_collection(name)
            indexes = [client.describe_index(name, index) for index in client.list_indexes(name)]
            client.load_collection(name)
        self._metrics = {index["field_name"]: index["metric_type"] for index in indexes}
        connector.check_metrics(self._metrics)
        self._key = next(
            (field["name"] for field in self._description["fields"] if field.get("is_primary")),
            "id",
        )

    async def _search(
        self, body: dict[str, Any], source: str, depth: int, *, texts: bool
    ) -> Sequence[Hit]:
        connector = self._connector
        names = connector.list_fields(self._key, connector.read_fields(texts=texts))
        options: dict[str, Any] = {"limit": depth, "output_fields": names}
        if source:
            search = self._client.search
            options |= {
                "data": _number_dimensions(body["data"]),
                "anns_field": body["annsField"],
                "search_params": body.get("searchParams", {"params": {}}),
                "filter": body.get("filter", ""),
            }
        else:
            search, parameters = self._client.hybrid_search, body["rerank"]["params"]
            options["reqs"] = [
                self._library.AnnSearchRequest(
                    data=_number_dimensions(part["data"]),
                    anns_field=part["annsField"],
                    param={"params": part.get("params", {})},
                    limit=part["limit"],
                    expr=part.get("filter"),
                )
                for part in body["search"]
            ]
            if body["rerank"]["strategy"] == "rrf":
                options["ranker"] = self._library.RRFRanker(**parameters)
            else:
                options["ranker"] = self._library.WeightedRanker(
                    *parameters["weights"], norm_score=parameters["norm_score"]
                )
        answer = await self._call(lambda: search(connector.collection, **options))
        rows = ({**row, self._key: row["id"], **row["entity"]} for row in answer[0])
        return self._make_hits(rows, source, texts=texts)

    def _read_id(self, row: Mapping[str, Any]) -> object:
        return row[self._key]

    def _read_score(self, row: Mapping[str, Any], source: str) -> object:
        metric = self._metrics.get(self._connector.field_of(source), "") if source else ""
        return score_of(row["distance"], metric)

    def _describe(self) -> Mapping[str, JsonValue]:
        name = self._connector.collection
        fields = ("fields", "functions", "properties")
        stable = [str(self._description.get(key)) for key in fields]
        return {
            "version": f"Milvus Lite {importlib.metadata.version('milvus-lite')}",
            "collection": name,
            "documents": self._client.get_collection_stats(name)["row_count"],
            "configuration": digest_of([stable, self._metrics]),
        }


def _number_dimensions(data: Sequence[Any]) -> list[Any]:
    """The query of a search; the dimensions of a sparse vector are numbers here."""
    return [
        {int(key): weight for key, weight in value.items()} if isinstance(value, dict) else value
        for value in data
    ]


def score_of(distance: float, metric: str) -> float:
    """The score, greater is better, of what Milvus Lite calls a distance.

    Milvus Lite 3.2 gives BM25, which is never below 0, with its sign turned.
    """
    if metric == "BM25":
        return abs(distance)
    return -distance if metric in DISTANCES else distance


class MilvusSource(SearchSource):
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


@connectors.register
class MilvusConnector(DocumentFields, ServerOrFolder):
    """Milvus: each vector field is a leg.

    Attributes:
        collection: Name of the collection.
        database: Name of its database.
        id_field: The field that holds a document's id; None = the primary key.
        text_field: The field that holds its text.
        filter: A boolean expression: only the entities that it admits are searched.
    """

    source = "https://milvus.io/api-reference/restful/v2.6.x/About.md"
    dialect = Milvus.name
    session_type = MilvusSession
    scores = "Milvus's distance; its negative for L2, HAMMING and JACCARD"
    limit_name = "Milvus"

    method: str = "milvus"
    database: str = "default"
    legs: Annotated[Mapping[SourceName, MilvusSource], Field(min_length=1)]
    filter: Annotated[str, Field(min_length=1)] | None = None
    most_documents: Rank = MOST_DOCUMENTS

    @asynccontextmanager
    async def open_folder(self, path: str) -> AsyncIterator[EngineSession]:
        """Open a database of Milvus Lite."""
        if not path.endswith(".db") or not Path(path).exists():
            raise ConfigError(f"path: {path} is no database of Milvus Lite, such as milvus.db")
        library = import_optional("pymilvus", extra="milvus", purpose=PURPOSE)
        import_optional("milvus_lite", extra="milvus", purpose=PURPOSE)
        with wrap_errors(TITLE):
            client = library.MilvusClient(path)
        try:
            yield LiteSession(self, library, client)
        finally:
            client.close()

    def check_metrics(self, metrics: Mapping[str, str]) -> None:
        """Refuse a source without an index, and a fusion by another metric than the field's.

        Args:
            metrics: Vector field → metric, as the collection states them.

        Raises:
            ConfigError: A field has no index, or ``weighted`` names another metric.
        """
        for source in self.legs:
            if self.field_of(source) not in metrics:
                raise ConfigError(
                    f"legs.{source}: field {self.field_of(source)!r} has no index (indexed: "
                    f"{', '.join(sorted(metrics)) or 'none'})"
                )
        fusion = None if self.fused is None else self.fused_system(1).fusion
        if not isinstance(fusion, MilvusWeighted):
            return
        for source in self.legs:
            given, metric = fusion.metric_of(source), metrics[self.field_of(source)]
            if metric != given:
                raise ConfigError(
                    f"fused.metric: {given} for leg {source!r}, and field "
                    f"{self.field_of(source)!r} has {metric}: set metric: {{{source}: {metric}}}"
                )

    def list_fields(self, key: str, fields: list[str]) -> list[str]:
        """The fields that a search returns: the primary key, where no other field is the id."""
        return fields if self.id_field else [key, *fields]

    def field_of(self, source: str) -> str:
        """The vector field of a source."""
        return self.legs[source].field or source

    def _write_search(self, source: str, query: PullQuery, depth: int) -> dict[str, Any]:
        form = self.legs[source].search
        data: Any = query.text
        if form == "vector":
            data = vector_of(query, source)
        elif form == "sparse_vector":
            sparse = json_sparse(query, source)
            data = dict(zip(map(str, sparse["indices"]), sparse["values"], strict=True))
        search = {"data": [data], "annsField": self.field_of(source), "limit": depth}
        return search if self.filter is None else {**search, "filter": self.filter}

    def source_request(self, source: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The body of ``/entities/search`` without collection and fields."""
        search, params = self._write_search(source, query, depth), self.legs[source].params
        return {**search, "searchParams": {"params": params}} if params else search

    def fused_request(self, query: PullQuery, depth: int) -> dict[str, Any]:
        """The body of ``/entities/hybrid_search`` without collection and fields."""
        system = self.fused_system(depth)
        windows = windows_by_source(system)
        searches = []
        for source, settings in self.legs.items():
            search = self._write_search(source, query, windows[source])
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
