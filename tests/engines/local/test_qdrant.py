"""Lists of Qdrant Edge, and of qdrant-client's local mode; their fusions beside our dialect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.studies.pulled_engines.indexes import (
    Settings,
    build_qdrant_client,
    build_qdrant_edge,
)
from fusion_bench.errors import ConfigError
from tests.engines.local.cases import (
    CORPUS,
    build,
    check_fingerprint,
    check_legs,
    check_replays,
    read,
)

BUILDERS = {"edge": build_qdrant_edge, "client": build_qdrant_client}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Settings]:
    folder = tmp_path_factory.mktemp("qdrant")
    return {name: builder(CORPUS, folder / name) for name, builder in BUILDERS.items()}


@pytest.fixture(params=BUILDERS)
def settings(request: pytest.FixtureRequest, folders: dict[str, Settings]) -> Settings:
    return folders[request.param]


def test_each_leg_has_the_order_of_its_search(settings: Settings) -> None:
    check_legs(build("qdrant", settings), "bm25")


@pytest.mark.parametrize(("name", "fusions"), [("edge", (0, 1, 2)), ("client", (1,))])
def test_the_dialect_replays_the_fusions(
    folders: dict[str, Settings], tmp_path: Path, name: str, fusions: tuple[int, ...]
) -> None:
    check_replays("qdrant", folders[name], tmp_path, fusions=fusions)


def test_the_fingerprint_names_what_runs(folders: dict[str, Settings]) -> None:
    versions = {
        name: check_fingerprint(build("qdrant", settings))["version"]
        for name, settings in folders.items()
    }
    assert versions["edge"].startswith("Qdrant Edge ")
    assert versions["client"].endswith(", local mode")


def test_the_id_is_that_of_the_point_by_default(settings: Settings) -> None:
    named = read(build("qdrant", settings), "dense", 3)
    numbered = read(build("qdrant", settings, id_field=None), "dense", 3)
    assert [f"doc-{hit.document}" for hit in numbered] == [hit.document for hit in named]


def test_a_filter_holds_in_the_local_mode_and_is_refused_by_edge(
    folders: dict[str, Settings],
) -> None:
    few = {"must": [{"key": "id", "match": {"any": ["doc-3", "doc-4"]}}]}
    for leg in ("dense", ""):
        hits = read(build("qdrant", folders["client"], filter=few, fused={}), leg)
        assert {hit.document for hit in hits} == {"doc-3", "doc-4"}
    with pytest.raises(ConfigError, match=r"^filter: .*Qdrant Edge"):
        read(build("qdrant", folders["edge"], filter=few), "dense")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"path": "."}, "no edge_config.json.*no meta.json"),
        ({"collection": "other"}, "other not found"),
        ({"legs": {"x": {"model": "qdrant/other"}}}, "only qdrant/bm25 is computed"),
    ],
)
def test_what_is_not_there_is_named(
    folders: dict[str, Settings], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        read(build("qdrant", folders["client"], **changes), "x")


def test_a_vector_that_is_not_there_is_named(settings: Settings) -> None:
    for _ in range(2):  # the folder is not left locked
        with pytest.raises(ConfigError, match="no vector 'other'"):
            read(build("qdrant", settings, legs={"x": {"using": "other"}}), "x")


def test_a_folder_is_asked_one_question_at_a_time_by_default(settings: Settings) -> None:
    assert build("qdrant", settings).concurrency == 1
    assert build("qdrant", settings, concurrency=3).concurrency == 3
    server = {"path": None, "url": "http://localhost:6333"}
    assert build("qdrant", settings, **server).concurrency == 4
