from __future__ import annotations

from pathlib import Path

import pytest

from fusion_bench.cli.application.progress import progress_bar
from fusion_bench.console.held_out_verdict import ask_held_out
from fusion_bench.console.setting import Setting
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.io.dataset import Dataset
from fusion_bench.tune.looks import read_looks
from fusion_bench.tune.options import TuneOptions
from fusion_bench.tune.run import run_tuning
from tests.console.project import make_project, open_project


def test_the_verdict_is_that_of_tune_and_enters_its_ledger(tmp_path: Path) -> None:
    """A search over one value must say the same of it, as a look of its own number."""
    make_project(tmp_path)
    change = "systems.plain.fusion.weights={a: 1, b: 1}"
    session = open_project(tmp_path, change, system="plain")
    asked = Setting(system="plain", parameters={"fusion.weights.b": 2.0})
    mine = ask_held_out(session, asked, tmp_path / "reports")
    ledger = tmp_path / "datasets/made/looks.jsonl"
    (look,) = read_looks(ledger)
    assert (look.system, look.verdict, look.number) == ("plain", mine["verdict"], 1)

    ledger.unlink()
    overrides = [
        change,
        "tune={system: plain, trials: 3, sampler: grid, folds: 0, choose: best, "
        "front: {method: none}, parameters: {fusion.weights.b: {choices: [1.0, 2.0]}}}",
    ]
    parsed, source = read_experiment(tmp_path / "experiments/e.yaml", overrides=overrides)
    options, folders = TuneOptions(plots=False), [tmp_path / "datasets"]
    ((report, _),) = run_tuning(parsed, source, options, tmp_path / "out", folders, progress_bar)
    assert report.choice.params == {"fusion.weights.b": 2.0}
    assert report.verdict == mine["verdict"]
    assert report.held_out.model_dump(mode="json") == mine["gain"]
    assert report.level == mine["level"]


def test_asking_again_spends_nothing_and_another_setting_does(tmp_path: Path) -> None:
    make_project(tmp_path)
    session = open_project(tmp_path)
    first = Setting(system="boosted", parameters={"fusion.k": 5})
    looks = [ask_held_out(session, first, tmp_path) for _ in range(2)]
    assert [look["look_number"] for look in looks] == [1, 1]
    assert [look["is_repeated"] for look in looks] == [False, True]
    other = ask_held_out(session, Setting(system="boosted", parameters={"blend.beta": 0}), tmp_path)
    assert other["look_number"] == 2
    assert other["level"] < looks[0]["level"]
    assert len(read_looks(tmp_path / "datasets/made/looks.jsonl")) == 2


def test_nothing_is_spent_on_the_baseline_itself(tmp_path: Path) -> None:
    make_project(tmp_path)
    session = open_project(tmp_path)
    with pytest.raises(ConfigError, match="of the baseline"):
        ask_held_out(session, Setting(system="plain"), tmp_path)
    assert not (tmp_path / "datasets/made/looks.jsonl").exists()


def test_a_plan_of_looks_keeps_its_frozen_numbers(tmp_path: Path) -> None:
    make_project(tmp_path)
    session = open_project(tmp_path, "tune.looks={max_queries: 60}")
    with pytest.raises(ConfigError, match="a plan of looks"):
        ask_held_out(session, Setting(system="boosted"), tmp_path)


def test_few_queries_are_halved_unless_all_are_asked_for(tmp_path: Path) -> None:
    make_project(tmp_path)
    queries = tmp_path / "datasets/made/queries.jsonl"
    queries.unlink()
    dataset = tmp_path / "datasets/made/dataset.yaml"
    dataset.write_text(dataset.read_text().replace("queries: queries.jsonl\n", ""))
    assert open_project(tmp_path).describe()["held_out"] == 30
    session = open_project(tmp_path, "tune.held_out=all")
    assert session.describe()["held_out"] is None
    with pytest.raises(ConfigError, match="cross-fits"):
        ask_held_out(session, Setting(system="boosted"), tmp_path)


def test_a_degraded_rerank_list_is_shown_and_decides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_project(tmp_path)
    session = open_project(tmp_path)
    monkeypatch.setattr(Dataset, "degradation", lambda _, name: f"{name} is degraded")
    assert session.describe()["notes"] == ["r is degraded"]
    with pytest.raises(DataError, match="r is degraded"):
        ask_held_out(session, Setting(system="boosted"), tmp_path)
    accepting = open_project(tmp_path, "tune.degraded=accept")
    assert ask_held_out(accepting, Setting(system="boosted"), tmp_path)["look_number"] == 1
