import json
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest

from fusion_bench.cli import main
from fusion_bench.config.removed_names import describe_gone
from fusion_bench.tune import tuning_run
from fusion_bench.tune.search import SearchResult, run_search
from fusion_bench.util.digests import add_line_digest, strip_line_digest
from tests import tiny
from tests.child_processes import running_child
from tests.shipped_schemas import check_record

SMALL = ["--trials", "6", "--folds", "0", "--no-plots", "--datasets"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tiny.make(tmp_path)
    tiny.edit(
        made, tiny.EXPERIMENT, "systems:", "tune: {front: {trials: 2}, system: two}\nsystems:"
    )
    return made


def tune(root: Path, *options: str) -> int:
    out = str(root / "out")
    experiment = str(root / tiny.EXPERIMENT)
    return main(["tune", experiment, "--out", out, *SMALL, str(root / "datasets"), *options])


def test_tune_writes_a_report_a_record_and_an_experiment_that_eval_takes(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tune(root, "--json") == 0
    out = capsys.readouterr().out
    check_record("tuning", out)
    report = json.loads(out)
    assert report["system"] == "two"
    assert report["measure"] == "RR@10"  # the experiment's first
    assert len(report["trials"]) == 6
    assert len((root / "out" / "trials.jsonl").read_text().splitlines()) >= 7
    tuned = str(root / "out" / "tuned.yaml")
    folders = ["--datasets", str(root / "datasets"), "--no-plots", "--json"]
    assert main(["eval", tuned, "--out", str(root / "again"), *folders]) == 0
    again = json.loads(capsys.readouterr().out)["collections"][0]
    rows = {row["name"]: row for row in again["systems"]}
    assert rows["two tuned"]["measures"]["RR@10"]["mean"] == pytest.approx(
        report["held_out"]["tuned"]
    )


def test_a_second_run_reads_the_record_and_finds_the_same(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tune(root, "--json") == 0
    first = json.loads(capsys.readouterr().out)
    record = (root / "out" / "trials.jsonl").read_bytes()
    assert tune(root, "--json") == 0
    assert json.loads(capsys.readouterr().out)["trials"] == first["trials"]
    assert (root / "out" / "trials.jsonl").read_bytes() == record


def test_a_log_goes_on_with_the_sampler_that_wrote_it(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also one of a version whose default was another sampler."""
    assert tune(root, "--json", "--sampler", "tpe") == 0
    first = json.loads(capsys.readouterr().out)
    assert tune(root, "--json", "--trials", "20") == 0
    second = json.loads(capsys.readouterr().out)
    assert second["settings"]["sampler"] == "tpe"
    assert second["trials"][:6] == first["trials"]
    assert tune(root, "--sampler", "random") == 2
    assert "sampler" in capsys.readouterr().err
    shutil.rmtree(root / "out")
    assert tune(root, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["settings"]["sampler"], report["settings"]["seed"]) == ("tpe", 7)


def test_auto_goes_on_with_its_log_and_fills_the_space_beyond_100_trials(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samplers = []
    for trials in ("100", "101"):
        assert tune(root, "--json", "--trials", trials) == 0
        samplers.append(json.loads(capsys.readouterr().out)["settings"]["sampler"])
    shutil.rmtree(root / "out")
    assert tune(root, "--json", "--trials", "101") == 0
    samplers.append(json.loads(capsys.readouterr().out)["settings"]["sampler"])
    assert samplers == ["tpe", "tpe", "qmc"]
    head = json.loads((root / "out/trials.jsonl").read_text().partition("\n")[0])
    assert head["parts"]["sampler"] == '"qmc"'


def test_the_sampler_that_is_gone_is_named(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tune(root, "--sampler", "parzen") == 2
    gone = describe_gone("sampler: parzen")
    assert f"tune.sampler: {gone}" in capsys.readouterr().err
    assert tune(root) == 0
    log = root / "out/trials.jsonl"
    text = strip_line_digest(log.read_text().partition("\n")[0], "")
    assert text is not None
    line = add_line_digest(text.replace('\\"tpe\\"', '\\"parzen\\"'), "")
    log.write_text(f"{line}\n", encoding="utf-8")
    capsys.readouterr()
    assert tune(root) == 2
    assert f"out/trials.jsonl: {gone}: this log" in capsys.readouterr().err


def test_options_come_over_what_the_file_says(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tune(root, "--json", "--system", "one", "--sampler", "qmc", "--seed", "3") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["system"] == "one"
    assert report["settings"]["sampler"] == "qmc"
    assert report["settings"]["seed"] == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--system", "three"], "'three' (known: one, two)"),
        (["--sampler", "magic"], "tune.sampler: "),
        (["--trials", "0"], "tune.trials: "),
        (["--sampler", "cmaes"], "blend.retrieval is a"),
    ],
)
def test_a_wrong_option_is_one_line_and_code_2(
    root: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert tune(root, *options) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("system: two", "system: three", "tune.system: unknown system"),
        ("system: two", "system: two, trails: 3", "did you mean 'trials'"),
        ("system: two", "system: two, polish: false", "tune.polish: line"),
        ("system: two", "system: two, salt: s", "called 'split_seed' now"),
        ("system: two", "system: two, choose: sceptical", "called 'shrinkage' now"),
        ("system: two", "system: two, measure: nDGC@10", "tune.measure: "),
        (
            "system: two",
            "system: two, parameters: {fusion.q: {low: 0, high: 1}}",
            "tune.parameters: tune: fusion.q: fusion.q: unknown key 'q'",
        ),
    ],
)
def test_what_is_wrong_with_the_file_is_named_with_its_place(
    root: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str
) -> None:
    tiny.edit(root, tiny.EXPERIMENT, old, new)
    assert tune(root) == 2
    assert said in capsys.readouterr().err


def test_without_a_system_to_tune_it_says_how_to_name_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tune(tiny.make(tmp_path)) == 2
    assert "no 'tune'" in capsys.readouterr().err


def test_a_search_through_a_database_is_judged_and_copied_like_any_other(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shared, copy = (f"sqlite:///{root / name}.db" for name in ("shared", "copy"))
    assert tune(root, "--json", "--storage", shared, "--export-study", copy) == 0
    report = json.loads(capsys.readouterr().out)
    (study,) = optuna.get_all_study_summaries(storage=copy)
    assert study.study_name == "e on tiny"
    assert study.n_trials == len(report["trials"])
    assert study.best_trial is not None
    assert study.best_trial.value == max(trial["value"] or 0 for trial in report["trials"])


def test_ctrl_c_writes_what_was_found_and_says_130(root: Path) -> None:
    out = root / "out"
    command = ["-m", "fusion_bench", "tune", str(root / tiny.EXPERIMENT), "--out", str(out)]
    options = ["--trials", "100000", "--folds", "0", "--no-plots"]
    options += ["--datasets", str(root / "datasets")]
    log = out / "trials.jsonl"
    with running_child(
        [sys.executable, *command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        while process.poll() is None and not (log.exists() and log.read_bytes().count(b"\n") > 40):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=240)
    assert process.returncode == 130, errors
    assert b"Traceback" not in errors
    found = json.loads((out / "tuning.json").read_text())
    assert found["interrupted"]
    assert len(found["trials"]) >= 40


def test_ctrl_c_in_a_fold_ends_the_folds_too(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real, folds = run_search, []

    def stopped(*given: Any, **more: Any) -> SearchResult:  # noqa: ANN401 - as search takes them
        folds.append(more.get("log"))
        return replace(real(*given, **more), interrupted=len(folds) > 1)

    tiny.edit(
        root, "datasets/tiny/queries.jsonl", '"split": "test", "group": "g3"', '"split": "dev"'
    )
    monkeypatch.setattr(tuning_run, "run_search", stopped)
    assert tune(root, "--folds", "2", "--json") == 130
    report = json.loads(capsys.readouterr().out)
    assert report["interrupted"]
    assert report["nested"] is None
    assert len(folds) == 2


@pytest.mark.parametrize("form", ["{}", "../datasets/{}/dataset.yaml", "../datasets/{}"])
def test_several_datasets_are_tuned_one_by_one(form: str, root: Path) -> None:
    shutil.copytree(root / "datasets" / "tiny", root / "datasets" / "small")
    tiny.edit(root, "datasets/small/dataset.yaml", "name: tiny", "name: small")
    tiny.edit(
        root,
        tiny.EXPERIMENT,
        "dataset: tiny",
        f"datasets: {[form.format(name) for name in ('tiny', 'small')]}",
    )
    assert tune(root) == 0
    for name in ("tiny", "small"):
        report = json.loads((root / "out" / name / "tuning.json").read_text())
        assert report["dataset"] == name
        assert (root / "out" / name / "tuned.yaml").exists()


def test_datasets_of_one_name_are_refused_before_the_first_is_tuned(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(root / "datasets" / "tiny", root / "datasets" / "small")
    paths = ["../datasets/tiny", "../datasets/small"]
    tiny.edit(root, tiny.EXPERIMENT, "dataset: tiny", f"datasets: {paths}")
    assert tune(root) == 2
    assert "named 'tiny' too" in capsys.readouterr().err
    assert not (root / "out").exists()


def test_the_switch_of_v2_holds_here_too(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_FUSION_V2_ENABLED", "false")
    assert tune(root, "--json") == 0
    assert json.loads(capsys.readouterr().out)["default"]["fusion"]["method"] == "rrf"
