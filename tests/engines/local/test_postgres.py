"""Lists of a real PostgreSQL with pgvector, and the exported SQL beside our dialect."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import psycopg2  # type: ignore[import-untyped]
import pytest

import fusion_bench as fb
from benchmarks.studies.pulled_engines.indexes import Settings, build_postgres
from fusion_bench.engines.connectors import EngineSession
from fusion_bench.engines.connectors.pgvector import (
    PgvectorConnector,
    add_texts,
    fused_statement,
    source_statement,
)
from fusion_bench.engines.dialects.sql import Pgvector
from fusion_bench.errors import ConfigError, ProviderError
from fusion_bench.experiment.collapse import Collapse
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
from tests.engines.local.cases import (
    CORPUS,
    ask,
    build,
    check_fingerprint,
    check_legs,
    check_replays,
    nearest,
    read,
)
from tests.postgres import running_postgres


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running_postgres() as url:
        yield url


@pytest.fixture(scope="module")
def index(address: str) -> Settings:
    return build_postgres(CORPUS, address)


@pytest.fixture
def settings(index: Settings, address: str, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("DATABASE_URL", address)
    return index


def leg(**settings: object) -> dict[str, Any]:
    return {"legs": {"x": settings}}


def test_each_leg_has_the_order_of_its_search(settings: Settings) -> None:
    check_legs(build("pgvector", settings), "fulltext")
    assert check_fingerprint(build("pgvector", settings))["pgvector"]


def test_the_dialect_replays_the_exported_statement(settings: Settings, tmp_path: Path) -> None:
    check_replays("pgvector", settings, tmp_path)


def test_selects_and_fused_answers_have_their_documents(settings: Settings) -> None:
    sql = (
        "SELECT id, -(dense <-> %(vector)s::vector) AS score FROM docs "
        "WHERE body NOT LIKE '%%qqq%%' ORDER BY score DESC LIMIT %(depth)s;"
    )
    hits = read(build("pgvector", settings, **leg(search="vector", sql=sql)), "x", 7)
    assert [hit.document for hit in hits] == nearest(7)
    hits = read(build("pgvector", settings, fused={}), "", 5, texts=True)
    assert [hit.text for hit in hits] == [CORPUS.texts[hit.document] for hit in hits]


@pytest.mark.parametrize("metric", ["inner_product", "l2"])
def test_vectors_of_length_one_have_one_order(settings: Settings, metric: str) -> None:
    connector = build("pgvector", settings, **leg(search="vector", field="dense", metric=metric))
    assert [hit.document for hit in read(connector, "x", 20)] == nearest(20)


@pytest.mark.parametrize("rank", ["ts_rank", "ts_rank_cd"])
def test_all_words_of_the_query(settings: Settings, rank: str) -> None:
    connector = build("pgvector", settings, **leg(search="text", field="words", rank=rank))
    first, *_ = CORPUS.texts.values()
    words = first.split()[:2]
    hits = read(connector, "x", 500, text=" ".join(words))
    assert {hit.document for hit in hits} == {
        name for name, text in CORPUS.texts.items() if set(words) <= set(text.split())
    }


def test_a_list_that_an_index_cut_short_is_refused(settings: Settings, address: str) -> None:
    connection = psycopg2.connect(address)
    with connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE near AS SELECT id, dense FROM docs")
        cursor.execute("CREATE INDEX ON near USING hnsw (dense vector_cosine_ops)")
    connection.close()
    near = {"table": "near", "text_field": None, **leg(search="vector", field="dense")}
    use_index = {"enable_seqscan": False, "enable_sort": False}
    with pytest.raises(ProviderError, match=r"40 of 50 .*hnsw\.ef_search: 50"):
        read(build("pgvector", settings, **near, session=use_index), "x", 50)
    enough = {**use_index, "hnsw.ef_search": 50}
    assert len(read(build("pgvector", settings, **near, session=enough), "x", 50)) == 50


def test_names_of_columns_and_tables_are_quoted() -> None:
    name = 'a"; DROP TABLE docs; --%'
    legs = {"fts": {"search": "text", "field": name}, "dense": {"search": "vector", "field": name}}
    connector = build(
        "pgvector", {"table": f"public.{name}", "id_field": name, "text_field": name}, legs=legs
    )
    assert isinstance(connector, PgvectorConnector)
    quoted = '"a""; DROP TABLE docs; --%%"'
    for leg_name in legs:
        statement = add_texts(connector, source_statement(connector, leg_name, 5))
        assert statement.replace(quoted, "").count("DROP") == 0
        assert f'"public".{quoted}' in statement


def test_no_list_of_the_statement_is_left_to_replace(settings: Settings) -> None:
    connector = build("pgvector", settings, fused={"method": "convex"})
    assert isinstance(connector, PgvectorConnector)
    statement = fused_statement(connector, 10)
    assert statement.count('AS "LIST_') == 2
    assert statement.count("%(vector_2)s") == 2
    assert "%(vector)s" not in statement


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"table": "other"}, 'relation "other"'),
        ({"id_field": "key"}, 'column "key"'),
        (leg(search="text", field="body2"), 'column "body2"'),
        (leg(search="text", field="words", language="none"), '"none"'),
        (leg(search="text", sql="DELETE FROM docs RETURNING id, 1 AS score"), "syntax error"),
        (leg(search="text", sql="SELECT id, pg_advisory_lock(1) FROM docs"), "score"),
        ({"session": {"no.such_setting": "x"}, **leg(search="text", sql="SELECT 1")}, "id"),
    ],
)
def test_what_the_server_refuses_is_one_line(
    settings: Settings, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ProviderError, match=message) as caught:
        read(build("pgvector", settings, **changes), "fulltext" if "legs" not in changes else "x")
    assert caught.value.kind == "refused"
    assert "\n" not in str(caught.value)


def test_statements_that_only_read_in_time(settings: Settings, address: str) -> None:
    slow = leg(search="text", sql="SELECT id, 1 AS score FROM docs, pg_sleep(60)")
    with pytest.raises(ProviderError) as caught:
        read(build("pgvector", settings, timeout=0.2, **slow), "x")
    assert caught.value.kind == "timeout"
    sql = "SELECT id, setval('numbers', 7) AS score FROM docs"
    connection = psycopg2.connect(address)
    with connection, connection.cursor() as cursor:
        cursor.execute("CREATE SEQUENCE numbers")
    connection.close()
    with pytest.raises(ProviderError, match="read-only transaction"):
        read(build("pgvector", settings, **leg(search="text", sql=sql)), "x")


def test_a_connection_with_some_of_its_settings_serves_no_call(settings: Settings) -> None:
    wrong = {"hnsw.ef_search": 50, "statement_timeout": "soon"}
    connector = build("pgvector", settings, session=wrong)

    async def ask_twice(session: EngineSession) -> None:
        for _ in range(2):
            with pytest.raises(ProviderError, match="statement_timeout"):
                await session.read_fingerprint()

    ask(connector, ask_twice)


def test_a_vector_in_a_select_needs_a_search_by_vector() -> None:
    with pytest.raises(ConfigError, match=r"needs 'search: vector'"):
        build("pgvector", {"table": "docs"}, **leg(search="text", sql="SELECT %(vector)s"))


@pytest.mark.parametrize("name", ["hnsw.ef search", "a;b", "A", ""])
def test_a_setting_has_a_name(name: str) -> None:
    with pytest.raises(ConfigError, match="setting of PostgreSQL"):
        build("pgvector", {"table": "docs"}, **leg(search="text"), session={name: 1})


def test_the_password_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "hunter2-correct-horse"  # noqa: S105 - none
    connector = build("pgvector", {"table": "docs"}, **leg(search="text"), timeout=5)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    with pytest.raises(ConfigError, match="DATABASE_URL"):
        read(connector, "x")
    monkeypatch.setenv("DATABASE_URL", f"postgres//me {secret}")
    with pytest.raises(ConfigError, match="no connection string") as broken:
        read(connector, "x")
    monkeypatch.setenv("DATABASE_URL", f"postgresql://me:{secret}@127.0.0.1:1/{secret}")
    with pytest.raises(ProviderError) as refused:
        read(connector, "x")
    assert refused.value.kind == "connection"
    for error in (broken.value, refused.value):
        assert secret not in str(error)
    with pytest.raises(ConfigError, match="not shown"):
        build(
            "pgvector", {"table": "docs"}, **leg(search="text"), key=f"postgresql://me:{secret}@h"
        )


# ── what PostgreSQL gives for the SQL that is written


LISTS = {
    "bm25": {"q": {"a": 4.0, "b": 3.0, "c": 2.0}},
    "dense": {"q": {"b": 0.5, "d": 0.5}},
}


Connection: TypeAlias = Any


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
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
                f'CREATE TABLE "LIST_{n}" (id varchar, score double precision, parent varchar)'
            )
            hits = lists[name].get(query, {}).items()
            rows = [(document, score, document.split("#")[0]) for document, score in hits]
            cursor.executemany(f'INSERT INTO "LIST_{n}" VALUES (%s, %s, %s)', rows)  # noqa: S608 - a number
        cursor.execute(Pgvector.write(system).files["search.sql"])
        return {str(document): float(score) for document, *_, score in cursor.fetchall()}


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


@pytest.mark.parametrize("collapse", [{"score": "max"}, {"score": "first"}, {"keep": 2}])
@pytest.mark.parametrize("method", ["rrf", "convex"])
def test_postgresql_collapses_chunks_as_the_engine_does(
    connection: Connection, collapse: dict[str, Any], method: str
) -> None:
    random = Random(method)
    for _ in range(8):
        chunks = {
            name: {
                f"d{random.randrange(5)}#{random.randrange(4)}": random.randrange(1, 9) / 8
                for _ in range(random.randrange(1, 14))
            }
            for name in ("bm25", "dense")
        }
        ours = System(
            "s",
            [*chunks],
            {"method": method},
            collapse={"by": {"split": "#"}, **collapse},
            top_k=4,
            depth=9,
        )
        runs = {name: fb.Run.from_dict(name, {"q": hits}) for name, hits in chunks.items()}
        expected = fb.fuse(runs, ours).to_dict()["q"]
        keyed = ours.model_copy(
            update={"collapse": Collapse.model_validate({"by": {"column": "parent"}, **collapse})}
        )
        translation = Pgvector.translate(keyed, ROLES)
        assert translation.fidelity in {"exact", "rank-equivalent"}
        assert translation.system is not None
        lists = {name: {"q": hits} for name, hits in chunks.items()}
        found = [*query_database(connection, translation.system, lists, "q")]
        assert [each.split("#")[0] if "score" in collapse else each for each in found] == [
            *expected
        ]
