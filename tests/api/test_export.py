"""``fusion_bench.export``: a system, a tuning result or an experiment's file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fusion_bench
from fusion_bench.errors import ConfigError
from tests import tiny

SYSTEM = fusion_bench.System("s", ["a", "b"], {"method": "rrf", "k": 20}, depth=10, top_k=10)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tiny.make(tmp_path))
    return tmp_path


def test_a_system_at_hand(tmp_path: Path) -> None:
    report = fusion_bench.export(SYSTEM, "elasticsearch")
    assert (report.fidelity, report.system) == ("exact", "s")
    [path] = report.write(tmp_path / "out")
    request = json.loads(path.read_text())
    assert request["retriever"]["rrf"]["rank_constant"] == 20
    path.write_text("")
    with pytest.raises(ConfigError, match="differs"):
        report.write(tmp_path / "out")


@pytest.mark.usefixtures("root")
def test_a_system_on_a_dataset_is_replayed() -> None:
    system = fusion_bench.System("s", ["a", "b"], "rrf_v2")
    report = fusion_bench.export(system, "elasticsearch", dataset="tiny", measures="RR@10")
    [replay] = report.replays
    assert (report.fidelity, replay.dataset) == ("approximate", "tiny")
    assert replay.comparison.measure == "RR@10"


@pytest.mark.usefixtures("root")
def test_an_experiments_file_says_what_the_command_says() -> None:
    report = fusion_bench.export(tiny.EXPERIMENT, "elasticsearch", name="two")
    assert report.name == "e"
    assert [replay.queries for replay in report.replays] == [3]
    with pytest.raises(ConfigError, match=r"measures: .*file"):
        fusion_bench.export(tiny.EXPERIMENT, "elasticsearch", name="two", measures="RR@10")


@pytest.mark.usefixtures("root")
def test_a_method_over_the_runs_of_a_dataset() -> None:
    report = fusion_bench.export("rrf", "langchain", dataset="tiny", replay=True)
    assert report.config is not None
    assert report.config["runs"] == ["a", "b"]
    assert report.replays[0].changed_queries == 0


def test_what_is_no_system() -> None:
    with pytest.raises(ConfigError):
        fusion_bench.export(3, "elasticsearch")
    with pytest.raises(ConfigError, match=r"^to: .*'elastic'"):
        fusion_bench.export(SYSTEM, "elastic")
