"""``fusion-bench threshold`` from the command line, and ``fb.threshold``."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

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


def save(*options: str, file: str = "experiments/careful.yaml") -> dict[str, Any]:
    assert main(["threshold", EXPERIMENT, "--save", file, *options]) == 0
    saved: dict[str, Any] = yaml.safe_load(Path(file).read_text("utf-8"))
    return saved


def test_the_promised_threshold_is_saved_in_its_system(project: Path) -> None:
    saved = save()
    record = json.loads((project / "reports/mine/threshold.json").read_text("utf-8"))
    chosen = record["collections"][0]["chosen"]
    assert saved["systems"]["reranked"].pop("abstain") == {
        "signal": "rerank top",
        "above": chosen["threshold"],
        "promised_false_answers": 0.1,
        "calibrated_on": chosen["calibrated_on"],
    }
    assert saved == yaml.safe_load(Path(EXPERIMENT).read_text("utf-8"))


def test_a_system_names_its_signal_and_its_share(project: Path) -> None:
    text = Path(EXPERIMENT).read_text("utf-8").replace("missing: below}}", "missing: below}, ABST}")
    abstain = 'abstain: {signal: "rerank top", false_answers: 0.05}'
    Path(EXPERIMENT).write_text(text.replace("ABST", abstain), encoding="utf-8")
    saved = save()["systems"]["reranked"]["abstain"]
    record = json.loads((project / "reports/mine/threshold.json").read_text("utf-8"))
    assert record["settings"]["false_answers"] == saved["promised_false_answers"] == 0.05
    chosen = record["collections"][0]["chosen"]
    assert (chosen["is_stated"], chosen["calibrating"]) == (True, 90)
    assert "false_answers" not in saved


def test_a_path_of_a_dataset_is_right_in_another_folder(capsys: Capture) -> None:
    text = Path(EXPERIMENT).read_text("utf-8")
    path = "dataset: ../datasets/mine/dataset.yaml"
    looks = "tune: {system: plain, looks: {file: looks.jsonl}}"
    Path(EXPERIMENT).write_text(f"{text.replace('dataset: mine', path)}{looks}\n", "utf-8")
    Path("other/place").mkdir(parents=True)
    saved = save(file="other/place/careful.yaml")
    assert saved["dataset"] == "../../datasets/mine/dataset.yaml"
    assert saved["tune"]["looks"]["file"] == "../../experiments/looks.jsonl"
    assert main(["lint", "other/place/careful.yaml"]) == 0
    assert capsys.readouterr().out.count("careful.yaml") == 2


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--mask",), "no threshold to save: the unanswerable queries are masked"),
        (("--false-answers", "0.04"), "no threshold to save: to choose a signal takes half"),
        (("--signal", "fused margin", "--save", EXPERIMENT), "mine.yaml would replace an input"),
    ],
)
def test_what_cannot_be_saved(capsys: Capture, options: tuple[str, ...], problem: str) -> None:
    assert main(["threshold", EXPERIMENT, "--save", "experiments/new.yaml", *options]) == 2
    assert problem in capsys.readouterr().err
    assert not Path("experiments/new.yaml").exists()


def test_two_systems_that_state_a_signal_are_told_apart(capsys: Capture) -> None:
    text = Path(EXPERIMENT).read_text("utf-8").replace("b]}", "b], ABST}")
    text = text.replace("missing: below}}", "missing: below}, ABST}")
    abstain = 'abstain: {signal: "top:a", false_answers: 0.2}'
    Path(EXPERIMENT).write_text(text.replace("ABST", abstain), encoding="utf-8")
    assert main(["threshold", EXPERIMENT]) == 2
    assert "plain, reranked have 'abstain' with 'false_answers': choose one with --system" in (
        capsys.readouterr().err
    )
    assert main(["threshold", EXPERIMENT, "--system", "plain", "--false-answers", "0.1"]) == 2
    assert "abstain.false_answers 0.2, given 0.1: leave the option out" in capsys.readouterr().err
    assert save("--system", "plain")["systems"]["plain"]["abstain"]["signal"] == "top:a"


def test_explain_prints_whether_the_query_is_answered(capsys: Capture) -> None:
    saved = save()["systems"]["reranked"]["abstain"]
    command = ["explain", "experiments/careful.yaml", "q3", "--system", "reranked"]
    capsys.readouterr()
    assert main(command) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert main([*command, "--json"]) == 0
    decision = json.loads(capsys.readouterr().out)[0]["abstain"]
    assert (decision["signal"], decision["above"]) == ("rerank top", saved["above"])
    assert decision["answered"] is (decision["value"] > saved["above"]) is True
    line = f"answered: rerank top {decision['value']:.6g} is above {saved['above']:.6g}"
    assert f"{line} " in text
    assert f"not {line}" not in text
