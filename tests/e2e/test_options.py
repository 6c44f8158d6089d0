"""Options of single commands: details, tables, unjudged documents, and names of files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from fusion_bench.cli import main
from tests import tiny
from tests.tiny import DATASET, EXPERIMENT, edit

Capture = pytest.CaptureFixture[str]


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


# ── ``--tables``: each command writes the tables of its page, and says so


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


# ── unjudged documents on the command line


pytestmark = pytest.mark.usefixtures("root")


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


# ── how the values of options are spelled


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["schema", "--out", ""], "an empty name"),
        (["pull", "python", "--queries", "q.jsonl", "--out", ""], "an empty name"),
        (["eval", tiny.EXPERIMENT, "--datasets", ""], "an empty name"),
        (["eval", "experiments/e\udcff.yaml"], "not UTF-8 text; a file"),
        (["compare", "--qrels", "q.txt", "a=a\udcff.trec"], "not UTF-8 text; a file"),
    ],
)
def test_what_names_no_file_is_refused(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tiny.make(tmp_path))
    before = sorted(tmp_path.rglob("*"))
    assert main(words) == 2
    assert message in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before
