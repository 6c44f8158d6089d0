"""PostgreSQL with pgvector: its sources, its SQL, its connected server."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any, Final, Literal

from pydantic import Field, JsonValue, field_validator, model_validator

from fusion_bench.engines.connectors import (
    EngineSession,
    Hit,
    PullQuery,
    SearchSource,
    SourceName,
    connectors,
    make_hit,
)
from fusion_bench.engines.connectors._sessions import (
    FusedByDialect,
    RequestConnector,
    Session,
    TableFields,
    call_library,
    digest_of,
    require_text_field,
    vector_of,
)
from fusion_bench.engines.dialects._dialect import windows_by_source
from fusion_bench.engines.dialects.sql import PGVECTOR_FILE, Pgvector
from fusion_bench.errors import ConfigError, FailureKind, ProviderError
from fusion_bench.models.endpoints import ServerModel
from fusion_bench.util.api_keys import SecretMatcher
from fusion_bench.util.optional_imports import import_optional

#: The operator of a distance, and the score that is greater where the distance is smaller.
SCORES: Final[Mapping[str, tuple[str, str]]] = {
    "cosine": ("<=>", "1 - ({})"),
    "inner_product": ("<#>", "-({})"),
    "l2": ("<->", "-({})"),
}
#: Equal scores stand in the order of the tie rule, as the exported statement orders them.
BEST_FIRST: Final = 'ORDER BY hits.score DESC, hits.id COLLATE "C" DESC'


def source_statement(connector: PgvectorConnector, source: str, depth: int) -> str:
    """The statement of one source, with the parameters ``query`` and ``vector``."""
    return (
        f"SELECT hits.id::text AS id, hits.score::double precision AS score "  # noqa: S608 - names are quoted
        f"FROM ({_select_hits(connector, source, depth)}) AS hits {BEST_FIRST} LIMIT {depth}"
    )


def fused_statement(connector: PgvectorConnector, depth: int) -> str:
    """The statement that ``export`` writes, over the sources; parameters of each have its number.

    They are ``query``, and ``vector_1`` for the first source.
    """
    system = connector.fused_system(depth)
    statement = Pgvector.write(system).files[PGVECTOR_FILE].rstrip().rstrip(";")
    for n, (source, window) in enumerate(windows_by_source(system).items(), 1):
        select = _select_hits(connector, source, window).replace("%(vector)s", f"%(vector_{n})s")
        statement = statement.replace(f'FROM "LIST_{n}"', f'FROM ({select}) AS "LIST_{n}"')
    return statement


def _select_hits(connector: PgvectorConnector, source: str, depth: int) -> str:
    """A SELECT of ``id`` and ``score``; a search for near vectors gives the best ``depth``."""
    settings = connector.legs[source]
    if settings.sql is not None:
        return settings.sql.rstrip().rstrip(";").replace("%(depth)s", str(depth))
    table, document = _quote_table(connector.table), _quote_name(connector.id_field)
    field = _quote_name(settings.field or source)
    if settings.search == "text":
        language = settings.language.replace("'", "''").replace("%", "%%")
        words = f"plainto_tsquery('{language}'::regconfig, %(query)s)"
        if settings.operator == "or":
            words = f"REPLACE({words}::text, '&', '|')::tsquery"
        return (
            f"SELECT {document}::text AS id, {settings.rank}({field}, query) AS score "  # noqa: S608 - names are quoted
            f"FROM {table}, (SELECT {words} AS query) AS words "
            f"WHERE {field} @@ query"
        )
    operator, score = SCORES[settings.metric]
    distance = f"{field} {operator} %(vector)s::vector"
    return (
        f"SELECT {document}::text AS id, {score.format(distance)} AS score FROM {table} "  # noqa: S608 - names are quoted
        f"WHERE {field} IS NOT NULL ORDER BY {distance} LIMIT {depth}"
    )


def add_texts(connector: PgvectorConnector, hits: str) -> str:
    """The statement of hits with the texts of their documents."""
    table, document = _quote_table(connector.table), _quote_name(connector.id_field)
    text = _quote_name(connector.text_field or "")
    return (
        f"SELECT hits.id, hits.score, texts.{text}::text FROM ({hits}) AS hits "  # noqa: S608 - names are quoted
        f"LEFT JOIN {table} AS texts ON texts.{document}::text = hits.id {BEST_FIRST}"
    )


def _quote_name(name: str) -> str:
    """An identifier of SQL; psycopg2 takes a single % for a parameter."""
    return '"{}"'.format(name.replace('"', '""').replace("%", "%%"))


def _quote_table(name: str) -> str:
    """The name of a table, with that of its schema if it has one."""
    return ".".join(map(_quote_name, name.split(".")))


COLUMNS = """\
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = %(table)s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attname"""
INDEXES = """\
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = %(table)s::regclass ORDER BY 1"""
EXTENSIONS = "SELECT extname, extversion FROM pg_extension ORDER BY extname"


class PostgresSession(Session):
    """Connections to a database: read only, each call of a limited time.

    Args:
        connector: Its settings.

    Raises:
        ConfigError: The connection string is missing, or is none.
        MissingExtraError: psycopg2 is missing.
        ProviderError: The server does not answer.
    """

    _connector: PgvectorConnector

    def __init__(self, connector: PgvectorConnector) -> None:
        super().__init__(connector)
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

    def _fetch_rows(self, statement: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        with self._wrap_errors():
            connection, is_ready = self._pool.getconn(), False
            try:
                if not connection.autocommit:  # else it was prepared for an earlier call
                    connection.set_session(readonly=True, autocommit=True)
                    with connection.cursor() as cursor:
                        for name, value in self._connector.session.items():
                            text = str(value).lower() if isinstance(value, bool) else str(value)
                            cursor.execute("SELECT set_config(%s, %s, false)", (name, text))
                is_ready = True
                with connection.cursor() as cursor:
                    cursor.execute(statement, parameters)
                    rows: list[tuple[Any, ...]] = cursor.fetchall()
                    return rows
            finally:
                # A connection with some of its settings must serve no other call.
                self._pool.putconn(connection, close=not is_ready)

    @contextmanager
    def _wrap_errors(self) -> Iterator[None]:
        try:
            yield
        except self._library.Error as error:
            text = " ".join(str(error).split())
            text = text if self._password is None else self._password.redact_text(text)
            # psycopg2 names the classes of its errors after the codes of the server.
            classes = {parent.__name__ for parent in type(error).__mro__}
            is_transient = classes & {"OperationalError", "InterfaceError", "PoolError"}
            kind: FailureKind = "connection" if is_transient else "refused"
            kind = "timeout" if "QueryCanceled" in classes else kind
            raise ProviderError(f"{Pgvector.title}: {text}", kind=kind) from None

    async def _search(
        self, body: dict[str, Any], source: str, depth: int, *, texts: bool
    ) -> Sequence[Hit]:
        """Return the hits of a statement; refuse near vectors that an index cut short."""
        statement = body["statement"]
        if require_text_field(self._connector.text_field, texts=texts):
            statement = add_texts(self._connector, statement)
        rows = await self._read_rows(statement, body["parameters"])
        hits = [make_hit(*row) for row in rows]
        settings = self._connector.legs.get(source)
        if settings is None or settings.search != "vector" or settings.sql is not None:
            return hits
        if len(hits) < depth:
            table = _quote_table(self._connector.table)
            field = _quote_name(settings.field or source)
            found = f"SELECT 1 FROM {table} WHERE {field} IS NOT NULL LIMIT {depth}"  # noqa: S608 - names are quoted
            statement = f"SELECT COUNT(*) FROM ({found}) AS vectors"  # noqa: S608
            ((count,),) = await self._read_rows(statement, {})
            if count > len(hits):
                raise ProviderError(
                    f"legs.{source}: an index gave {len(hits)} of {count} hits: raise its limit, "
                    f"such as session: {{hnsw.ef_search: {depth}}}",
                    kind="refused",
                )
        return hits

    async def read_documents(self, _place: JsonValue) -> tuple[Sequence[Hit], JsonValue]:
        """Read a page of the table."""
        connector = self._connector
        text = _quote_name(require_text_field(connector.text_field, texts=True) or "")
        statement = (
            f"SELECT {_quote_name(connector.id_field)}::text, 0, {text}::text "  # noqa: S608 - names are quoted
            f"FROM {_quote_table(connector.table)}"
        )
        return [make_hit(*row) for row in await self._read_rows(statement, {})], None

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Versions of server and pgvector, count of rows, digest of columns and indexes."""
        parameters = {"table": _quote_table(self._connector.table).replace("%%", "%")}
        count = f"SELECT COUNT(*) FROM {_quote_table(self._connector.table)}"  # noqa: S608 - quoted
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

    async def _read_rows(
        self, statement: str, parameters: Mapping[str, Any]
    ) -> list[tuple[Any, ...]]:
        return await call_library(
            Pgvector.title,
            lambda: self._fetch_rows(statement, parameters),
            self._connector.timeout,
        )


