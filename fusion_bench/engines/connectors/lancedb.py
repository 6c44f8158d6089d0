"""LanceDB's connector: full-text and vector searches of a table, and its own hybrid search."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, JsonValue, model_validator

from fusion_bench.engines.connectors import (
    EngineSession,
    Hit,
    LegName,
    PullQuery,
    SearchLeg,
    connectors,
    make_hit,
)
from fusion_bench.engines.connectors._answers import (
    FusedByDialect,
    digest_of,
    require_text_field,
    signed_score,
    vector_of,
)
from fusion_bench.engines.connectors._sessions import call_library, wrap_errors
from fusion_bench.engines.dialects.pairs import LanceDB
from fusion_bench.errors import ConfigError
from fusion_bench.util.optional_imports import import_optional

#: Columns with the score of a full-text search, a vector search and a hybrid search.
TEXT_SCORE: Final = "_score"
DISTANCE: Final = "_distance"
FUSED_SCORE: Final = "_relevance_score"


class LanceLeg(SearchLeg):
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
class LanceDBConnector(FusedByDialect):
    """A table of LanceDB, which its library opens.

    Attributes:
        path: Folder or address of the database.
        table: Name of the table.
        id_field: The column that holds a document's id.
        text_field: The column that holds its text.
        filter: A condition of SQL: only the rows that it admits are searched.
        fused: A reranker of the hybrid search, which has one leg of text and one of vectors.
    """

    source: ClassVar[str] = "https://lancedb.github.io/lancedb/python/python/"
    dialect: ClassVar[str] = LanceDB.name

    method: str = "lancedb"
    path: Annotated[str, Field(min_length=1)]
    table: str
    legs: Annotated[Mapping[LegName, LanceLeg], Field(min_length=1)]
    id_field: str = "id"
    text_field: str | None = None
    filter: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _check_pair(self) -> LanceDBConnector:
        searches = sorted(leg.search for leg in self.legs.values())
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

    def describe_score(self, leg: str) -> str:
        """BM25, or a distance with its sign turned."""
        settings = self.legs[leg]
        return "BM25" if settings.search == "text" else f"−{settings.metric or 'vector'} distance"

    def fused_options(self) -> dict[str, Any]:
        """The reranker, with the name of the vector leg."""
        return {**super().fused_options(), "vector": self.leg_of("vector")}

    def leg_of(self, search: str) -> str:
        """The first leg of a search."""
        return next(name for name, leg in self.legs.items() if leg.search == search)

    def field_of(self, leg: str) -> str:
        """The column that a leg searches."""
        return self.legs[leg].field or leg


class LanceSession:
    """A table that is open.

    Args:
        connector: Its settings.
        table: LanceDB's.
        version: Of the library.
    """

    def __init__(self, connector: LanceDBConnector, table: Any, version: str) -> None:  # noqa: ANN401 - LanceDB's
        self._connector, self._table, self._version = connector, table, version

    async def read_leg(
        self, leg: str, query: PullQuery, *, depth: int, texts: bool
    ) -> Sequence[Hit]:
        """One search of the leg's column."""
        score = TEXT_SCORE if self._connector.legs[leg].search == "text" else DISTANCE

        def search() -> Any:  # noqa: ANN401 - a query of LanceDB
            return self._search_leg(leg, query).select([*self._columns(texts=texts), score])

        return await self._read_hits(search, depth, score, texts=texts)

    async def read_fused(self, query: PullQuery, *, depth: int, texts: bool) -> Sequence[Hit]:
        """A hybrid search, both of whose searches fetch as many documents as it returns."""

        def search() -> Any:  # noqa: ANN401 - a query of LanceDB
            return self._search_both(query).select(self._columns(texts=texts))

        return await self._read_hits(search, depth, FUSED_SCORE, texts=texts)

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Versions of library and table, count of rows, digest of columns and indexes."""
        return await call_library(LanceDB.title, self._fingerprint, self._connector.timeout)

    def _fingerprint(self) -> Mapping[str, JsonValue]:
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

    def _search_leg(self, leg: str, query: PullQuery) -> Any:  # noqa: ANN401 - a query of LanceDB
        settings, field = self._connector.legs[leg], self._connector.field_of(leg)
        if settings.search == "text":
            return self._table.search(query.text, query_type="fts", fts_columns=field)
        search = self._table.search(
            vector_of(query, leg), query_type="vector", vector_column_name=field
        )
        return search.distance_type(settings.metric) if settings.metric else search

    def _search_both(self, query: PullQuery) -> Any:  # noqa: ANN401 - a query of LanceDB
        from lancedb import rerankers

        connector = self._connector
        text, vector = connector.leg_of("text"), connector.leg_of("vector")
        options = connector.fused_system(1).fusion.model_dump(exclude={"vector"})
        reranker = getattr(rerankers, options.pop("method"))(**options)
        search = (
            self._table.search(
                query_type="hybrid",
                vector_column_name=connector.field_of(vector),
                fts_columns=connector.field_of(text),
            )
            .vector(vector_of(query, vector))
            .text(query.text)
            .rerank(reranker)
        )
        metric = connector.legs[vector].metric
        return search.distance_type(metric) if metric else search

    def _columns(self, *, texts: bool) -> list[str]:
        text_field = require_text_field(self._connector.text_field, texts=texts)
        return [self._connector.id_field, *([text_field] if text_field else [])]

    async def _read_hits(
        self,
        search: Callable[[], Any],
        depth: int,
        score: str,
        *,
        texts: bool,
    ) -> Sequence[Hit]:
        connector, sign = self._connector, -1 if score == DISTANCE else 1
        text_field = connector.text_field if texts else None

        def read_rows() -> list[dict[str, Any]]:
            search_query = search().limit(depth)
            if connector.filter is not None:
                search_query = search_query.where(connector.filter, prefilter=True)
            rows: list[dict[str, Any]] = search_query.to_list()
            return rows

        rows = await call_library(LanceDB.title, read_rows, connector.timeout)
        return [
            make_hit(
                row[connector.id_field],
                signed_score(row[score], sign),
                row[text_field] if text_field else None,
            )
            for row in rows
        ]
