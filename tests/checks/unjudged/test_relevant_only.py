"""Judgments of relevant documents only, cut to the first documents of one list."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fusion_bench.checks.dataset_facts import dataset_notices
from fusion_bench.cli import main
from fusion_bench.io.dataset import load_dataset
from tests import unjudged_project
from tests.tiny import edit
from tests.unjudged_project import DATASET, EXPERIMENT

CONDITION = "if unjudged documents are not relevant"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of three judged documents a query, only the relevant one is left."""
    unjudged_project.make(tmp_path)
    qrels = tmp_path / "datasets/mine/qrels.txt"
    lines = qrels.read_text().splitlines(keepends=True)
    qrels.write_text("".join(line for line in lines if not line.endswith(" 0\n")))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def declare(root: Path, judgments: str | None) -> None:
    if judgments is not None:
        edit(root, DATASET, "name: mine", f"name: mine\njudgments: {judgments}")


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        raise SystemExit(main(list(arguments)))
    return int(end.value.code or 0)


CASES = pytest.mark.parametrize(
    ("judgments", "answer", "condition"),
    [
        (None, "worse", CONDITION),
        ("sparse", "worse", ""),
        ("complete", "worse", ""),
        ("pooled", "unjudged decide", ""),
    ],
)


@CASES
def test_what_the_dataset_declares_decides_in_eval_and_compare(
    root: Path,
    judgments: str | None,
    answer: str,
    condition: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    declare(root, judgments)
    assert run("eval", EXPERIMENT) == 0
    report = json.loads((root / "reports/mine/report.json").read_text())
    answers = {c["candidate"]: c["answer"] for c in report["collections"][0]["comparisons"]}
    assert answers["fresh"] == answer
    page = (root / "reports/mine/report.md").read_text()
    verdicts = next(line for line in page.splitlines() if "Verdicts on" in line)
    assert (CONDITION in verdicts) is bool(condition)
    capsys.readouterr()
    assert run("compare", "reports/mine/report.json", "--candidate", "fresh") == 0
    shown = capsys.readouterr().out
    assert f": {answer} {condition}".rstrip() + "." in shown


@CASES
def test_what_the_dataset_declares_decides_in_the_gate(
    root: Path, judgments: str | None, answer: str, condition: str
) -> None:
    declare(root, judgments)
    assert run("gate", EXPERIMENT, "--update", "--reason", "first") == 0
    edit(root, EXPERIMENT, "  pooled: {runs: [pooled]}", "  pooled: {runs: [fresh]}")
    is_decided = answer == "unjudged decide"
    assert run("gate", EXPERIMENT) == (3 if is_decided else 1)
    verdict = json.loads((root / "reports/mine/gate.json").read_text())
    status = "unjudged decide" if is_decided else "regressed"
    assert [check["status"] for check in verdict["checks"]] == [status]
    row = f"| {status} {condition}".rstrip() + " |"
    assert row in (root / "reports/mine/gate.md").read_text()


@CASES
def test_what_the_dataset_declares_decides_in_tune(
    root: Path, judgments: str | None, answer: str, condition: str
) -> None:
    declare(root, judgments)
    is_decided = answer == "unjudged decide"
    assert run("tune", EXPERIMENT) == (3 if is_decided else 0)
    record = json.loads((root / "reports/mine/tuning/tuning.json").read_text())
    assert record["verdict"] == ("unjudged decide" if is_decided else "ship")
    page = (root / "reports/mine/tuning/tuning.md").read_text()
    verdict = next(line for line in page.splitlines() if "queries of mine" in line)
    assert (f"of mine {CONDITION}: RR@10" in verdict) is bool(condition)


@pytest.mark.parametrize(("judgments", "asks"), [(None, True), ("pooled", False)])
def test_the_check_asks_for_the_declaration(root: Path, judgments: str | None, asks: bool) -> None:
    declare(root, judgments)
    notices = dataset_notices(load_dataset(root / DATASET))
    assert any("Declare judgments" in notice for notice in notices) is asks
