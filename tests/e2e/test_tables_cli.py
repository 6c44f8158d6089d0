"""``--tables``: each command writes the tables of its page, and says so."""

from __future__ import annotations

import csv
import io
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


def said(capsys: Capture, *arguments: str, code: int = 0) -> str:
    assert main(arguments) == code
    return "".join(capsys.readouterr())


def cells(path: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline=""), strict=True))


def test_eval_and_compare_write_tables(root: Path, capsys: Capture) -> None:
    asked = ["--tables", "csv", "--tables", "latex"]
    text = said(capsys, "eval", EXPERIMENT, "--no-plots", *asked)
    folder = root / "reports/e"
    assert "report-01-Primary-measure-RR@10-MRR.tex" in text
    header, *rows = cells(folder / "report-01-Primary-measure-RR@10-MRR.csv")
    assert header[:2] == ["system", "RR@10"]
    assert ["one", "1.0000"] in [row[:2] for row in rows]
    assert {path.suffix for path in folder.glob("report-*")} == {".csv", ".tex"}
    said(capsys, "compare", "reports/e/report.json", *asked[:2], "--out", "paper")
    (table, *_) = sorted((root / "paper").glob("comparison-*"))
    assert [row[0] for row in cells(table)[1:]]
    assert not (root / "reports/compare").exists()


def test_the_gate_writes_tables(root: Path, capsys: Capture) -> None:
    with (root / EXPERIMENT).open("a", encoding="utf-8") as file:
        file.write("gate: {system: two, checks: {RR@10: {max_drop: 0.01}}}\n")
    said(capsys, "gate", EXPERIMENT, "--update", "--reason", "first")
    said(capsys, "gate", EXPERIMENT, "--tables", "csv")
    assert any(
        row[:2] == ["tiny / RR@10 (MRR)", "unchanged"]
        for path in (root / "reports/e").glob("gate-*.csv")
        for row in cells(path)
    )


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["eval", EXPERIMENT, "--tables", "pdf"], "'latex', 'csv'"),
        (["compare", "x.json", "--out", "paper"], "--out"),
        (["gate", EXPERIMENT, "--self-test", "--tables", "csv"], "--tables"),
        (["compare", "x.json", "--tables", "csv", "--out", EXPERIMENT], "is a file"),
    ],
)
def test_what_has_no_effect_is_refused(arguments: list[str], message: str, capsys: Capture) -> None:
    assert message in said(capsys, *arguments, code=2)
