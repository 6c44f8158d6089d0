from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusion_bench.config.parameters import Params
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.errors import ConfigError, MissingExtraError
from fusion_bench.experiment.settings import SearchSettings
from fusion_bench.tune import search
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.search import SearchResult, Trial, TrialCallback, ignore_trial, run_search
from tests.tune.cases import aligned
from tests.tune.problems import BLEND, problem, system

RUNS = aligned(24)
V2 = system({"method": "rrf_v2"}, {**BLEND, "method": "position_aware"})
METHODS = {
    "fusion.method": {"choices": ["rrf", "weighted_score"]},
    "blend.method": {"choices": ["none", "linear", "replace"]},
}
NUMBERS = {"fusion.k": {"low": 1, "high": 100}, "fusion.weights": "own"}


def go(
    one: TuningObjective | None = None,
    *,
    log: Path | None = None,
    keep: BoolArray | None = None,
    on_trial: TrialCallback = ignore_trial,
    **settings: Any,  # noqa: ANN401 - as Settings takes them
) -> SearchResult:
    settings = {"trials": 24, "batch": 8, **settings}
    keep = np.ones(len(RUNS.queries), dtype=bool) if keep is None else keep
    rules = SearchSettings(**settings)
    return run_search(one or problem(runs=RUNS), keep, rules, on_trial=on_trial, log=log)


def told(study: SearchResult) -> list[tuple[int, dict[str, Any], float | None, str]]:
    found = study.trials
    return [(t.number, dict(t.params), None if t.is_failed else t.value, t.origin) for t in found]


@pytest.mark.parametrize("sampler", ["tpe", "cmaes", "qmc", "random", "grid"])
def test_every_sampler_repeats_itself_and_never_loses_to_the_default(sampler: str) -> None:
    one = problem(ranges=NUMBERS, runs=RUNS)
    study = go(one, sampler=sampler)
    assert told(study) == told(go(one, sampler=sampler))
    assert len(study.trials) == 24
    assert study.best_trial.value >= study.default_trial.value
    assert study.default_trial.params == one.default_params
    if sampler != "grid":  # it goes through the same points, whatever the seed
        assert told(study) != told(go(one, sampler=sampler, seed=8))


def test_the_default_and_what_the_seeds_suggest_come_first() -> None:
    study = go(problem(V2, runs=RUNS), trials=6)
    assert [trial.origin for trial in study.trials] == ["default", *["seed"] * 3, *["sampler"] * 2]
    assert study.trials[3].params["blend.tiers.1.value"] == 0.85
    assert [t.origin for t in go(problem(V2, runs=RUNS), trials=2).trials] == ["default", "seed"]


def test_values_are_those_of_plain_evaluation() -> None:
    one = problem(V2, METHODS, runs=RUNS)
    for trial in go(one, trials=12).trials:
        assert trial.value == one.evaluate_params([trial.params])[0].mean()


def test_queries_that_are_kept_out_change_nothing() -> None:
    keep = np.arange(24) < 12
    other = aligned(24, seed=0).subset(keep)
    assert told(go(keep=keep)) == told(go(problem(runs=other), keep=np.ones(12, dtype=bool)))


@pytest.mark.parametrize("sampler", ["tpe", "random", "grid"])
def test_a_conditional_space_holds_only_what_takes_part(sampler: str) -> None:
    one = problem(V2, METHODS, runs=RUNS)
    study = go(one, sampler=sampler, points=2)
    for trial in study.trials:
        if trial.origin == "sampler":
            assert one.contains(trial.params), trial
    assert {t.params["blend.method"] for t in study.trials} > {"none"}


def test_brute_force_tries_every_point_once() -> None:
    ranges = {
        "fusion.k": {"low": 1, "high": 3, "int": True},
        "fusion.weights.bad": {"low": 0.5, "high": 1, "step": 0.25},
    }
    study = go(problem(ranges=ranges, runs=RUNS), sampler="brute_force", trials=100)
    found = [(t.params["fusion.k"], t.params["fusion.weights.bad"]) for t in study.trials]
    assert sorted(found[1:]) == [(k, w) for k in (1, 2, 3) for w in (0.5, 0.75, 1.0)]
    some = go(problem(ranges=ranges, runs=RUNS), sampler="brute_force", trials=5)
    assert len({tuple(t.params.items()) for t in some.trials}) == 5


