"""``eval`` of what ``tune`` wrote: found, kept apart, and with its caveat."""

from pathlib import Path

import pytest

from fusion_bench.cli import main
from tests.gate import cases
from tests.gate.cases import EXPERIMENT

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(cases.make_project(tmp_path))
    options = ("--system", "plain", "--trials", "3", "--folds", "2", "--no-plots")
    assert main(["tune", EXPERIMENT, *options]) == 0
    return tmp_path


def test_eval_of_a_tuned_experiment(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    tuned = root / "reports/mine/tuning/tuned.yaml"
    elsewhere = root / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)  # the dataset is found from where the experiment lies
    capsys.readouterr()
    assert main(["eval", str(tuned), "-v"]) == 0
    out = capsys.readouterr().out
    assert "tuned on mine: " in out
    assert "! eval takes all " in out
    assert (root / "reports/mine/tuned/report.json").exists()
    assert list(elsewhere.iterdir()) == []


def test_a_dataset_out_of_sight_is_asked_for(root: Path, capsys: Capture) -> None:
    tuned = (root / "reports/mine/tuning/tuned.yaml").rename(root / "tuned.yaml")
    (root / "datasets").rename(root / "hidden")
    assert main(["eval", str(tuned), "--no-plots"]) == 2
    err = " ".join(capsys.readouterr().err.split())
    assert "unknown dataset 'mine' " in err
    assert main(["eval", str(tuned), "--no-plots", "--datasets", "hidden"]) == 0
    assert (root / "reports/tuned/report.json").exists()
