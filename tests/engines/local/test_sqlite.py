"""Lists of a real SQLite."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from benchmarks.studies.pulled_engines.indexes import Settings, build_sqlite
from fusion_bench.engines.connectors import connectors
from fusion_bench.errors import ConfigError, ProviderError
from tests.engines.local.cases import CORPUS, TEXT, build, check_fingerprint, pull_of, read


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return build_sqlite(CORPUS, tmp_path / "docs.db")


def test_the_leg_has_the_order_of_bm25(settings: Settings) -> None:
    hits = read(build("sqlite", settings), "fts5", texts=True)
    with closing(sqlite3.connect(settings["path"])) as database:
        statement = "SELECT id, body, -rank FROM docs WHERE docs MATCH ? ORDER BY rank LIMIT 50"
        rows = database.execute(statement, [" OR ".join(TEXT.split())]).fetchall()
    assert [(hit.document, hit.text, hit.score) for hit in hits] == rows


def test_all_words_or_one(settings: Settings) -> None:
    both = build("sqlite", settings, legs={"fts5": {"operator": "and"}})
    words = set(TEXT.split())
    documents = {hit.document for hit in read(both, "fts5", 500)}
    assert documents == {name for name, text in CORPUS.texts.items() if words <= set(text.split())}
    assert len(documents) < len(read(build("sqlite", settings), "fts5", 500))


def test_fields_and_weights(tmp_path: Path) -> None:
    path = tmp_path / "two.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE VIRTUAL TABLE docs USING fts5(id UNINDEXED, title, body)")
        rows = [("a", "red", "blue"), ("b", "blue", "red"), ("c", "green", "green")]
        database.executemany("INSERT INTO docs VALUES (?, ?, ?)", rows)
        database.commit()
    legs = {
        "title": {"fields": ["title"]},
        "body first": {"weights": {"body": 3}},
    }
    legs = {name.replace(" ", "-"): leg for name, leg in legs.items()}
    connector = build("sqlite", {"path": str(path), "table": "docs", "legs": legs})
    assert [hit.document for hit in read(connector, "title", text="red")] == ["a"]
    assert [hit.document for hit in read(connector, "body-first", text="red")] == ["b", "a"]


@pytest.mark.parametrize("text", ['" OR', "NEAR(", "-a * b:c ^d", '"""', "\0", "a\0b", "'; --"])
def test_no_word_of_a_query_is_an_operator(settings: Settings, text: str) -> None:
    assert read(build("sqlite", settings), "fts5", text=text) == ()


def test_a_fusion_is_refused(settings: Settings) -> None:
    with pytest.raises(ConfigError, match="fused: SQLite"):
        build("sqlite", settings, fused={"method": "rrf"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"table": "other"}, "there is no table 'other'"),
        ({"id_field": "key"}, r"no column 'key' \(known: id, body\)"),
        ({"legs": {"fts5": {"weights": {"title": 2}}}}, "no column 'title'"),
    ],
)
def test_what_is_not_there_is_named(
    settings: Settings, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        read(build("sqlite", settings, **changes), "fts5")


def test_no_database_is_made(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match=r"new\.db: unable"):
        read(build("sqlite", settings, path=str(tmp_path / "new.db")), "fts5")
    assert not (tmp_path / "new.db").exists()


def test_it_fuses_nothing(settings: Settings) -> None:
    with pytest.raises(ConfigError, match="fused"):
        connectors.build({"method": "sqlite", **settings, "fused": {"method": "rrf"}})


def test_the_fingerprint_changes_with_the_table(settings: Settings) -> None:
    connector = build("sqlite", settings)
    check_fingerprint(connector)
    with closing(sqlite3.connect(settings["path"])) as database:
        database.execute("INSERT INTO docs VALUES ('new', 'text')")
        database.commit()
    with pytest.raises(AssertionError):
        check_fingerprint(connector)


def test_a_pull_has_one_list(settings: Settings, tmp_path: Path) -> None:
    pulled = pull_of("sqlite", settings).write(None, tmp_path / "pulled")
    assert [*pulled.legs()] == ["fts5"]
