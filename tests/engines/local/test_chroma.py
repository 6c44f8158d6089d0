"""Lists of a folder of Chroma."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.studies.pulled_engines.indexes import Settings, build_chroma
from fusion_bench.engines.connectors import PullQuery
from fusion_bench.errors import ConfigError, ProviderError
from tests.engines.local.cases import (
    CORPUS,
    DEPTH,
    ask,
    build,
    check_fingerprint,
    nearest,
    pull_of,
    read,
)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return build_chroma(CORPUS, tmp_path_factory.mktemp("chroma") / "db")


def test_the_leg_has_the_nearest_documents(settings: Settings) -> None:
    connector = build("chroma", settings)
    hits = read(connector, "dense", 20, texts=True)
    assert [hit.document for hit in hits] == nearest(20)
    assert [hit.text for hit in hits] == [CORPUS.texts[hit.document] for hit in hits]
    assert all(hit.score <= 0 for hit in hits)
    assert check_fingerprint(connector)["collection"] == "docs"


def test_a_pull_has_one_list_and_no_replay(settings: Settings, tmp_path: Path) -> None:
    pulled = pull_of("chroma", settings).write(None, tmp_path / "pulled")
    assert pulled.legs() == {"dense": DEPTH}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"path": "."}, "it has no chroma.sqlite3"),
        ({"collection": "other"}, r"no 'other' \(known: docs\)"),
        ({"search_api": True}, "a folder of Chroma has none"),
    ],
)
def test_what_is_not_there_is_named(
    settings: Settings, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        read(build("chroma", settings, **changes), "dense")


def test_no_folder_is_made(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        read(build("chroma", settings, path=str(tmp_path / "new")), "dense")
    assert not (tmp_path / "new").exists()


def test_a_vector_of_another_width_is_refused(settings: Settings) -> None:
    query = PullQuery("q", "text", {"dense": (1.0, 2.0)})
    with pytest.raises(ProviderError, match="dimension"):
        ask(
            build("chroma", settings),
            lambda session: session.read_source("dense", query, depth=3, texts=False),
        )
