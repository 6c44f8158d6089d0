"""The connector of PostgreSQL: full-text search and pgvector, fused by the SQL of the export."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from fusion_bench.config.fields.server import ServerModel
from fusion_bench.connector import (
    EngineSession,
    LegName,
    SearchLeg,
    connectors,
)
from fusion_bench.engines._connectors.fused_answers import FusedByDialect
from fusion_bench.engines.pgvector._session import Database, PostgresSession
from fusion_bench.engines.pgvector.dialect import Pgvector

#: A setting of a session of PostgreSQL, such as ``hnsw.ef_search``.
SETTING = re.compile(r"[a-z_]+(\.[a-z_]+)?")


class PostgresLeg(SearchLeg):
    """A full-text search, a search for near vectors, or a SELECT of the user's.

    Attributes:
        search: ``text`` or ``vector``: what the query is.
        field: The column that is searched, a ``tsvector`` or a ``vector``; None = of the leg's
            name.
        language: Text search configuration of PostgreSQL that reads the query.
        operator: Whether a document needs all words of the query or one.
        rank: The function that scores a document.
        metric: Distance of a vector search.
        sql: A SELECT in place of these, with the columns ``id`` and ``score``, the greater the
            better, and the parameters ``%(query)s``, ``%(vector)s`` and ``%(depth)s``.
    """

    search: Literal["text", "vector"]
    field: Annotated[str, Field(min_length=1)] | None = None
    language: Annotated[str, Field(min_length=1)] = "english"
    operator: Literal["and", "or"] = "and"
    rank: Literal["ts_rank_cd", "ts_rank"] = "ts_rank_cd"
    metric: Literal["cosine", "inner_product", "l2"] = "cosine"
    sql: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _check_parameters(self) -> PostgresLeg:
        if self.search == "text" and "%(vector)s" in (self.sql or ""):
            raise ValueError("sql: %(vector)s needs 'search: vector'")
        return self


@connectors.register
class PgvectorConnector(FusedByDialect, ServerModel):
    """A table of PostgreSQL.

    Attributes:
        key: Environment variable that holds the connection string, such as
            ``postgresql://user:password@host/database``.
        table: Name of the table or view; ``schema.table`` names its schema.
        id_field: The column that holds a document's id.
        text_field: The column that holds its text.
        session: Settings of each session, such as ``{hnsw.ef_search: 200}``.
        fused: ``rrf`` or ``convex``, by the statement that ``export`` writes.
    """

    source: ClassVar[str] = "https://github.com/pgvector/pgvector"
    dialect: ClassVar[str] = Pgvector.name
    has_window_by_leg: ClassVar[bool] = True

    method: str = "pgvector"
    key: str = "DATABASE_URL"
    table: Annotated[str, Field(min_length=1)]
    legs: Annotated[Mapping[LegName, PostgresLeg], Field(min_length=1)]
    id_field: Annotated[str, Field(min_length=1)] = "id"
    text_field: Annotated[str, Field(min_length=1)] | None = None
    session: dict[str, str | int | float | bool] = Field(default_factory=dict)

    @field_validator("session")
    @classmethod
    def _check_settings(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value:
            if not SETTING.fullmatch(name):
                raise ValueError(f"{name!r} is no setting of PostgreSQL, such as hnsw.ef_search")
        return value

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[EngineSession]:
        """Open a first connection."""
        database = await asyncio.to_thread(Database, self)
        try:
            yield PostgresSession(self, database)
        finally:
            database.close()

    def describe_score(self, leg: str) -> str:
        """The function of a text search, or what is made of a distance."""
        settings = self.legs[leg]
        if settings.sql is not None:
            return "score of the user's SELECT"
        if settings.search == "text":
            return settings.rank
        return "1 − cosine distance" if settings.metric == "cosine" else f"−{settings.metric}"
