"""``held_out: all``: every query is held out once."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_bench.cli import main
from tests.tune.looks.test_run_looks import ledger, root, tune

__all__ = ["root"]
ALL = ("--set", "tune.held_out=all", "--set", "tune.folds=5")


def test_every_query_decides_once_and_is_one_look(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tune(root, capsys, *ALL)
    assert len(report["held_out_queries"]) == report["held_out"]["queries"] == 60
    assert report["tune"]["queries"] == 60
    assert report["settings"]["sampler"] == "random"
    assert report["nested"] is None
    gains = [tuned - default for default, tuned in report["held_out_values"]]
    assert sum(gains) / 60 == pytest.approx(report["held_out"]["difference"])
    assert report["held_out"]["difference"] <= report["tune"]["difference"]
    assert len(ledger(root)[0]["queries"]) == 60
    again = tune(root, capsys, *ALL)
    assert again["look"]["is_repeated"]
    assert again["held_out"] == report["held_out"]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("tune.sampler=tpe", "trials that do not follow the values: sampler: tpe"),
        ("tune.folds=0", "held_out: all needs folds"),
        ("tune.choose=one_standard_error", "held_out: all needs folds"),
        ("tune.by_query_type=true", "held_out: all tests one set of parameters"),
        ("tune.looks={max_queries: 90}", "held_out: all tests one set of parameters"),
    ],
)
def test_what_does_not_go_with_it_is_an_error(
    root: Path, capsys: pytest.CaptureFixture[str], option: str, said: str
) -> None:
    experiment, folders = str(root / "experiments" / "e.yaml"), str(root / "datasets")
    options = ["--out", str(root / "out"), "--no-plots", "--datasets", folders]
    assert main(["tune", experiment, *options, *ALL, "--set", option]) == 2
    assert said in capsys.readouterr().err


def test_a_datasets_own_splits_decide(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    queries = root / "datasets" / "made" / "queries.jsonl"
    parts = ("dev", "test")
    lines = (f'{{"id": "q{n}", "split": "{parts[n % 2]}"}}\n' for n in range(60))
    queries.write_text("".join(lines))
    experiment, folders = str(root / "experiments" / "e.yaml"), str(root / "datasets")
    options = ["--out", str(root / "out"), "--no-plots", "--datasets", folders]
    assert main(["tune", experiment, *options, *ALL]) == 2
    assert "tune.held_out: all: the dataset has splits dev and test" in capsys.readouterr().err
