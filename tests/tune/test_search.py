"""The search and its log."""

import os
import re
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
from fusion_bench.errors import ConfigError, DataError, MissingExtraError
from fusion_bench.experiment.settings import SearchSettings
from fusion_bench.io.fingerprints import Fingerprint
from fusion_bench.tune import search
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.search import (
    SearchResult,
    Trial,
    TrialCallback,
    TrialLog,
    run_search,
)
from fusion_bench.util.digests import add_line_digest
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
    on_trial: TrialCallback = lambda _trial, _best: None,
    **settings: Any,  # noqa: ANN401 - as Settings takes them
) -> SearchResult:
    settings = {"trials": 24, "batch": 8, **settings}
    keep = np.ones(len(RUNS.queries), dtype=bool) if keep is None else keep
    rules = SearchSettings(**settings)
    return run_search(one or problem(runs=RUNS), keep, rules, on_trial=on_trial, log=log)


def told(study: SearchResult) -> list[tuple[int, dict[str, Any], float | None, str]]:
    found = study.trials
    return [(t.number, dict(t.params), None if t.is_failed else t.value, t.origin) for t in found]


@pytest.mark.parametrize("sampler", ["auto", "tpe", "cmaes", "qmc", "random", "grid"])
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


@pytest.mark.parametrize("sampler", ["auto", "tpe", "random", "grid"])
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
from tests.tune.test_search import METHODS, RUNS, V2, go
from tests.tune.problems import problem

count = 0
def deadly(trial, best):
    global count
    count += 1
    if count == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
go(problem(V2, METHODS, runs=RUNS), log=Path(sys.argv[1]), on_trial=deadly, trials=24)
"""


@pytest.mark.slow
def test_killed_searches_lose_and_repeat_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for after in (5, 17):
        root = Path(__file__).parents[2]
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


FEW_RUNS = aligned(12)
OBJECTIVE = problem(ranges={"fusion.weights": "own"}, runs=FEW_RUNS)
SAME = Fingerprint({"seed": "7"})
GOOD, BAD = "fusion.weights.good", "fusion.weights.bad"
FIRST: Params = {GOOD: 1.0, BAD: 0.1 + 0.2}
SECOND: Params = {GOOD: 0.0, BAD: 0.0}  # cannot be computed


def write(path: Path, *batch: Params) -> list[Trial]:
    return TrialLog(path, SAME).evaluate_params(OBJECTIVE, batch, "sampler")


def refuse(*_: object) -> None:
    raise AssertionError("evaluated again")


def test_what_was_written_is_found_again_to_the_last_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = write(tmp_path / "new" / "trials.jsonl", FIRST, SECOND)
    monkeypatch.setattr(TuningObjective, "evaluate_params", refuse)
    swapped = {BAD: FIRST[BAD], GOOD: FIRST[GOOD]}
    again, failed = write(tmp_path / "new" / "trials.jsonl", swapped, SECOND)
    assert (again.number, again.value) == (0, first.value)
    assert second.is_failed
    assert failed.is_failed


def test_a_finished_trial_is_written_once(tmp_path: Path) -> None:
    log = TrialLog(tmp_path / "t", SAME)
    log.evaluate_params(OBJECTIVE, [FIRST], "sampler")
    log.evaluate_params(OBJECTIVE, [FIRST, SECOND], "sampler")
    assert len((tmp_path / "t").read_text().splitlines()) == 3  # the head, and two trials
    assert [trial.number for trial in log.trials] == [0, 1, 2]


@pytest.mark.parametrize("cut", [1, 20])
def test_a_line_cut_short_is_cut_off(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "t"
    write(path, FIRST, SECOND)
    path.write_bytes(path.read_bytes()[:-cut])
    assert len(TrialLog(path, SAME)) == 1
    write(path, SECOND)
    assert len(TrialLog(path, SAME)) == 2


@pytest.mark.parametrize("line", ["nonsense", "[]", '{"value":1}', "[" * 100_000, ""])
def test_a_line_without_its_digest_is_an_error_with_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "t"
    write(path, FIRST)
    path.write_text(f"{path.read_text()}{line}\n")
    with pytest.raises(DataError, match=r"t:3: .*digest"):
        TrialLog(path, SAME)


@pytest.mark.parametrize(
    "value", ["5", "-1", "NaN", "Infinity", "-Infinity", "true", '"0.5"', "[]", "1" + "0" * 400]
)
def test_a_value_that_the_measure_cannot_have_is_refused_whatever_its_digest(
    tmp_path: Path, value: str
) -> None:
    path = tmp_path / "t"
    write(path, FIRST)
    text = f'{{"number":1,"origin":"sampler","value":{value},"params":{{}}}}'
    path.write_text(f"{path.read_text()}{add_line_digest(text, SAME.digest)}\n")
    with pytest.raises(DataError, match=r"t:3: value .* lie in \[0, 1\]"):
        TrialLog(path, SAME, (0.0, 1.0))


@pytest.mark.parametrize("number", [0, 1, 2])
def test_an_edited_line_is_refused_with_its_number(tmp_path: Path, number: int) -> None:
    path = tmp_path / "t"
    write(path, FIRST, SECOND)
    lines = path.read_text().splitlines(keepends=True)
    lines[number] = re.sub(r"(?<=[:,])\d", "9", lines[number], count=1)
    path.write_text("".join(lines))
    with pytest.raises(DataError, match=rf"t:{number + 1}: .*digest"):
        TrialLog(path, SAME)


def test_a_line_of_another_log_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "t", FIRST)
    TrialLog(tmp_path / "u", Fingerprint({"seed": "8"})).evaluate_params(
        OBJECTIVE, [SECOND], "sampler"
    )
    line = (tmp_path / "u").read_text().splitlines()[1]
    with (tmp_path / "t").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(DataError, match=r"t:3: .*digest"):
        TrialLog(tmp_path / "t", SAME)


def test_a_log_of_an_earlier_version_is_refused_with_the_command(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_text('{"version": 1, "search": "0a"}\n')
    with pytest.raises(ConfigError, match=r"t:1: .*version .* \(rm .*t\)"):
        TrialLog(path, SAME)
