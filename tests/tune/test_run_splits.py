"""The split of a run: half of the queries, or a dataset's own."""

from pathlib import Path

import pytest

from fusion_bench.cli import main
from tests.texts import names_in_order
from tests.tune.test_run_looks import root, tune

__all__ = ["root"]


def test_cross_fitting_is_refused_with_what_takes_its_place(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment, folders = str(root / "experiments" / "e.yaml"), str(root / "datasets")
    options = ["--out", str(root / "out"), "--no-plots", "--datasets", folders]
    assert main(["tune", experiment, *options, "--set", "tune.held_out=all"]) == 2
    assert names_in_order(capsys.readouterr().err, "held_out", "cross-fitting", "0.5")


def test_half_of_few_queries_decides_by_default(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tune(root, capsys)
    assert len(report["held_out_queries"]) == report["held_out"]["queries"] == 30
    auto = tune(root, capsys, "--set", "tune.held_out=auto", "--out", str(root / "b"))
    assert auto["held_out"] == report["held_out"]


def test_a_datasets_own_splits_decide(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    queries = root / "datasets" / "made" / "queries.jsonl"
    lines = (f'{{"id": "q{n}", "split": "{("dev", "test")[n % 3 > 0]}"}}\n' for n in range(60))
    queries.write_text("".join(lines))
    report = tune(root, capsys)
    assert len(report["held_out_queries"]) == 40
    assert names_in_order(report["split"], "tuned on dev", "judged on test")


def test_four_groups_are_four_folds_where_the_experiment_names_none(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queries, experiment = root / "datasets/made/groups.jsonl", root / "experiments/e.yaml"
    queries.write_text("".join(f'{{"id": "q{n}", "group": "{n % 8}"}}\n' for n in range(60)))
    experiment.write_text(experiment.read_text().replace("  folds: 0\n", ""))
    report = tune(root, capsys, "--trials", "8")
    assert report["settings"]["folds"] == 4
    assert names_in_order(report["split"], "4 folds instead of 5", "4 groups")
    assert len(report["held_out_queries"]) == 29
    queries.write_text("".join(f'{{"id": "q{n}", "group": "{n % 5}"}}\n' for n in range(60)))
    folders = ["--datasets", str(root / "datasets"), "--out", str(root / "out")]
    assert main(["tune", str(experiment), *folders]) == 2
    assert "of 2 groups are" in capsys.readouterr().err
