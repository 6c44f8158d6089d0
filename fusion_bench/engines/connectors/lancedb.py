"""LanceDB's connector: full-text and vector searches of a table, and its own hybrid search."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, JsonValue, model_validator

from fusion_bench.engines.connectors import (
    EngineSession,
    Hit,
    PullQuery,
    SearchSource,
    SourceName,
    connectors,
)
from fusion_bench.engines.connectors._sessions import (
    FusedByDialect,
    LibrarySession,
    RequestConnector,
    TableFields,
    digest_of,
    signed_score,
    vector_of,
    wrap_errors,
)
from fusion_bench.engines.dialects.pairs import LanceDB
from fusion_bench.errors import ConfigError
from fusion_bench.util.optional_imports import import_optional

#: Columns with the score of a full-text search, a vector search and a hybrid search.
TEXT_SCORE: Final = "_score"
DISTANCE: Final = "_distance"
FUSED_SCORE: Final = "_relevance_score"


class LanceSource(SearchSource):
    """A full-text search or a vector search.

    Attributes:
        search: ``text`` or ``vector``.
        field: The column that is searched; None = of the leg's name.
        metric: Distance of a vector search; None = the index's, or L2 without an index.
    """

    search: Literal["text", "vector"]
    field: str | None = None
    metric: Literal["cosine", "dot", "l2"] | None = None


@connectors.register
class LanceDBConnector(TableFields, FusedByDialect, RequestConnector):
    """A table of LanceDB, which its library opens.

    Attributes:
        path: Folder or address of the database.
        table: Name of the table.
        id_field: The column that holds a document's id.
        text_field: The column that holds its text.
        filter: A condition of SQL: only the rows that it admits are searched.
        fused: A reranker of the hybrid search, which has one leg of text and one of vectors.
    """

    source = "https://lancedb.github.io/lancedb/python/python/"
    lists_documents = True
    dialect = LanceDB.name

    method: str = "lancedb"
    path: Annotated[str, Field(min_length=1)]
    table: str
    legs: Annotated[Mapping[SourceName, LanceSource], Field(min_length=1)]
    filter: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _check_pair(self) -> LanceDBConnector:
        searches = sorted(source.search for source in self.legs.values())
        if self.fused is not None and searches != ["text", "vector"]:
            raise ValueError(
                "fused: the hybrid search needs one leg of 'search: text' and one of 'search: "
                f"vector', given {', '.join(searches)}"
            )
        return self

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[EngineSession]:
        """Open the table; the library would make a folder that is not there."""
        if "://" not in self.path and not Path(self.path).is_dir():
            raise ConfigError(f"path: there is no folder {self.path}")
        # Each hybrid search warns that it selects columns by a rule that will change.
        os.environ.setdefault("LANCEDB_LOG", "error")
        library = import_optional("lancedb", extra="lancedb", purpose="pull from LanceDB")
        with wrap_errors(LanceDB.title):
            table = library.connect(self.path).open_table(self.table)
        yield LanceSession(self, table, library.__version__)

    def describe_score(self, source: str) -> str:
        """BM25, or a distance with its sign turned."""
        settings = self.legs[source]
        return "BM25" if settings.search == "text" else f"−{settings.metric or 'vector'} distance"

    def fused_options(self) -> dict[str, Any]:
        """The reranker, with the name of the vector source."""
        return {**super().fused_options(), "vector": self.source_of("vector")}

    def source_request(self, source: str, query: PullQuery, depth: int) -> dict[str, Any]:  # noqa: ARG002 - put to it later
        """The arguments of one search."""
        settings, field = self.legs[source], self.field_of(source)
        search: dict[str, Any] = {"query_type": "fts", "fts_columns": field, "query": query.text}
        if settings.search == "vector":
            vector = {"query": vector_of(query, source), "vector_column_name": field}
            search = {"query_type": "vector", **vector}
        return {"search": search, "metric": settings.metric if settings.search != "text" else None}

    def fused_request(self, query: PullQuery, depth: int) -> dict[str, Any]:  # noqa: ARG002 - put to it later
        """The arguments of a hybrid search; both its searches fetch as much as it returns."""
        text, vector = self.source_of("text"), self.source_of("vector")
        columns = {"vector_column_name": self.field_of(vector), "fts_columns": self.field_of(text)}
        return {
            "search": {"query_type": "hybrid", **columns},
            "vector": vector_of(query, vector),
            "text": query.text,
            "reranker": self.fused_system(1).fusion.model_dump(exclude={"vector"}),
            "metric": self.legs[vector].metric,
        }

    def source_of(self, search: str) -> str:
        """The first source of a search."""
        return next(name for name, source in self.legs.items() if source.search == search)

    def field_of(self, source: str) -> str:
        """The column that a source searches."""
        return self.legs[source].field or source


class LanceSession(LibrarySession):
    """A table that is open.

    Args:
        connector: Its settings.
        table: LanceDB's.
        version: Of the library.
    """

    title = LanceDB.title
    _connector: LanceDBConnector

    def __init__(self, connector: LanceDBConnector, table: Any, version: str) -> None:  # noqa: ANN401 - LanceDB's
        super().__init__(connector)
        self._table, self._version = table, version

    async def _search(
        self, body: dict[str, Any], source: str, depth: int, *, texts: bool
    ) -> Sequence[Hit]:
        connector, score = self._connector, _score_column(self._connector, source)
        columns = connector.read_fields(texts=texts)

        def read_rows() -> list[dict[str, Any]]:
            search = self._table.search(**body["search"])
            if not source:
                from lancedb import rerankers

                options = dict(body["reranker"])
                reranker = getattr(rerankers, options.pop("method"))(**options)
                search = search.vector(body["vector"]).text(body["text"]).rerank(reranker)
            if body["metric"]:
                search = search.distance_type(body["metric"])
            # A hybrid search selects its score itself.
            search = search.select([*columns, score] if source else columns).limit(depth)
            if connector.filter is not None:
                search = search.where(connector.filter, prefilter=True)
            rows: list[dict[str, Any]] = search.to_list()
            return rows

        return self._make_hits(await self._call(read_rows), source, texts=texts)

    async def read_documents(self, _place: JsonValue) -> tuple[Sequence[Hit], JsonValue]:
        """Read a page of the rows that ``filter`` admits."""
        columns = self._connector.read_fields(texts=True)

        def read_rows() -> list[dict[str, Any]]:
            scan = self._table.search().select(columns)
            if self._connector.filter is not None:
                scan = scan.where(self._connector.filter)
            rows: list[dict[str, Any]] = scan.limit(self._table.count_rows()).to_list()
            return rows

        return self._list_documents(await self._call(read_rows)), None

    def _read_score(self, row: Mapping[str, Any], source: str) -> object:
        score = _score_column(self._connector, source)
        return signed_score(row[score], -1 if score == DISTANCE else 1)

    def _describe(self) -> Mapping[str, JsonValue]:
        indexes = [
            [index.name, index.index_type, index.columns] for index in self._table.list_indices()
        ]
        columns = [str(column) for column in self._table.schema]
        return {
            "version": self._version,
            "table": self._connector.table,
            "table_version": self._table.version,
            "documents": self._table.count_rows(),
            "configuration": digest_of([columns, sorted(indexes)]),
        }


def _score_column(connector: LanceDBConnector, source: str) -> str:
    """The column with the scores of a source, or of the hybrid search."""
    if not source:
        return FUSED_SCORE
    return TEXT_SCORE if connector.legs[source].search == "text" else DISTANCE
