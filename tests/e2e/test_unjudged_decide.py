"""Where unjudged documents decide, tune and gate say so: on the page, in JSON, by the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from fusion_bench.cli import main
from tests import unjudged_project as project
from tests.tiny import edit
from tests.unjudged_project import EXPERIMENT

Capture = pytest.CaptureFixture[str]
#: Of the list that the pool does not know: over judged documents only, and filled.
BETTER = 0.25


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(project.make(tmp_path))
    return tmp_path


def test_tune(root: Path, capsys: Capture) -> None:
    """The list of the pool seems to gain; the other is better on the documents judged."""
    assert main(("tune", EXPERIMENT, "--no-plots", "--out", "out")) == 3
    assert "fusion-bench dataset unjudged out/tuned.yaml" in capsys.readouterr().out
    report = json.loads((root / "out/tuning.json").read_text())
    assert report["verdict"] == "unjudged decide"
    assert report["held_out"]["low"] > 0
    unjudged = report["unjudged"]
    assert unjudged["high"] < 0
    assert unjudged["filled"] < 0
    tuned = yaml.safe_load((root / "out/tuned.yaml").read_text())["description"]
    assert "unjudged decide" in tuned
    assert "over judged documents only -0." in tuned


def test_tune_with_complete_judgments(root: Path) -> None:
    edit(root, project.DATASET, "name: mine", "name: mine\njudgments: complete")
    assert main(("tune", EXPERIMENT, "--no-plots", "--out", "out")) == 0
    report = json.loads((root / "out/tuning.json").read_text())
    assert (report["verdict"], report["unjudged"]) == ("ship", None)


def test_gate(root: Path, capsys: Capture) -> None:
    assert main(("gate", EXPERIMENT, "--update", "--reason", "first")) == 0
    edit(root, EXPERIMENT, "system: pooled", "system: fresh")
    capsys.readouterr()
    assert main(("gate", EXPERIMENT, "--json")) == 3
    [check] = json.loads(capsys.readouterr().out)["checks"]
    assert check["status"] == "unjudged decide"
    assert check["difference"] == pytest.approx(-1 / 3)
    assert check["unjudged"]["judged_only"] == pytest.approx(BETTER)
    assert check["unjudged"]["filled"] == pytest.approx(BETTER)
    assert check["unjudged"]["low"] > 0
    assert main(("gate", EXPERIMENT)) == 3
    out = capsys.readouterr().out
    assert "over judged documents only +0.2500" in out
    assert "unjudged filled +0.2500" in out
    assert f"fusion-bench dataset unjudged {EXPERIMENT}" in out
