"""Lists of engines that run from a package, and their own fusions beside our dialects."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import fusion_bench
from benchmarks.studies.pulled_engines import indexes
from benchmarks.studies.pulled_engines.indexes import Settings
from fusion_bench.cli import main
from fusion_bench.engines.connectors import Connector, PullQuery, _sessions, chroma, qdrant
from fusion_bench.engines.connectors.milvus import score_of
from fusion_bench.errors import ConfigError, FusionBenchError, ProviderError
from tests.engines.local.cases import (
    CORPUS,
    DEPTH,
    FIRST,
    TEXT,
    ask,
    build,
    check_fingerprint,
    check_legs,
    check_replays,
    list_texts,
    nearest,
    pull_of,
    read,
)

#: Name of an index → its settings, made once.
Indexes: TypeAlias = Callable[[str], Settings]
#: Name → what makes the index, and its file or folder.
BUILDERS = {
    "chroma": (indexes.build_chroma, "chroma"),
    "lancedb": (indexes.build_lancedb, "lance"),
    "milvus": (indexes.build_milvus, "milvus.db"),
    "edge": (indexes.build_qdrant_edge, "edge"),
    "client": (indexes.build_qdrant_client, "client"),
    "sqlite": (indexes.build_sqlite, "docs.db"),
}
ENGINES = {"edge": "qdrant", "client": "qdrant"}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Indexes:
    folder = tmp_path_factory.mktemp("indexes")

    @cache
    def find(name: str) -> Settings:
        builder, place = BUILDERS[name]
        return builder(CORPUS, folder / place)

    return find


def connect(index: Indexes, name: str, **changes: object) -> Connector:
    return build(ENGINES.get(name, name), index(name), **changes)


@pytest.mark.parametrize("name", ["lancedb", "milvus", "edge", "client"])
def test_each_leg_has_the_order_of_its_search(index: Indexes, name: str) -> None:
    connector = connect(index, name)
    check_legs(connector, "bm25")
    assert name != "milvus" or all(hit.score > 0 for hit in read(connector, "bm25"))


@pytest.mark.parametrize(
    ("name", "fusions"),
    [("lancedb", (0, 1, 2)), ("milvus", (0, 1)), ("edge", (0, 1, 2)), ("client", (1,))],
)
def test_the_dialect_replays_the_fusions(
    index: Indexes, tmp_path: Path, name: str, fusions: tuple[int, ...]
) -> None:
    check_replays(ENGINES.get(name, name), index(name), tmp_path, fusions=fusions)


@pytest.mark.parametrize(("name", "leg"), [("chroma", "dense"), ("sqlite", "fts5")])
def test_a_pull_has_one_list_and_no_replay(
    index: Indexes, tmp_path: Path, name: str, leg: str
) -> None:
    lists = pull_of(name, index(name)).write(None, tmp_path / "pulled").legs()
    assert [*lists] == [leg]
    assert name == "sqlite" or lists == {leg: DEPTH}


def test_legs_of_chroma_and_sqlite_have_their_order(index: Indexes) -> None:
    hits = read(connect(index, "chroma"), "dense", 20, texts=True)
    assert [hit.document for hit in hits] == nearest(20)
    assert [hit.text for hit in hits] == [CORPUS.texts[hit.document] for hit in hits]
    assert all(hit.score <= 0 for hit in hits)
    hits = read(connect(index, "sqlite"), "fts5", texts=True)
    with closing(sqlite3.connect(index("sqlite")["path"])) as database:
        statement = "SELECT id, body, -rank FROM docs WHERE docs MATCH ? ORDER BY rank LIMIT 50"
        rows = database.execute(statement, [" OR ".join(TEXT.split())]).fetchall()
    assert [(hit.document, hit.text, hit.score) for hit in hits] == rows


@pytest.mark.parametrize("name", ["chroma", "lancedb", "edge", "client", "sqlite"])
def test_every_document_is_listed_once(
    index: Indexes, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (_sessions, chroma, qdrant):
        monkeypatch.setattr(module, "PAGE", 200)
    hits = list_texts(connect(index, name))
    assert len(hits) == len(CORPUS.texts)
    assert {hit.document: hit.text for hit in hits} == CORPUS.texts


def test_the_share_of_an_index_that_is_searched_is_said(
    index: Indexes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queries = tmp_path / "q.jsonl"
    queries.write_text(f'{{"id": "{FIRST}", "text": "{TEXT}"}}', encoding="utf-8")
    folder = tmp_path / "mine"
    options: dict[str, Any] = {"settings": index("sqlite"), "depth": 5}
    search = ["retrieve", "bm25", "--dataset", str(folder), "--unjudged", "--replace"]

    pulled = fusion_bench.pull("sqlite", queries, folder, texts=True, **options)
    assert any("5 documents" in note and "of 500 " in note for note in pulled.notes)
    assert main(search) == 0
    assert "--all-texts" in capsys.readouterr().out

    options |= {"all_texts": True, "start_over": True}
    pulled = fusion_bench.pull("sqlite", queries, folder, **options)
    assert (pulled.record.documents, pulled.record.all_texts) == (500, True)
    assert main(search) == 0
    out = capsys.readouterr().out
    assert "500 documents" in out
    assert "--all-texts" not in out


@pytest.mark.parametrize(
    ("name", "key", "part"),
    [
        ("chroma", "collection", "docs"),
        ("lancedb", "version", ""),
        ("milvus", "version", "Milvus Lite "),
        ("edge", "version", "Qdrant Edge "),
        ("client", "version", ", local mode"),
        ("sqlite", "table", "docs"),
    ],
)
def test_the_fingerprint_names_what_runs(index: Indexes, name: str, key: str, part: str) -> None:
    value = check_fingerprint(connect(index, name))[key]
    assert value
    assert part in value


FEW = {"must": [{"key": "id", "match": {"any": ["doc-3", "doc-4"]}}]}


@pytest.mark.parametrize(
    ("name", "few"),
    [
        ("lancedb", "id IN ('doc-3', 'doc-4')"),
        ("milvus", 'id in ["doc-3", "doc-4"]'),
        ("client", FEW),
    ],
)
def test_a_filter_holds_for_legs_and_fused_answer(index: Indexes, name: str, few: object) -> None:
    connector = connect(index, name, filter=few, fused={})
    for leg in ("dense", ""):
        assert {hit.document for hit in read(connector, leg)} == {"doc-3", "doc-4"}


#: A vector leg of a column of texts, and two legs of vectors.
WORDS = {"dense": {"search": "vector", "field": "body"}}
TWO = {name: {"search": "vector", "field": "dense"} for name in ("dense", "other")}


@pytest.mark.parametrize(
    ("name", "changes", "error", "message"),
    [
        ("chroma", {"path": "."}, ConfigError, "it"),
        ("chroma", {"path": "new"}, ConfigError, "new"),
        ("chroma", {"collection": "other"}, ConfigError, r"'other' \(known: docs\)"),
        ("chroma", {"search_api": True}, ConfigError, "search_api: "),
        ("lancedb", {"path": "new"}, ConfigError, "no folder .*new"),
        ("lancedb", {"table": "other"}, ProviderError, "'other' was"),
        ("lancedb", {"id_field": "other"}, ProviderError, "field named other"),
        ("lancedb", {"filter": "other = 1"}, ProviderError, "field named other"),
        ("lancedb", {"legs": WORDS}, ProviderError, "LanceDB"),
        ("lancedb", {"legs": TWO, "fused": {}}, ConfigError, "given vector, vector"),
        ("milvus", {"path": "other.db"}, ConfigError, "no database"),
        ("milvus", {"collection": "other"}, ConfigError, r"'other' \(known: docs\)"),
        ("milvus", {"legs": {"x": {"field": "other"}}}, ConfigError, "'other'"),
        ("milvus", {"fused": {"method": "weighted"}}, ConfigError, "'bm25'.*has BM25"),
        ("client", {"path": "."}, ConfigError, "no edge_config"),
        ("client", {"collection": "other"}, ConfigError, "other not found"),
        ("client", {"legs": {"x": {"model": "qdrant/o"}}}, ConfigError, "only qdrant/bm25"),
        ("edge", {"filter": FEW}, ConfigError, "^filter: .*Qdrant Edge"),
        ("sqlite", {"table": "other"}, ConfigError, "no table 'other'"),
        ("sqlite", {"id_field": "key"}, ConfigError, r"'key' \(known: id"),
        ("sqlite", {"legs": {"x": {"weights": {"title": 2}}}}, ConfigError, "'title'"),
        ("sqlite", {"fused": {"method": "rrf"}}, ConfigError, "fused: SQLite"),
        ("sqlite", {"path": "new.db"}, ProviderError, r"new\.db: unable"),
    ],
)
def test_what_is_not_there_is_named_and_not_made(
    index: Indexes,
    name: str,
    changes: dict[str, Any],
    error: type[FusionBenchError],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leg = next(iter({**index(name), **changes}["legs"]))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message) as caught:
        read(connect(index, name, **changes), leg)
    assert not [*tmp_path.iterdir()]
    if isinstance(caught.value, ProviderError):
        assert caught.value.kind == "refused"
        assert "\n" not in str(caught.value)


def test_texts_of_lancedb_need_their_column(index: Indexes) -> None:
    with pytest.raises(ConfigError, match="set text_field"):
        read(connect(index, "lancedb", text_field=None), "bm25", texts=True)
    (hit,) = read(connect(index, "lancedb", fused={}), "", 1, texts=True)
    assert hit.text == CORPUS.texts[hit.document]


def test_a_vector_of_another_width_is_refused_by_chroma(index: Indexes) -> None:
    query = PullQuery("q", "text", {"dense": (1.0, 2.0)})
    with pytest.raises(ProviderError, match="dimension"):
        ask(
            connect(index, "chroma"),
            lambda session: session.read_source("dense", query, depth=3, texts=False),
        )


@pytest.mark.parametrize(
    ("metric", "score"), [("COSINE", -2.0), ("L2", 2.0), ("BM25", 2.0), ("", -2.0)]
)
def test_a_distance_of_milvus_has_its_sign_turned(metric: str, score: float) -> None:
    assert score_of(-2.0, metric) == score


@pytest.mark.parametrize("name", ["edge", "client"])
def test_a_folder_of_qdrant(index: Indexes, name: str) -> None:
    named = read(connect(index, name), "dense", 3)
    numbered = read(connect(index, name, id_field=None), "dense", 3)
    assert [f"doc-{hit.document}" for hit in numbered] == [hit.document for hit in named]
    for _ in range(2):  # the folder is not left locked
        with pytest.raises(ConfigError, match="no vector 'other'"):
            read(connect(index, name, legs={"x": {"using": "other"}}), "x")
    # It is asked one question at a time by default.
    server = {"path": None, "url": "http://localhost:6333"}
    given: tuple[dict[str, Any], ...] = ({}, {"concurrency": 3}, server)
    assert [connect(index, name, **each).concurrency for each in given] == [1, 3, 4]


def test_sqlite_matches_all_words_or_one(index: Indexes) -> None:
    words = set(TEXT.split())
    both = connect(index, "sqlite", legs={"fts5": {"operator": "and"}})
    documents = {hit.document for hit in read(both, "fts5", 500)}
    assert documents == {name for name, text in CORPUS.texts.items() if words <= set(text.split())}
    assert len(documents) < len(read(connect(index, "sqlite"), "fts5", 500))


def test_fields_and_weights_of_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "two.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE VIRTUAL TABLE docs USING fts5(id UNINDEXED, title, body)")
        rows = [("a", "red", "blue"), ("b", "blue", "red"), ("c", "green", "green")]
        database.executemany("INSERT INTO docs VALUES (?, ?, ?)", rows)
        database.commit()
    legs = {"title": {"fields": ["title"]}, "body-first": {"weights": {"body": 3}}}
    connector = build("sqlite", {"path": str(path), "table": "docs", "legs": legs})
    assert [hit.document for hit in read(connector, "title", text="red")] == ["a"]
    assert [hit.document for hit in read(connector, "body-first", text="red")] == ["b", "a"]


@pytest.mark.parametrize("text", ['" OR', "NEAR(", "-a * b:c ^d", '"""', "\0", "a\0b", "'; --"])
def test_no_word_of_a_query_is_an_operator_of_sqlite(index: Indexes, text: str) -> None:
    assert read(connect(index, "sqlite"), "fts5", text=text) == ()


def test_the_fingerprint_of_sqlite_changes_with_the_table(tmp_path: Path) -> None:
    settings = indexes.build_sqlite(CORPUS, tmp_path / "docs.db")
    connector = build("sqlite", settings)
    check_fingerprint(connector)
    with closing(sqlite3.connect(settings["path"])) as database:
        database.execute("INSERT INTO docs VALUES ('new', 'text')")
        database.commit()
    with pytest.raises(AssertionError):
        check_fingerprint(connector)
