"""What PostgreSQL gives for the SQL that is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import psycopg2  # type: ignore[import-untyped]
import pytest

from fusion_bench.engines.dialects.sql import Pgvector
from fusion_bench.experiment.system import System
from tests.engines.cases import (
    QUERIES,
    ROLES,
    Lists,
    align_lists,
    random_lists,
    random_system,
    ranked_lists,
    scores,
)
from tests.postgres import running_postgres

LISTS = {
    "bm25": {"q": {"a": 4.0, "b": 3.0, "c": 2.0}},
    "dense": {"q": {"b": 0.5, "d": 0.5}},
}


Connection: TypeAlias = Any


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    """To a real PostgreSQL."""
    with running_postgres() as url:
        opened = psycopg2.connect(url)
        opened.autocommit = True
        yield opened
        opened.close()


def query_database(
    connection: Connection, system: System, lists: Lists, query: str
) -> dict[str, float]:
    """Document → score, best first, of the statement over tables that hold the lists."""
    with connection.cursor() as cursor:
        for n, name in enumerate(system.runs, 1):
            cursor.execute(
                f'DROP TABLE IF EXISTS "LIST_{n}"; '
                f'CREATE TABLE "LIST_{n}" (id varchar, score double precision)'
            )
            rows = lists[name].get(query, {}).items()
            cursor.executemany(f'INSERT INTO "LIST_{n}" VALUES (%s, %s)', list(rows))  # noqa: S608 - a number
        cursor.execute(Pgvector.write(system).files["search.sql"])
        return {str(document): float(score) for document, score in cursor.fetchall()}


def test_postgresql_ranks_as_the_dialect_does(
    connection: Connection,
) -> None:
    checked = 0
    for seed in range(12):
        translated = Pgvector.translate(random_system(seed), ROLES).system
        if translated is None:
            continue
        everything = translated.model_copy(update={"top_k": None})
        lists = random_lists(seed)
        for query, ours in ranked_lists(everything, align_lists(lists)).items():
            if query not in QUERIES:
                continue
            theirs = query_database(connection, everything, lists, query)
            assert theirs == pytest.approx(ours)
            assert [ours[document] for document in theirs] == pytest.approx([*ours.values()])
            checked += 1
    assert checked > 20


def test_awkward_names_in_postgresql(connection: Connection) -> None:
    names = ["it's", 'a "b" \\ -- ;\n/* ユ $1']
    system = System("s", names, dialect="pgvector", fusion={"weights": {names[0]: 2.0}})
    lists = dict(zip(names, LISTS.values(), strict=True))
    assert query_database(connection, system, lists, "q") == pytest.approx(scores(system, lists))
