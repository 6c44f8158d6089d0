"""Whatever makes a system asks ``RAG_FUSION_V2_ENABLED``, and says where the switch acts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fusion_bench as fb
from fusion_bench.cli import main
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.experiment import replace_v2
from fusion_bench.experiment.system import System

SWITCH = "RAG_FUSION_V2_ENABLED"
ROLES = {"a": ["question"], "b": ["keyword"]}
V2 = {"runs": ["a", "b"], "fusion": "rrf_v2"}
RUNS = {
    name: fb.Run.from_dict(name, {"q": {"d1": 2.0, "d2": 1.0}}, roles=frozenset(roles))
    for name, roles in ROLES.items()
}
QRELS = {"q": {"d1": 1, "d2": 0}}
#: Scores of the first document of both lists: v1 counts neither the weight nor the bonus.
FIRST = 2 / 61


def fuse() -> float:
    return fb.fuse(RUNS, "rrf_v2").to_dict()["q"]["d1"]


def fuse_a_system() -> float:
    return fb.fuse(RUNS, System("x", ["a", "b"], "rrf_v2")).to_dict()["q"]["d1"]


def search() -> float:
    lists = {name: [("d1", 2.0), ("d2", 1.0)] for name in ROLES}
    with fb.Pipeline(V2, roles=ROLES) as pipeline:
        found = pipeline.search_sync("q", lists)
    assert not found.v2_enabled
    return found.documents[0].score


@pytest.mark.parametrize("make", [fuse, fuse_a_system, search])
def test_systems_of_python_follow_the_switch_and_it_is_said(
    make: Callable[[], float], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(SWITCH, "off")
    assert make() == pytest.approx(FIRST)
    assert f"{SWITCH} is off: system " in caplog.text
    monkeypatch.setenv(SWITCH, "maybe")
    with pytest.raises(ConfigError, match=f"{SWITCH}: 'maybe' "):
        make()


def test_a_comparison_of_python_says_what_the_switch_was(monkeypatch: pytest.MonkeyPatch) -> None:
    systems: Any = {"v1": "rrf", "v2": "rrf_v2"}
    for value in (True, False):
        monkeypatch.setenv(SWITCH, str(value))
        report = fb.compare(QRELS, RUNS, systems=systems, baseline="v1").report
        assert report.provenance.v2_enabled is value
        [collection] = report.collections
        [v2] = [system for system in collection.systems if system.name == "v2"]
        assert v2.config is not None
        assert v2.config["fusion"]["method"] == ("rrf_v2" if value else "rrf")


def test_the_command_fuse_says_that_the_switch_is_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(SWITCH, "off")
    for name in ROLES:
        Path(f"{name}.trec").write_text("q Q0 d1 1 2.0 x\nq Q0 d2 2 1.0 x\n")
    assert main(["fuse", "a.trec", "b.trec", "--method", "rrf_v2", "--out", "o.trec"]) == 0
    score = float(Path("o.trec").read_text().split()[4])
    assert score == pytest.approx(FIRST)
    assert f"{SWITCH} is off: system 'rrf_v2' " in caplog.text


def test_stages_and_the_fusions_of_a_policy_are_replaced_too() -> None:
    policy = {"method": "overlap_rules", "threshold": 0.5, "below": {"fusion": "rrf_v2"}}
    stage = {"name": "inner", **V2}
    given = System(
        "x", ["inner", "b"], stages={"inner": stage}, policy=policy,
    )  # fmt: skip
    plain = replace_v2(given)
    assert plain.stages is not None
    assert plain.stages["inner"].fusion.method == "rrf"
    assert plain.policy is not None
    variant = plain.policy.model_dump()["below"]
    assert (variant["fusion"]["method"], variant["weights"]) == ("rrf", None)
    assert replace_v2(plain) == plain
