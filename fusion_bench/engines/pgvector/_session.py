"""A connected PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from fusion_bench.connector import Hit, PullQuery, make_hit
from fusion_bench.engines._connectors.answers import digest_of, require_text_field, vector_of
from fusion_bench.engines._connectors.client_library import call_library
from fusion_bench.engines.pgvector._statements import (
    count_statement,
    fused_statement,
    leg_statement,
    quote_table,
)
from fusion_bench.engines.pgvector.dialect import Pgvector
from fusion_bench.errors import ConfigError, FailureKind, ProviderError
from fusion_bench.util.optional_imports import import_optional
from fusion_bench.util.secret_matcher import SecretMatcher

if TYPE_CHECKING:
    from fusion_bench.engines.pgvector.connector import PgvectorConnector

COLUMNS = """\
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = %(table)s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attname"""
INDEXES = """\
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = %(table)s::regclass ORDER BY 1"""
EXTENSIONS = "SELECT extname, extversion FROM pg_extension ORDER BY extname"


class Database:
    """Connections to a database: read only, each call of a limited time.

    Args:
        connector: Its settings.

    Raises:
        ConfigError: The connection string is missing, or is none.
        MissingExtraError: psycopg2 is missing.
        ProviderError: The server does not answer.
    """

    def __init__(self, connector: PgvectorConnector) -> None:
        self._connector = connector
        self._library = import_optional(
            "psycopg2", extra="postgres", purpose="pull from PostgreSQL"
        )
        pools = import_optional("psycopg2.pool", extra="postgres", purpose="pull from PostgreSQL")
        address = os.environ.get(connector.key, "").strip()
        if not address:
            raise ConfigError(
                f"the environment variable {connector.key} is not set: set it to the connection "
                "string of PostgreSQL, such as postgresql://user:password@host/database"
            )
        try:
            parts = self._library.extensions.parse_dsn(address)
        except self._library.Error:
            raise ConfigError(
                f"the environment variable {connector.key} is no connection string of PostgreSQL, "
                "such as postgresql://user:password@host/database (it is not shown)"
            ) from None
        self._password = SecretMatcher(parts["password"]) if parts.get("password") else None
        milliseconds = max(1, round(connector.timeout * 1000))
        with self._wrap_errors():
            # Calls that are no longer waited for hold a connection until the server stops them.
            self._pool = pools.ThreadedConnectionPool(
                1,
                2 * connector.concurrency,
                address,
                connect_timeout=max(2, round(connector.timeout)),
                options=f"-c statement_timeout={milliseconds}",
            )

    def close(self) -> None:
        """Close all connections."""
        self._pool.closeall()

    def read_rows(self, statement: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """The rows of a statement.

        Raises:
            ProviderError: The server refused it, took too long, or is gone.
        """
        with self._wrap_errors():
            connection, is_ready = self._pool.getconn(), False
            try:
                self._prepare(connection)
                is_ready = True
                with connection.cursor() as cursor:
                    cursor.execute(statement, parameters)
                    rows: list[tuple[Any, ...]] = cursor.fetchall()
                    return rows
            finally:
                # A connection with some of its settings must serve no other call.
                self._pool.putconn(connection, close=not is_ready)

    def _prepare(self, connection: Any) -> None:  # noqa: ANN401 - psycopg2's
        if connection.autocommit:
            return  # it was prepared for an earlier call
        connection.set_session(readonly=True, autocommit=True)
        with connection.cursor() as cursor:
            for name, value in self._connector.session.items():
                text = str(value).lower() if isinstance(value, bool) else str(value)
                cursor.execute("SELECT set_config(%s, %s, false)", (name, text))

    @contextmanager
    def _wrap_errors(self) -> Iterator[None]:
        try:
            yield
        except self._library.Error as error:
            text = " ".join(str(error).split())
            text = text if self._password is None else self._password.redact_text(text)
            raise ProviderError(f"{Pgvector.title}: {text}", kind=_kind_of(error)) from None


def _kind_of(error: Exception) -> FailureKind:
    """What went wrong, by the class of the error that psycopg2 names after the server's code."""
    classes = {parent.__name__ for parent in type(error).__mro__}
    if "QueryCanceled" in classes:
        return "timeout"
    transient = {"OperationalError", "InterfaceError", "PoolError"}
    return "connection" if classes & transient else "refused"


class PostgresSession:
    """A database that is connected.

    Args:
        connector: Its settings.
        database: Its connections.
    """

    def __init__(self, connector: PgvectorConnector, database: Database) -> None:
        self._connector, self._database = connector, database

    async def read_leg(
        self, leg: str, query: PullQuery, *, depth: int, texts: bool
    ) -> Sequence[Hit]:
        """The rows of the leg's statement; equal scores in the order of the tie rule."""
        settings = self._connector.legs[leg]
        require_text_field(self._connector.text_field, texts=texts)
        parameters: dict[str, Any] = {"query": query.text}
        if settings.search == "vector":
            parameters["vector"] = _write_vector(vector_of(query, leg))
        statement = leg_statement(self._connector, leg, depth, texts=texts)
        hits = await self._read_hits(statement, parameters)
        if settings.search == "vector" and settings.sql is None and len(hits) < depth:
            await self._check_length(leg, len(hits), depth)
        return hits

    async def read_fused(self, query: PullQuery, *, depth: int, texts: bool) -> Sequence[Hit]:
        """The rows of the statement that ``export`` writes, over the legs."""
        require_text_field(self._connector.text_field, texts=texts)
        parameters: dict[str, Any] = {"query": query.text}
        for n, (leg, settings) in enumerate(self._connector.legs.items(), 1):
            if settings.search == "vector":
                parameters[f"vector_{n}"] = _write_vector(vector_of(query, leg))
        statement = fused_statement(self._connector, depth, texts=texts)
        return await self._read_hits(statement, parameters)

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Versions of server and pgvector, count of rows, digest of columns and indexes."""
        parameters = {"table": quote_table(self._connector.table).replace("%%", "%")}
        count = f"SELECT COUNT(*) FROM {quote_table(self._connector.table)}"  # noqa: S608 - quoted
        statements = ("SHOW server_version", EXTENSIONS, count, COLUMNS, INDEXES)
        answers = [await self._read_rows(statement, parameters) for statement in statements]
        versions, extensions, counts, columns, indexes = answers
        return {
            "version": versions[0][0],
            "pgvector": dict(extensions).get("vector"),
            "table": self._connector.table,
            "documents": counts[0][0],
            "configuration": digest_of([columns, indexes]),
        }

    async def _read_hits(self, statement: str, parameters: Mapping[str, Any]) -> list[Hit]:
        return [make_hit(*row) for row in await self._read_rows(statement, parameters)]

    async def _read_rows(
        self, statement: str, parameters: Mapping[str, Any]
    ) -> list[tuple[Any, ...]]:
        return await call_library(
            Pgvector.title,
            lambda: self._database.read_rows(statement, parameters),
            self._connector.timeout,
        )

    async def _check_length(self, leg: str, length: int, depth: int) -> None:
        """Refuse a list that an index cut short.

        Raises:
            ProviderError: Kind ``refused``: there are more documents.
        """
        rows = await self._read_rows(count_statement(self._connector, leg, depth), {})
        if rows[0][0] > length:
            raise ProviderError(
                f"legs.{leg}: an index gave {length} of {rows[0][0]} hits: raise its limit, such "
                f"as session: {{hnsw.ef_search: {depth}}}",
                kind="refused",
            )


def _write_vector(vector: Sequence[float]) -> str:
    return f"[{','.join(map(repr, vector))}]"
