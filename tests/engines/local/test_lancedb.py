"""Lists of a real LanceDB, and its own rerankers beside our dialect."""

from __future__ import annotations

import gzip
import json
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.studies.pulled_engines.indexes import Settings, build_lancedb
from fusion_bench.cli import main
from fusion_bench.errors import ConfigError, ProviderError
from tests.child_processes import running_child
from tests.engines.local.cases import (
    CORPUS,
    build,
    check_fingerprint,
    check_legs,
    check_replays,
    pull_of,
    read,
)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return build_lancedb(CORPUS, tmp_path_factory.mktemp("lancedb") / "db")


def test_each_leg_has_the_order_of_its_search(settings: Settings) -> None:
    check_legs(build("lancedb", settings), "bm25")
    assert check_fingerprint(build("lancedb", settings))["version"]


def test_the_dialect_replays_every_reranker(settings: Settings, tmp_path: Path) -> None:
    check_replays("lancedb", settings, tmp_path)


def test_the_fused_answer_has_texts(settings: Settings) -> None:
    (hit,) = read(build("lancedb", settings, fused={}), "", 1, texts=True)
    assert hit.text == CORPUS.texts[hit.document]


def test_a_filter_holds_for_legs_and_fused_answer(settings: Settings) -> None:
    connector = build("lancedb", settings, filter="id IN ('doc-3', 'doc-4')", fused={})
    for leg in ("dense", ""):
        assert {hit.document for hit in read(connector, leg)} == {"doc-3", "doc-4"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"table": "other"}, "'other' was not found"),
        ({"id_field": "other"}, "No field named other"),
        ({"filter": "other = 1"}, "No field named other"),
    ],
)
def test_what_is_not_there_is_named(
    settings: Settings, changes: dict[str, str], message: str
) -> None:
    with pytest.raises(ProviderError, match=message) as caught:
        read(build("lancedb", settings, **changes), "dense")
    assert caught.value.kind == "refused"
    assert "\n" not in str(caught.value)


def test_no_database_is_made(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no folder .*new"):
        read(build("lancedb", settings, path=str(tmp_path / "new")), "dense")
    assert not (tmp_path / "new").exists()


def test_texts_need_the_name_of_their_column(settings: Settings) -> None:
    with pytest.raises(ConfigError, match="set text_field"):
        read(build("lancedb", settings, text_field=None), "bm25", texts=True)


def test_a_hybrid_search_needs_a_pair(settings: Settings) -> None:
    legs = dict.fromkeys(("dense", "other"), settings["legs"]["dense"])
    with pytest.raises(ConfigError, match=r"'search: text'.*given vector, vector"):
        build("lancedb", settings, legs=legs, fused={})


def test_hits_in_the_wrong_width_are_refused(settings: Settings) -> None:
    leg = {"search": "vector", "field": "body"}
    with pytest.raises(ProviderError):
        read(build("lancedb", settings, legs={"dense": leg}), "dense")


def test_a_killed_pull_asks_only_what_is_missing(settings: Settings, tmp_path: Path) -> None:
    pull = pull_of("lancedb", settings)
    whole = pull.write({}, tmp_path / "whole").dataset
    words, dataset = ["pull", *pull.prepare({}, tmp_path / "killed")], tmp_path / "killed/dataset"
    # At this rate the 90 answers take 45 seconds.
    program = [sys.executable, "-m", "fusion_bench", *words, "--requests-per-minute=120"]
    with running_child(program, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        while count_answers(dataset) < 5:
            assert process.poll() is None, "it ended before it was killed"
            time.sleep(0.05)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    stored = count_answers(dataset)
    assert main(words) == 0
    record = json.loads((dataset / "pull.json").read_text(encoding="utf-8"))
    assert record["asked"] == 3 * len(CORPUS.queries) - stored
    assert 5 <= stored < 3 * len(CORPUS.queries)
    for run in ("bm25", "dense", "engine-fused"):
        killed, uninterrupted = (
            gzip.decompress((folder / f"runs/{run}.trec.gz").read_bytes())
            for folder in (dataset, whole)
        )
        assert killed == uninterrupted


def count_answers(dataset: Path) -> int:
    """How many answers an unfinished pull has stored."""
    path = dataset / ".pull" / "answers.sqlite"
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path)) as store:
        try:
            (count,) = store.execute("SELECT COUNT(*) FROM answers").fetchone()
        except sqlite3.OperationalError:  # it is being made
            return 0
    return int(count)
