"""Queries that a model wrote: named in every report, and never in one mean with real ones."""

import json
from pathlib import Path

import pytest

from fusion_bench.cli import main
from tests.gate import cases

Capture = pytest.CaptureFixture[str]
QUERIES = Path("datasets/mine/queries.jsonl")
TEXT = "A model wrote the queries ({}) from documents"


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(cases.make_project(tmp_path))


def mark(share: int, split: str | None = None) -> None:
    """Mark every ``share``-th query, and give those a split of their own."""
    rows = [json.loads(line) for line in QUERIES.read_text().splitlines()]
    for n, row in enumerate(rows):
        is_marked = n % share == 0
        row |= {"synthetic": True} if is_marked else {}
        row |= {} if split is None else {"split": split if is_marked else "real"}
    QUERIES.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def is_first_warning(markdown: str) -> bool:
    return markdown.split("[!WARNING]\n> - ")[1].startswith(TEXT.format(60))


def test_every_report_says_so(capsys: Capture) -> None:
    """On the terminal, on the page and in the record of eval, tune and gate; first of all."""
    mark(1)
    run = Path("datasets/mine/a.trec")
    run.write_text("".join(run.read_text().splitlines(keepends=True)[2:]))  # one more warning
    assert main(["eval", cases.EXPERIMENT, "--no-plots"]) == 0
    assert TEXT.format(60) in " ".join(capsys.readouterr().out.split())
    assert is_first_warning(Path("reports/mine/report.md").read_text())
    assert TEXT.format(60) in Path("reports/mine/report.html").read_text()
    small = ["--trials", "4", "--folds", "0", "--no-plots"]
    assert main(["tune", cases.EXPERIMENT, "--set", "tune.system=plain", *small]) in (0, 3)
    [page] = Path("reports").rglob("tuning.md")
    assert "model wrote the" in page.read_text()
    capsys.readouterr()
    assert main(["gate", cases.EXPERIMENT, "--update", "--reason", "first"]) == 0
    assert main(["gate", cases.EXPERIMENT]) == 0
    assert TEXT.format(60) in " ".join(capsys.readouterr().out.split())
    assert is_first_warning(Path("reports/mine/gate.md").read_text())


def test_both_kinds_make_no_mean(capsys: Capture) -> None:
    mark(3)
    for words in (
        ["eval"],
        ["gate", "--update", "--reason", "x"],
        ["tune", "--set", "tune.system=plain", "--trials", "4"],
    ):
        assert main([words[0], cases.EXPERIMENT, *words[1:]]) == 2, words
        err = capsys.readouterr().err
        assert "20 synthetic queries and 40 " in err


def test_a_split_of_their_own(capsys: Capture) -> None:
    mark(3, split="synthetic")
    assert main(["eval", cases.EXPERIMENT, "--no-plots", "--no-html", "--split", "real"]) == 0
    assert "synthetic: a model" not in capsys.readouterr().out
    assert main(["eval", cases.EXPERIMENT, "--no-plots", "--no-html", "--split", "synthetic"]) == 0
    assert TEXT.format(20) in " ".join(capsys.readouterr().out.split())
    assert main(["dataset", "check", "datasets/mine/dataset.yaml"]) == 0
    assert "20 of 60 queries: synthetic" in capsys.readouterr().out
