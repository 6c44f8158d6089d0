"""Where unjudged documents decide, every command says so: the page, JSON, the exit code."""

import json
from pathlib import Path

import pytest
import yaml

from fusion_bench.cli import main
from fusion_bench.evaluation.report_file import read_report
from tests import unjudged_project as project
from tests.tiny import edit
from tests.unjudged_project import EXPERIMENT

Capture = pytest.CaptureFixture[str]
#: Of the list that the pool does not know: over judged documents only, and filled.
BETTER = 0.25


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(project.make(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")  # no column is left out
    return tmp_path


def test_eval(root: Path, capsys: Capture) -> None:
    assert main(("eval", EXPERIMENT, "-v", "--out", "out")) == 0
    out = capsys.readouterr().out
    assert "+0.2500" in out
    assert f"fusion-bench judge {EXPERIMENT} --candidate fresh --next 50" in out
    [collection] = read_report(root / "out/report.json").collections
    item = collection.comparison("fresh", "RR@10")
    assert item is not None
    assert item.answer == "unjudged decide"
    assert item.difference == pytest.approx(-1 / 3)
    assert item.unjudged is not None
    assert item.unjudged.judged_only == pytest.approx(BETTER)
    assert item.unjudged.filled == pytest.approx(BETTER)


def test_whether_fusion_loses(root: Path, capsys: Capture) -> None:
    """The fusion ranks as the list does that the pool does not know."""
    assert main(("eval", EXPERIMENT, "-v", "--out", "out")) == 0
    assert "whether fusion pays." in capsys.readouterr().out
    [collection] = read_report(root / "out/report.json").collections
    fusion = collection.fusion
    assert fusion is not None
    assert (fusion.verdict, fusion.contradicted) == ("unjudged decide", ("sum", "pooled"))
    assert fusion.unjudged is not None
    assert fusion.unjudged.filled == pytest.approx(BETTER)
    edit(root, project.DATASET, "name: mine", "name: mine\njudgments: complete")
    assert main(("eval", EXPERIMENT, "-v", "--out", "out")) == 0
    [collection] = read_report(root / "out/report.json").collections
    assert collection.fusion is not None
    assert (collection.fusion.verdict, collection.fusion.unjudged) == ("loses", None)


@pytest.mark.usefixtures("root")
def test_compare_of_reports(capsys: Capture) -> None:
    """As eval says; the other way round likewise."""
    assert main(("eval", EXPERIMENT, "-v", "--out", "out")) == 0
    capsys.readouterr()
    options = ("--baseline", "fresh", "--candidate", "pooled", "--json")
    assert main(("compare", "out/report.json", *options)) == 0
    [record] = json.loads(capsys.readouterr().out)
    assert record["comparisons"][0]["answer"] == "unjudged decide"
    assert record["unjudged"]["pooled"]["filled"] == pytest.approx(-BETTER)
    assert main(("compare", "out/report.json", "--candidate", "fresh", "-v")) == 0
    out = capsys.readouterr().out
    assert "Unjudged documents decide" in out
    assert "0.4167…1.0000" in out


def test_tune(root: Path, capsys: Capture) -> None:
    """The list of the pool seems to gain; the other is better on the documents judged."""
    assert main(("tune", EXPERIMENT, "-v", "--out", "out")) == 3
    out = capsys.readouterr().out
    assert "out/tuned.yaml --next 50" in out
    assert ": judged documents\n" in out
    report = json.loads((root / "out/tuning.json").read_text())
    assert report["verdict_against_default"] == "unjudged decide"
    assert report["recommendation"]["kind"] == "judge first"
    assert report["held_out"]["difference"] > 0
    assert report["held_out"]["p"] <= 0.04
    unjudged = report["unjudged"]
    assert unjudged["high"] < 0
    assert unjudged["filled"] < 0
    floor = {row["name"]: row for row in report["floor"]}
    for name, judged, high in (("pooled", 1, floor["pooled"]["mean"]), ("fresh", None, 1)):
        row, bounds = floor[name], floor[name]["bounds"]
        assert (bounds["low"], bounds["high"]) == pytest.approx((row["mean"], high))
        assert bounds["judged"] == judged or (judged is None and 3 / 5 <= bounds["judged"] <= 3 / 4)
    assert report["data"]["bounds"]["the default"] == floor["fresh"]["bounds"]
    assert f"{floor['fresh']['mean']:.4f}…1.0000" in out
    tuned = yaml.safe_load((root / "out/tuned.yaml").read_text())["description"]
    assert "judge first" in tuned
    assert "documents only -0." in tuned


def test_gate(root: Path, capsys: Capture) -> None:
    assert main(("gate", EXPERIMENT, "--update", "--reason", "first")) == 0
    edit(root, EXPERIMENT, "  pooled: {runs: [pooled]}", "  pooled: {runs: [fresh]}")
    capsys.readouterr()
    assert main(("gate", EXPERIMENT, "--json")) == 3
    [check] = json.loads(capsys.readouterr().out)["checks"]
    assert check["status"] == "unjudged decide"
    assert check["difference"] == pytest.approx(-1 / 3)
    assert check["unjudged"]["judged_only"] == pytest.approx(BETTER)
    assert check["unjudged"]["filled"] == pytest.approx(BETTER)
    assert check["unjudged"]["low"] > 0
    assert main(("gate", EXPERIMENT, "-v")) == 3
    out = capsys.readouterr().out
    assert "documents only +0.2500" in out
    assert "unjudged estimated +0.2500" in out
    assert f"judge {EXPERIMENT} --system pooled" in out
    assert " of the candidate" in out
    assert "0.4167…1.0000" in out