def _write_vector(vector: Sequence[float]) -> str:
    return f"[{','.join(map(repr, vector))}]"


#: A setting of a session of PostgreSQL, such as ``hnsw.ef_search``.
SETTING = re.compile(r"[a-z_]+(\.[a-z_]+)?")


class PostgresSource(SearchSource):
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
    def _check_parameters(self) -> PostgresSource:
        if self.search == "text" and "%(vector)s" in (self.sql or ""):
            raise ValueError("sql: %(vector)s needs 'search: vector'")
        return self


@connectors.register
class PgvectorConnector(TableFields, FusedByDialect, RequestConnector, ServerModel):
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

    source = "https://github.com/pgvector/pgvector"
    lists_documents = True
    dialect = Pgvector.name
    has_window_by_source = True

    method: str = "pgvector"
    key: str = "DATABASE_URL"
    table: Annotated[str, Field(min_length=1)]
    legs: Annotated[Mapping[SourceName, PostgresSource], Field(min_length=1)]
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
        session = await asyncio.to_thread(PostgresSession, self)
        try:
            yield session
        finally:
            session.close()

    def source_request(self, source: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The statement of one source, and its parameters."""
        parameters: dict[str, Any] = {"query": query.text}
        if self.legs[source].search == "vector":
            parameters["vector"] = _write_vector(vector_of(query, source))
        return {"statement": source_statement(self, source, depth), "parameters": parameters}

    def fused_request(self, query: PullQuery, depth: int) -> dict[str, Any]:
        """The statement that ``export`` writes over the sources, and its parameters."""
        parameters: dict[str, Any] = {"query": query.text}
        for n, (source, settings) in enumerate(self.legs.items(), 1):
            if settings.search == "vector":
                parameters[f"vector_{n}"] = _write_vector(vector_of(query, source))
        return {"statement": fused_statement(self, depth), "parameters": parameters}

    def describe_score(self, source: str) -> str:
        """The function of a text search, or what is made of a distance."""
        settings = self.legs[source]
        if settings.sql is not None:
            return "score of the user's SELECT"
        if settings.search == "text":
            return settings.rank
        return "1 − cosine distance" if settings.metric == "cosine" else f"−{settings.metric}"