@pytest.mark.parametrize(
    ("sampler", "ranges", "said"),
    [
        ("cmaes", METHODS, "sampler cmaes searches fixed spaces only"),
        ("qmc", METHODS, "sampler qmc searches fixed spaces only"),
        ("gp", METHODS, "sampler gp searches fixed spaces only"),
        ("cmaes", {"blend.retrieval": "own"}, "numbers only, and blend.retrieval is a choice"),
        ("brute_force", NUMBERS, "fusion.k has no step: give it one, or use grid"),
        (
            "brute_force",
            {
                "fusion.k": {"low": 1, "high": 1000, "int": True},
                "fusion.weights.bad": {"low": 0, "high": 2, "step": 0.001},
            },
            "more than 200,000 points",
        ),
    ],
)
def test_a_sampler_says_what_it_cannot_search(
    sampler: str, ranges: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        go(problem(V2, ranges, runs=RUNS), sampler=sampler)


def test_gaussian_processes_repeat_themselves_and_go_on_where_they_were(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    one = problem(ranges={"fusion.weights": "own"}, runs=RUNS)
    small: dict[str, Any] = {"sampler": "gp", "trials": 13, "batch": 4}  # the first 10 are random
    whole = go(one, **small)
    assert len(whole.trials) == 13
    go(one, log=tmp_path / "log", **{**small, "trials": 11})
    assert told(go(one, log=tmp_path / "log", **small)) == told(whole)
    assert told(whole) != told(go(one, **small, seed=8))


def test_gaussian_processes_need_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"sampler gp .*'torch'"):
        go(problem(ranges=NUMBERS, runs=RUNS), sampler="gp")


def test_a_trial_that_cannot_be_computed_is_noted_and_the_search_goes_on() -> None:
    ranges = {
        "fusion.weights.good": {"choices": [0, 1]},
        "fusion.weights.bad": {"choices": [0, 1]},
    }
    study = go(problem(ranges=ranges, runs=RUNS), sampler="brute_force")
    failed = [dict(t.params) for t in study.trials if t.is_failed]
    assert failed == [{"fusion.weights.good": 0, "fusion.weights.bad": 0}]
    assert not study.best_trial.is_failed
    for sampler in ("tpe", "random"):
        assert any(
            t.is_failed for t in go(problem(ranges=ranges, runs=RUNS), sampler=sampler).trials
        )


def test_a_default_that_cannot_be_computed_is_an_error() -> None:
    one = problem(system(blend={**BLEND, "reranker": "blunt"}), NUMBERS, runs=RUNS)
    with pytest.raises(ConfigError, match=r"default .*: .*unknown reranker"):
        go(one)


def test_a_default_outside_the_space_is_tried_all_the_same() -> None:
    study = go(problem(ranges={"fusion.k": {"low": 1, "high": 9}}, runs=RUNS))
    assert study.default_trial.params == {"fusion.k": 60}
    assert all(1 <= t.params["fusion.k"] <= 9 for t in study.trials[1:])  # type: ignore[operator]


def test_time_runs_out_between_batches() -> None:
    assert len(go(timeout=1e-9, trials=100).trials) < 100


def test_a_search_goes_on_where_its_log_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = problem(V2, METHODS, runs=RUNS)
    whole = go(one)
    go(one, log=tmp_path / "log", trials=13)
    evaluated: list[Params] = []

    evaluate = TuningObjective.evaluate_params

    def record(self: TuningObjective, trials: Sequence[Params]) -> FloatArray:
        evaluated.extend(trials)
        return evaluate(self, trials)

    monkeypatch.setattr(TuningObjective, "evaluate_params", record)
    settings = SearchSettings(trials=24, batch=8)
    keep = np.ones(len(RUNS.queries), dtype=bool)
    again = run_search(one, keep, settings, log=tmp_path / "log")
    assert told(again) == told(whole)
    done = {repr(sorted(t.params.items())) for t in whole.trials[:13]}
    assert not done & {repr(sorted(params.items())) for params in evaluated}


def test_a_log_knows_its_search(tmp_path: Path) -> None:
    go(log=tmp_path / "log")
    with pytest.raises(ConfigError, match="another search"):
        go(log=tmp_path / "log", seed=8)


def test_ctrl_c_ends_with_what_was_found() -> None:
    def stop(trial: Trial, best: Trial) -> None:
        assert best.value >= trial.value or trial.is_failed
        if trial.number == 12:
            raise KeyboardInterrupt

    keep = np.ones(len(RUNS.queries), dtype=bool)
    settings = SearchSettings(trials=24, batch=8)
    study = run_search(problem(runs=RUNS), keep, settings, on_trial=stop)
    assert study.interrupted
    whole = told(go())
    assert told(study) == whole[: len(study.trials)]
    assert 13 <= len(study.trials) < 24


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.tune.search.test_search import METHODS, RUNS, V2, go
from tests.tune.problems import problem

count = 0
def deadly(trial, best):
    global count
    count += 1
    if count == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
go(problem(V2, METHODS, runs=RUNS), log=Path(sys.argv[1]), on_trial=deadly, trials=24)
"""


def test_killed_searches_lose_and_repeat_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for after in (5, 17):
        root = Path(__file__).parents[3]
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(log), str(after)],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root)},
            check=False,
        )
        assert done.returncode == -signal.SIGKILL
        lines = log.read_text().splitlines()
        assert len(lines) - 1 >= after  # every trial that was announced is on the disk
    study = go(problem(V2, METHODS, runs=RUNS), log=log)
    assert told(study) == told(go(problem(V2, METHODS, runs=RUNS)))
    params = [line[line.index('"params"') :] for line in log.read_text().splitlines()[1:]]
    assert len(set(params)) == len(params)
