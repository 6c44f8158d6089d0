"""Looks of whole runs of ``tune``."""

import json
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.cli import main
from fusion_bench.io.looks import LedgerEntry, read_looks
from tests.texts import names_in_order
from tests.tune import made

#: Not needed here, and slow.
EXTRAS = (
    "  by_query_type: true\n",
    "  crag: {top: 3}\n",
    "  effort: {price: 2.0}\n",
    "  front: {trials: 8}\n",
    "    blend: {method: linear, reranker: sharp, beta: 0.5}\n",
    ", blend.beta: own",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = made.make(tmp_path)
    experiment = folder / "experiments" / "e.yaml"
    text = experiment.read_text()
    for extra in EXTRAS:
        text = text.replace(extra, "")
    experiment.write_text(text.replace("folds: 2", "folds: 0\n  choose: best"))
    return folder


def tune(root: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    experiment, out = str(root / "experiments" / "e.yaml"), str(root / "out")
    folders = ["--datasets", str(root / "datasets")]
    assert main(["tune", experiment, "--out", out, "--no-plots", "--json", *folders, *options]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return report


def ledger(root: Path) -> list[LedgerEntry]:
    (path,) = (root / "datasets").rglob("looks.jsonl")
    return read_looks(path)


def test_each_look_is_counted_and_a_repeated_run_is_no_new_look(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = ("--set", "tune.split_seed=other", "--out", str(root / "other"))
    reports = [tune(root, capsys, *options) for options in ((), (), other, ())]
    assert [report["look"]["number"] for report in reports] == [1, 1, 2, 1]
    assert [report["look"]["is_repeated"] for report in reports] == [False, True, False, True]
    assert [report["level"] for report in reports] == pytest.approx([0.02, 0.02, 0.0025, 0.02])
    assert [report["look"]["next_number"] for report in reports] == [2, 2, 3, 3]
    first, second = ledger(root)
    assert (first.number, second.number) == (1, 2)
    assert (first.verdict, second.verdict) == (
        reports[0]["verdict_against_default"],
        reports[2]["verdict_against_default"],
    )
    assert first.queries != second.queries
    assert names_in_order((root / "out" / "tuned.yaml").read_text(), "(look 1,", "level 0.02)")


def test_the_default_itself_is_no_look(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tune(root, capsys, "--trials", "1")["look"] is None
    assert not ledger(root)


@pytest.mark.parametrize(
    ("looks", "file", "number"),
    [("{file: mine.jsonl}", "experiments/mine.jsonl", 1), ("{count: false}", None, None)],
)
def test_looks_are_counted_where_the_experiment_says(
    root: Path, capsys: pytest.CaptureFixture[str], looks: str, file: str | None, number: int | None
) -> None:
    report = tune(root, capsys, "--set", f"tune.looks={looks}")
    assert report["look"]["number"] == number
    assert report["level"] == (0.025 if number is None else pytest.approx(0.02))
    assert file is None or (root / file).is_file()
    assert not ledger(root)


def test_a_declared_plan_of_looks_has_no_effect_and_the_page_says_so(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = tune(root, capsys, "--out", str(root / "plain"))
    planned = tune(root, capsys, "--set", "tune.looks={max_queries: 35}")
    assert planned["look"]["is_repeated"]
    assert planned["held_out"] == plain["held_out"]
    assert planned["level"] == pytest.approx(0.02)
    page = (root / "out" / "tuning.md").read_text()
    assert "has no effect" in page
    assert "has no effect" not in (root / "plain" / "tuning.md").read_text()
