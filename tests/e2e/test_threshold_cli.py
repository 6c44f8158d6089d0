"""``fusion-bench threshold`` from the command line, and ``fb.threshold``."""

import json
from pathlib import Path

import numpy as np
import pytest

import fusion_bench as fb
from fusion_bench.cli import main
from tests.threshold_project import EXPERIMENT, make_project

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(make_project(tmp_path))
    return tmp_path


def test_the_answer_the_promise_and_the_files(project: Path, capsys: Capture) -> None:
    assert main(["threshold", EXPERIMENT]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith("rerank top of reranked can carry a threshold on mine: at 10 % false")
    assert "fused top of plain cannot: it keeps" in text
    assert "Fusing loses what the lists know" in text
    assert "then at most 10 % of unanswerable queries like these are answered" in text
    folder = project / "reports/mine"
    record = json.loads((folder / "threshold.json").read_text("utf-8"))
    assert record["collections"][0]["chosen"]["signal"] == "rerank top"
    assert "threshold-mine.png" in (folder / "threshold.md").read_text("utf-8")
    assert (folder / "threshold-mine.png").read_bytes().startswith(b"\x89PNG")


def test_json_is_the_record_that_is_written(project: Path, capsys: Capture) -> None:
    assert main(["threshold", EXPERIMENT, "--json", "--signal", "rerank top"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((project / "reports/mine/threshold.json").read_text("utf-8"))
    assert printed["collections"][0]["chosen"]["is_stated"] is True


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--signal", "rr"), "unknown signal 'rr' (known: agreement, fused margin"),
        (("--false-answers", "0.01"), "are too few: a threshold for 1% false answers needs 299"),
        (("--false-answers", "1.5"), "false_answers: must be above 0 and below 1, not 1.5"),
        (("--system", "other"), "unknown system 'other'"),
    ],
)
def test_what_cannot_be_asked(capsys: Capture, options: tuple[str, ...], problem: str) -> None:
    assert main(["threshold", EXPERIMENT, *options]) == 2
    assert problem in capsys.readouterr().err


def test_a_signal_of_ones_own_in_python() -> None:
    report = fb.threshold(
        EXPERIMENT, signals={"candidates": lambda runs: np.diff(runs.offsets)}, systems=["plain"]
    )
    labels = [each.label for each in report.collections[0].signals]
    assert labels[-1] == "candidates"
    assert "rerank top of reranked" not in labels
