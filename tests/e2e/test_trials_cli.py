"""Commands that look at single lists and documents, where lists have several trials."""

import json
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.cli import main
from tests.tiny import EXPERIMENT
from tests.trials_project import TRIALS, make

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make(tmp_path, *TRIALS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_json(capsys: Capture, *arguments: str) -> Any:  # noqa: ANN401 - whatever JSON has
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def fused(root: Path, *options: str) -> list[str]:
    out = root / "fused.trec"
    assert main(["fuse", EXPERIMENT, "--system", "a", "--out", str(out), *options]) == 0
    return [line.split()[2] for line in out.read_text(encoding="utf-8").splitlines()]


def test_fuse_writes_the_trial_that_is_named(root: Path, capsys: Capture) -> None:
    first, second = fused(root), fused(root, "--trial", "2")
    capsys.readouterr()
    assert first[:2] == ["d2", "d1"]
    assert second[:2] == ["d1", "d2"]
    assert fused(root, "--trial", "1") == first


@pytest.mark.usefixtures("root")
def test_explain_shows_the_trial_that_is_named(capsys: Capture) -> None:
    command = ("explain", EXPERIMENT, "q1", "--system", "a")
    first, second = run_json(capsys, *command), run_json(capsys, *command, "--trial", "2")
    assert [trace["document"] for trace in first] == ["d2", "d1"]
    assert [trace["document"] for trace in second] == ["d1", "d2"]
    assert {trace["trial"] for trace in second} == {"trial 2 of 3 of a"}
    assert main([*command]) == 0
    assert "trial 1 of 3 of a." in capsys.readouterr().out
    assert run_json(capsys, *command[:-1], "b")[0]["trial"] is None


@pytest.mark.parametrize(
    "command",
    [
        ["fuse", EXPERIMENT, "--system", "a", "--out", "x.trec"],
        ["explain", EXPERIMENT, "q1", "--system", "a"],
    ],
)
def test_a_trial_that_is_not_there_is_one_line(
    command: list[str], root: Path, capsys: Capture
) -> None:
    assert main([*command, "--trial", "4"]) == 2
    error = capsys.readouterr().err
    assert "tiny has 3 trials " in error
    assert not (root / "x.trec").exists()


@pytest.mark.usefixtures("root")
def test_diagnose_and_show_say_which_trials_there_are(capsys: Capture) -> None:
    assert main(["diagnose", EXPERIMENT, "--system", "a", "-v"]) == 0
    assert "trial 1 of 3 of a." in capsys.readouterr().out
    shown = run_json(capsys, "dataset", "show", "datasets/tiny")
    assert {row["name"]: row["trials"] for row in shown["runs"]} == {"a": 3, "b": 1}


@pytest.mark.usefixtures("root")
def test_export_replays_every_trial(capsys: Capture) -> None:
    options = ("--to", "qdrant", "--system", "both", "--replay")
    record = run_json(capsys, "export", EXPERIMENT, *options)
    [replay] = record["replays"]
    report = run_json(capsys, "eval", EXPERIMENT, "--no-html", "--no-plots")
    rows = report["collections"][0]["systems"]
    both = next(row for row in rows if row["name"] == "both")
    assert replay["system_mean"] == pytest.approx(both["measures"]["RR@10"]["mean"])
