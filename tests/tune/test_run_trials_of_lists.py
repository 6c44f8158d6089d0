"""Tuning on lists of several files, from the command to the report."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.checks.collection_warnings import FIRST_REPEAT
from fusion_bench.cli import main
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.report.tuning_records import Gain
from fusion_bench.stats.values import Pair
from fusion_bench.tune import held_out
from fusion_bench.tune.distribution import WorkerPool, distribute_objective
from fusion_bench.tune.held_out import estimate_family
from fusion_bench.tune.objective import ObjectivePaths
from tests.tiny import edit
from tests.tune import made

OPTIONS = ("--trials", "4", "--no-plots", "--json")


def tune(root: Path, out: Path) -> dict[str, Any]:
    folders = ["--out", str(out), "--datasets", str(root / "datasets")]
    assert main(["tune", str(root / "experiments" / "e.yaml"), *folders, *OPTIONS]) == 0
    record: dict[str, Any] = json.loads((out / "tuning.json").read_text(encoding="utf-8"))
    return record


def make(root: Path, *, changes: bool) -> Path:
    """The made dataset with two trials of ``good``: equal, or the second with other scores."""
    made.make(root)
    folder = root / "datasets" / "made"
    edit(root, "datasets/made/dataset.yaml", "path: good.trec", 'path: "good-*.trec"')
    text = (folder / "good.trec").read_text(encoding="utf-8")
    (folder / "good.trec").rename(folder / "good-1.trec")
    second = (folder / "bad.trec").read_text(encoding="utf-8") if changes else text
    (folder / "good-2.trec").write_text(second, encoding="utf-8")
    return root


def test_the_page_names_what_is_of_the_first_trial(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    equal = tune(make(tmp_path / "equal", changes=False), tmp_path / "out")
    assert equal["list_trials"] == 2
    capsys.readouterr()
    page = (tmp_path / "out" / "tuning.md").read_text(encoding="utf-8")
    assert "over 2 trials of" in page
    [first] = [each["text"] for each in equal["data"]["warnings"] if each["key"] == FIRST_REPEAT]
    assert "trial 1 of 2 of good." in first
    assert first in page


def test_the_objective_is_the_mean_over_trials(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    families: list[Sequence[Pair]] = []

    def spy(pairs: Sequence[Pair], *, alpha: float, seed: int) -> list[Gain]:
        families.append(pairs)
        return estimate_family(pairs, alpha=alpha, seed=seed)

    monkeypatch.setattr(held_out, "estimate_family", spy)
    other = tune(make(tmp_path / "other", changes=True), tmp_path / "out")
    capsys.readouterr()
    default = [low for low, _ in other["held_out_values"]]
    assert other["held_out"]["default"] == pytest.approx(sum(default) / len(default))
    # The verdict, and that by type, know the trials; the thresholds of CRAG do not.
    [family] = [rows for rows in families if len(rows) > 2 and rows[0].repeats]
    for row in family[:2]:
        for side in (row.candidate, row.baseline):
            assert side.repeats is not None
            assert side.repeats.shape == (2, len(default))
            assert side.repeats.mean(axis=0) == pytest.approx(side.values, abs=1e-12)
        assert row.is_paired
    assert {info["trial"] for info in other["data"]["runs"] if info["name"] == "good"} == {1, 2}


def test_workers_evaluate_every_trial(tmp_path: Path) -> None:
    root = make(tmp_path, changes=True)
    experiment, source = read_experiment(root / "experiments" / "e.yaml")
    assert experiment.tune is not None
    dataset = root / "datasets" / "made" / "dataset.yaml"
    paths = ObjectivePaths(source.path.resolve(), dataset, experiment.tune)
    objective = paths.open()[0]
    with closing(WorkerPool([partial(ThreadPoolExecutor, 1)] * 2)) as pool:
        whole = distribute_objective(objective, paths, pool)
        ours, theirs = (each.evaluate_by_repeat(objective.system) for each in (whole, objective))
        assert ours is not None
        assert theirs is not None
        assert ours.tolist() == theirs.tolist()
        params = [objective.default_params]
        assert whole.evaluate_params(params).tolist() == objective.evaluate_params(params).tolist()
