"""``eval --details-json``: the file, the systems that it details, and names that are wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fusion_bench.cli import main
from tests import tiny
from tests.tiny import EXPERIMENT

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tiny.make(tmp_path))
    return tmp_path


def test_the_file_is_written_where_it_is_asked_for(root: Path, capsys: Capture) -> None:
    path = root / "reports/e/details.json"
    assert main(("eval", EXPERIMENT, "--no-plots", "--detail", "two")) == 0
    assert not path.exists()
    assert main(("eval", EXPERIMENT, "--no-plots", "--details-json")) == 0
    assert "details.json" in "".join(capsys.readouterr())
    [collection] = json.loads(path.read_text(encoding="utf-8"))["collections"]
    assert collection["detailed"] == ["one"]  # it is the best one, too
    command = ("eval", EXPERIMENT, "--no-plots", "--no-html", "--details-json", "--detail", "two")
    assert main(command) == 0
    [collection] = json.loads(path.read_text(encoding="utf-8"))["collections"]
    assert collection["detailed"] == ["one", "two"]
    assert [top["system"] for top in collection["top"]] == ["one", "two"]


def test_an_unknown_system_is_an_error(root: Path, capsys: Capture) -> None:
    assert main(("eval", EXPERIMENT, "--no-plots", "--detail", "tow")) == 2
    text = "".join(capsys.readouterr())
    assert all(part in text for part in ("detail: ", "'tow'", "'two'?"))
    assert not (root / "reports").exists()
