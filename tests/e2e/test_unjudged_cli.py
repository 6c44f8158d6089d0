"""Unjudged documents on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fusion_bench.cli import main
from tests import tiny
from tests.tiny import DATASET, EXPERIMENT, edit

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tiny.make(tmp_path))
    return tmp_path


def printed(capsys: Capture, *arguments: str) -> str:
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_what_to_judge_next(capsys: Capture) -> None:
    """Of the split that is evaluated: d8 is second in one, d4 in two."""
    out = printed(capsys, "dataset", "unjudged", EXPERIMENT)
    head, *rows = (line.split("\t") for line in out.splitlines())
    assert head == ["dataset", "query", "document", "best_rank", "systems"]
    assert rows == [
        ["tiny", "q2", "d4", "2", "one, two"],
        ["tiny", "q2", "d8", "2", "one, two"],
        ["tiny", "q4", "d5", "2", "one, two"],
    ]


def test_some_systems_to_some_depth(capsys: Capture) -> None:
    words = ("--system", "one", "--depth", "2", "--dataset", "tiny", "--json")
    record = json.loads(printed(capsys, "dataset", "unjudged", EXPERIMENT, *words))
    assert record["depth"] == 2
    assert [row["document"] for row in record["documents"]] == ["d8", "d5"]
    assert record["documents"][0]["systems"] == ["one"]


def test_complete_judgments_leave_nothing_to_judge(root: Path, capsys: Capture) -> None:
    edit(root, DATASET, "name: tiny", "name: tiny\njudgments: complete")
    assert len(printed(capsys, "dataset", "unjudged", EXPERIMENT).splitlines()) == 1


def test_an_unknown_system(capsys: Capture) -> None:
    assert main(("dataset", "unjudged", EXPERIMENT, "--system", "thre")) == 2
    assert "unknown system 'thre'" in capsys.readouterr().err
