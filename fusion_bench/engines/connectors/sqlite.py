"""SQLite's connector: full-text search of an FTS5 table, ranked by its BM25."""

from __future__ import annotations

import sqlite3
import urllib.parse
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, field_validator

from fusion_bench.config.models import Weight
from fusion_bench.engines.connectors import (
    EngineSession,
    Hit,
    PullQuery,
    SourceName,
    SourceSettings,
    connectors,
    make_hit,
)
from fusion_bench.engines.connectors._sessions import (
    TableFields,
    call_library,
    digest_of,
    require_text_field,
)
from fusion_bench.errors import ConfigError

TITLE = "SQLite"


class SqliteSource(SourceSettings):
    """A full-text search.

    Attributes:
        fields: The columns that are searched; empty = all.
        weights: Column → its weight in ``bm25``; 1 for a column that is not named.
        operator: Whether a document needs all words of the query or one.
    """

    fields: tuple[str, ...] = ()
    weights: dict[str, Weight] = Field(default_factory=dict)
    operator: Literal["and", "or"] = "or"


@connectors.register
class SqliteConnector(TableFields):
    """An FTS5 table of a SQLite database.

    Attributes:
        path: File of the database.
        table: Name of the FTS5 table.
        id_field: The column that holds a document's id.
        text_field: The column that holds its text.
        fused: SQLite has no fusion.
    """

    source = "https://www.sqlite.org/fts5.html"
    scores = "BM25"
    lists_documents = True

    method: str = "sqlite"
    path: Path
    table: Annotated[str, Field(min_length=1)]
    legs: Annotated[Mapping[SourceName, SqliteSource], Field(min_length=1)]
    fused: None = None

    @field_validator("fused", mode="before")
    @classmethod
    def _refuse_fusion(cls, given: object) -> object:
        if given is not None:
            raise ValueError("SQLite fuses nothing: leave it out, and fuse the legs after the pull")
        return given

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[EngineSession]:
        """Read the columns of the table."""
        session = SqliteSession(self)
        await session.read_columns()
        yield session


class SqliteSession:
    """A database that can be read.

    Args:
        connector: Its settings.
    """

    def __init__(self, connector: SqliteConnector) -> None:
        self._connector = connector
        self._columns: list[str] = []

    async def read_columns(self) -> None:
        """Read the columns of the table.

        Raises:
            ConfigError: There is no such table, or a column is missing.
            ProviderError: There is no such database.
        """
        table = self._connector.table
        rows = await self._read_rows("SELECT name FROM pragma_table_info(?)", table)
        self._columns = [str(name) for (name,) in rows]
        named = {self._connector.id_field, self._connector.text_field} - {None}
        for source in self._connector.legs.values():
            named |= {*source.fields, *source.weights}
        if not rows:
            raise ConfigError(f"{self._connector.path}: there is no table {table!r}")
        if missing := sorted(map(str, named - {*self._columns})):
            raise ConfigError(
                f"{self._connector.path}: table {table!r} has no column "
                f"{', '.join(map(repr, missing))} (known: {', '.join(self._columns)})"
            )

    async def read_source(
        self, source: str, query: PullQuery, *, depth: int, texts: bool
    ) -> Sequence[Hit]:
        """The rows that match, by ``bm25``; equal ones in the order of their row ids."""
        connector, settings = self._connector, self._connector.legs[source]
        text_field = require_text_field(connector.text_field, texts=texts)
        # A query of FTS5: each word quoted, so that none of them is an operator.
        parts = query.text.replace('"', " ").replace("\0", " ").split()
        words = f" {settings.operator.upper()} ".join(f'"{part}"' for part in parts)
        if not words:
            return []
        if settings.fields:
            words = f"{{{' '.join(map(_quote, settings.fields))}}} : ({words})"
        table = _quote(connector.table)
        weights = "".join(f", {settings.weights.get(name, 1.0)!r}" for name in self._columns)
        statement = (
            f"SELECT {_quote(connector.id_field)}, -bm25({table}{weights}) AS score, "  # noqa: S608 - names are quoted
            f"{_quote(text_field) if text_field else 'NULL'} "
            f"FROM {table} WHERE {table} MATCH ? ORDER BY score DESC, rowid LIMIT ?"
        )
        return [make_hit(*row) for row in await self._read_rows(statement, words, depth)]

    async def read_documents(self, _place: JsonValue) -> tuple[Sequence[Hit], JsonValue]:
        """Read a page of the table."""
        connector = self._connector
        text_field = require_text_field(connector.text_field, texts=True)
        statement = (
            f"SELECT {_quote(connector.id_field)}, 0, {_quote(text_field or '')} "  # noqa: S608 - names are quoted
            f"FROM {_quote(connector.table)} ORDER BY rowid"
        )
        return [make_hit(*row) for row in await self._read_rows(statement)], None

    async def read_fused(self, query: PullQuery, *, depth: int, texts: bool) -> Sequence[Hit]:
        """Nothing: SQLite has no fusion, and ``fused`` cannot be set."""
        raise NotImplementedError

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """SQLite's version, count of rows, digest of the table's definition."""
        table = self._connector.table
        count = f"SELECT COUNT(*), MAX(rowid) FROM {_quote(table)}"  # noqa: S608 - the name is quoted
        definition = "SELECT sql FROM sqlite_master WHERE name = ?"
        ((documents, last),) = await self._read_rows(count)
        return {
            "version": sqlite3.sqlite_version,
            "table": table,
            "documents": documents,
            "last_row": last,
            "configuration": digest_of(await self._read_rows(definition, table)),
        }

    async def _read_rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        connector = self._connector
        return await call_library(
            f"{TITLE}: {connector.path}",
            lambda: _read_rows(connector.path, statement, values),
            connector.timeout,
        )


def _read_rows(path: Path, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    address = f"file:{urllib.parse.quote(str(path))}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as database:
        return database.execute(statement, values).fetchall()


def _quote(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))
