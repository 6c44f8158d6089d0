"""``held_out: all``: every query is held out once; ``auto``: with few queries."""

from pathlib import Path

import pytest

from fusion_bench.cli import main
from tests.texts import names_in_order
from tests.tune.test_run_looks import ledger, root, tune

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
        ("tune.sampler=tpe", "sampler: tpe, because cross-fitting needs trials that do not follow"),
        ("tune.folds=0", "folds: 0, because cross-fitting needs folds"),
        ("tune.choose=one_standard_error", "choose: one_standard_error, because"),
        ("tune.by_query_type=true", "by_query_type, because cross-fitting tests one set"),
        ("tune.looks={max_queries: 90}", "looks.max_queries, because"),
        ("tune.front={trials: 8}", "front, because cross-fitting searches no front"),
    ],
)
def test_what_does_not_go_with_it_is_an_error(
    root: Path, capsys: pytest.CaptureFixture[str], option: str, said: str
) -> None:
    experiment, folders = str(root / "experiments" / "e.yaml"), str(root / "datasets")
    options = ["--out", str(root / "out"), "--no-plots", "--datasets", folders]
    assert main(["tune", experiment, *options, *ALL, "--set", option]) == 2
    assert said in capsys.readouterr().err


def test_few_queries_are_all_used_and_the_report_says_why(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tune(root, capsys, "--set", "tune.folds=5")
    choice = report["split_choice"]
    assert (choice["asked"], choice["design"], choice["queries"]) == ("auto", "all", 60)
    assert report["settings"]["sampler"] == "random"
    assert len(report["held_out_queries"]) == 60
    assert report["unjudged"] is not None
    page = (root / "out" / "tuning.md").read_text()
    assert choice["reason"] in page
    assert names_in_order(page, "60 queries", "in 32.8 %")
    assert report["held_out"] == tune(root, capsys, *ALL, "--out", str(root / "b"))["held_out"]


def test_a_setting_that_excludes_cross_fitting_keeps_the_half_split(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tune(root, capsys, "--set", "tune.folds=5", "--sampler", "tpe")
    choice = report["split_choice"]
    assert (choice["asked"], choice["design"]) == ("auto", "share")
    assert choice["reason"].startswith("sampler: tpe")
    assert len(report["held_out_queries"]) == 30
    assert report["nested"] is not None


def test_a_datasets_own_splits_decide(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    queries = root / "datasets" / "made" / "queries.jsonl"
    parts = ("dev", "test")
    lines = (f'{{"id": "q{n}", "split": "{parts[n % 2]}"}}\n' for n in range(60))
    queries.write_text("".join(lines))
    experiment, folders = str(root / "experiments" / "e.yaml"), str(root / "datasets")
    options = ["--out", str(root / "out"), "--no-plots", "--datasets", folders]
    assert main(["tune", experiment, *options, *ALL]) == 2
    assert names_in_order(capsys.readouterr().err, "held_out: all", "dev and test")
    report = tune(root, capsys, "--set", "tune.folds=5")
    assert report["split_choice"]["design"] == "dataset"
    assert report["split_choice"]["reason"].endswith("dev and test")


def test_four_groups_are_four_folds_where_the_experiment_names_none(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queries, experiment = root / "datasets/made/queries.jsonl", root / "experiments/e.yaml"
    queries.write_text("".join(f'{{"id": "q{n}", "group": "{n % 4}"}}\n' for n in range(60)))
    experiment.write_text(experiment.read_text().replace("  folds: 0\n", ""))
    report = tune(root, capsys, "--trials", "8")
    assert report["settings"]["folds"] == 4
    assert names_in_order(report["split"], "4 folds instead of 5", "4 groups")
    assert len(report["held_out_queries"]) == 60
    queries.write_text("".join(f'{{"id": "q{n}", "group": "{n % 3}"}}\n' for n in range(60)))
    folders = ["--datasets", str(root / "datasets"), "--out", str(root / "out")]
    assert main(["tune", str(experiment), *folders]) == 2
    assert "60 queries of 3 groups" in capsys.readouterr().err
