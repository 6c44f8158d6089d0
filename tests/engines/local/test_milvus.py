"""Lists of Milvus Lite, and its rankers beside our dialect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.studies.pulled_engines.indexes import Settings, build_milvus
from fusion_bench.engines.connectors.milvus import score_of
from fusion_bench.errors import ConfigError
from tests.engines.local.cases import (
    CORPUS,
    build,
    check_fingerprint,
    check_legs,
    check_replays,
    read,
)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return build_milvus(CORPUS, tmp_path_factory.mktemp("milvus") / "milvus.db")


def test_each_leg_has_the_order_of_its_search(settings: Settings) -> None:
    connector = build("milvus", settings)
    check_legs(connector, "bm25")
    assert all(hit.score > 0 for hit in read(connector, "bm25"))
    assert check_fingerprint(connector)["version"].startswith("Milvus Lite ")


def test_the_dialect_replays_both_rankers(settings: Settings, tmp_path: Path) -> None:
    check_replays("milvus", settings, tmp_path, fusions=(0, 1))


def test_a_filter_holds_for_legs_and_fused_answer(settings: Settings) -> None:
    connector = build("milvus", settings, filter='id in ["doc-3", "doc-4"]', fused={})
    for leg in ("dense", ""):
        assert {hit.document for hit in read(connector, leg)} == {"doc-3", "doc-4"}


@pytest.mark.parametrize(
    ("metric", "score"), [("COSINE", -2.0), ("L2", 2.0), ("BM25", 2.0), ("", -2.0)]
)
def test_a_distance_has_its_sign_turned(metric: str, score: float) -> None:
    assert score_of(-2.0, metric) == score


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"path": "other.db"}, "no database of Milvus Lite"),
        ({"collection": "other"}, r"no 'other' \(known: docs\)"),
        ({"legs": {"x": {"field": "other"}}}, "field 'other' has no index"),
        ({"fused": {"method": "weighted"}}, "COSINE for leg 'bm25'.*has BM25"),
    ],
)
def test_what_does_not_fit_is_refused(
    settings: Settings, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        read(build("milvus", settings, **changes), "dense")
