"""A system may declare the family of a model that works in it; the judge's own is circular."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.experiment.system import System
from tests.judge_project import EXPERIMENT, make
from tests.tiny import edit

Capture = pytest.CaptureFixture[str]
GATE = ("gate", EXPERIMENT, "--no-html")
UPDATE = (*GATE, "--update", "--reason", "first")
CIRCULAR = "The judge is of the family gpt, and so is both (system)"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(make(tmp_path, "kind: machine, family: gpt"))
    edit(tmp_path, EXPERIMENT, "both: {runs", "both: {family: GPT, runs")
    return tmp_path


def show(capsys: Capture, *words: str) -> str:
    """What a command prints, on one line."""
    capsys.readouterr()
    assert main(words) == 0
    return " ".join(capsys.readouterr().out.split())


def test_reports(root: Path, capsys: Capture) -> None:
    assert CIRCULAR in show(capsys, "eval", EXPERIMENT, "--no-plots")
    for name in ("report.md", "report.html"):
        text = (root / "reports/mine" / name).read_text(encoding="utf-8")
        assert CIRCULAR in " ".join(text.replace("\\", "").split())
    [collection] = json.loads((root / "reports/mine/report.json").read_text())["collections"]
    assert collection["judge"]["related_systems"] == ["both"]
    assert CIRCULAR in show(capsys, "compare", "reports/mine")
    assert CIRCULAR in show(capsys, "tune", EXPERIMENT, "--no-plots")
    assert CIRCULAR in show(capsys, "diagnose", EXPERIMENT)
    words = ("explain", "q0", "--experiment", EXPERIMENT, "--system")
    assert CIRCULAR in show(capsys, *words, "both")
    assert CIRCULAR in show(capsys, *words, "both", "--json")
    assert CIRCULAR not in show(capsys, *words, "a")
    assert CIRCULAR not in show(
        capsys,
        "eval",
        EXPERIMENT,
        "--no-plots",
        "--set",
        "baseline=a",
        "--set",
        "systems.both.family=llama",
    )


def test_estimates_of_judges(root: Path, capsys: Capture) -> None:
    shared = "Judge 'qrels' is of the family gpt, and so is both (system)"
    assert shared in show(capsys, "grades", "sensitivity", EXPERIMENT)
    edit(root, "datasets/mine/dataset.yaml", "kind: human}", "kind: human, sample: random}")
    words = ("grades", "estimate", EXPERIMENT, "--people", "people", "--machine", "qrels")
    assert shared in show(capsys, *words)


def test_the_gate_refuses_it(root: Path, capsys: Capture) -> None:
    """Also where only the system of the baseline is of the judge's family."""
    assert main(UPDATE) == 2
    assert CIRCULAR in " ".join(capsys.readouterr().err.split())
    edit(root, "datasets/mine/dataset.yaml", "family: gpt", "family: llama")
    assert main(UPDATE) == 0
    edit(root, EXPERIMENT, "family: GPT, ", "")
    edit(root, "datasets/mine/dataset.yaml", "family: llama", "family: gpt")
    capsys.readouterr()
    assert main(GATE) == 2
    assert CIRCULAR in " ".join(capsys.readouterr().err.split())


def test_stages_and_names() -> None:
    """A stage's family is found; a system without one is written as before."""
    from fusion_bench.checks.judges import find_related_systems

    plain = System("plain", ["a"])
    inner = System("outer", ["first"], stages={"first": {"runs": ["a"], "family": "Gpt"}})
    assert find_related_systems([plain, inner], "gpt") == ("outer",)
    assert find_related_systems([plain, inner], None) == ()
    assert "family" not in plain.resolved_config
