"""The SQL of the legs and of the fused answer; psycopg2 fills in the query and its vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from fusion_bench.engines._dialects.configuration import windows_by_source
from fusion_bench.engines.pgvector.dialect import FILE, Pgvector

if TYPE_CHECKING:
    from fusion_bench.engines.pgvector.connector import PgvectorConnector, PostgresLeg

#: The operator of a distance, and the score that is greater where the distance is smaller.
SCORES: Final[Mapping[str, tuple[str, str]]] = {
    "cosine": ("<=>", "1 - ({})"),
    "inner_product": ("<#>", "-({})"),
    "l2": ("<->", "-({})"),
}
#: Equal scores stand in the order of the tie rule, as the exported statement orders them.
BEST_FIRST: Final = 'ORDER BY hits.score DESC, hits.id COLLATE "C" DESC'


def leg_statement(connector: PgvectorConnector, leg: str, depth: int, *, texts: bool) -> str:
    """The statement of one leg, with the parameters ``query`` and ``vector``."""
    hits = (
        f"SELECT hits.id::text AS id, hits.score::double precision AS score "  # noqa: S608 - names are quoted
        f"FROM ({_select_hits(connector, leg, depth)}) AS hits {BEST_FIRST} LIMIT {depth}"
    )
    return _add_texts(connector, hits) if texts else hits


def fused_statement(connector: PgvectorConnector, depth: int, *, texts: bool) -> str:
    """The statement that ``export`` writes, over the legs; the parameters of each have its number.

    They are ``query``, and ``vector_1`` for the first leg.
    """
    system = connector.fused_system(depth)
    statement = Pgvector.write(system).files[FILE].rstrip().rstrip(";")
    for n, (leg, window) in enumerate(windows_by_source(system).items(), 1):
        select = _select_hits(connector, leg, window).replace("%(vector)s", f"%(vector_{n})s")
        statement = statement.replace(f'FROM "LIST_{n}"', f'FROM ({select}) AS "LIST_{n}"')
    return _add_texts(connector, statement) if texts else statement


def count_statement(connector: PgvectorConnector, leg: str, most: int) -> str:
    """How many documents a search for near vectors could give, up to ``most``."""
    table, field = quote_table(connector.table), quote_name(connector.legs[leg].field or leg)
    rows = f"SELECT 1 FROM {table} WHERE {field} IS NOT NULL LIMIT {most}"  # noqa: S608 - names are quoted
    return f"SELECT COUNT(*) FROM ({rows}) AS vectors"  # noqa: S608 - names are quoted


def _select_hits(connector: PgvectorConnector, leg: str, depth: int) -> str:
    """A SELECT of ``id`` and ``score``; a search for near vectors gives the best ``depth``."""
    settings = connector.legs[leg]
    if settings.sql is not None:
        return settings.sql.rstrip().rstrip(";").replace("%(depth)s", str(depth))
    table, document = quote_table(connector.table), quote_name(connector.id_field)
    field = quote_name(settings.field or leg)
    if settings.search == "text":
        return (
            f"SELECT {document}::text AS id, {settings.rank}({field}, query) AS score "  # noqa: S608 - names are quoted
            f"FROM {table}, (SELECT {_text_query(settings)} AS query) AS words "
            f"WHERE {field} @@ query"
        )
    operator, score = SCORES[settings.metric]
    distance = f"{field} {operator} %(vector)s::vector"
    return (
        f"SELECT {document}::text AS id, {score.format(distance)} AS score FROM {table} "  # noqa: S608 - names are quoted
        f"WHERE {field} IS NOT NULL ORDER BY {distance} LIMIT {depth}"
    )


def _text_query(settings: PostgresLeg) -> str:
    language = settings.language.replace("'", "''").replace("%", "%%")
    words = f"plainto_tsquery('{language}'::regconfig, %(query)s)"
    return words if settings.operator == "and" else f"REPLACE({words}::text, '&', '|')::tsquery"


def _add_texts(connector: PgvectorConnector, hits: str) -> str:
    table, document = quote_table(connector.table), quote_name(connector.id_field)
    text = quote_name(connector.text_field or "")
    return (
        f"SELECT hits.id, hits.score, texts.{text}::text FROM ({hits}) AS hits "  # noqa: S608 - names are quoted
        f"LEFT JOIN {table} AS texts ON texts.{document}::text = hits.id {BEST_FIRST}"
    )


def quote_name(name: str) -> str:
    """An identifier of SQL; psycopg2 takes a single % for a parameter."""
    return '"{}"'.format(name.replace('"', '""').replace("%", "%%"))


def quote_table(name: str) -> str:
    """The name of a table, with that of its schema if it has one."""
    return ".".join(map(quote_name, name.split(".")))
