"""A search that many processes share, and finished searches in a database."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults

import numpy as np
import optuna
import psycopg2  # type: ignore[import-untyped]
import pytest
from optuna.trial import TrialState

from fusion_bench.errors import ConfigError, FusionBenchError, MissingExtraError
from fusion_bench.experiment.settings import SearchSettings
from fusion_bench.io.fingerprints import Fingerprint
from fusion_bench.tune import search, shared_study
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.search import SearchResult, Trial, run_search
from fusion_bench.tune.shared_study import export_search, search_shared_study
from tests.child_processes import running_child
from tests.postgres import running_postgres
from tests.texts import names_in_order
from tests.tune.cases import aligned
from tests.tune.problems import BLEND, problem, system

RUNS = aligned(24)
KEEP = np.ones(24, dtype=bool)
OBJECTIVE = problem(system({"method": "rrf_v2"}, {**BLEND, "method": "position_aware"}), runs=RUNS)
SETTINGS = SearchSettings(trials=10, sampler="tpe")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with running_postgres() as url:
        yield url


def load_study(url: str) -> optuna.Study:
    storage = optuna.storages.RDBStorage(url.replace("postgresql://", "postgresql+psycopg2://"))
    (name,) = [study.study_name for study in storage.get_all_studies()]
    return optuna.load_study(study_name=name, storage=storage)


def settings(trials: int) -> SearchSettings:
    return SETTINGS.model_copy(update={"trials": trials})


def test_a_later_process_continues_the_search(sqlite: str) -> None:
    first = search_shared_study(OBJECTIVE, KEEP, settings(6), sqlite)
    seen: list[Trial] = []
    both = search_shared_study(
        OBJECTIVE, KEEP, SETTINGS, sqlite, on_trial=lambda t, _: seen.append(t)
    )
    assert (len(first.trials), len(both.trials), len(seen)) == (6, 10, 4)
    assert both.trials[:6] == first.trials
    assert [t.origin for t in both.trials[:4]] == ["default", "seed", "seed", "seed"]
    assert [t.number for t in both.trials] == list(range(10))
    for trial in both.trials:
        assert trial.value == OBJECTIVE.evaluate_params([trial.params])[0].mean()


def test_a_study_of_other_data_is_left_alone_and_the_difference_is_named(
    sqlite: str, caplog: pytest.LogCaptureFixture
) -> None:
    search_shared_study(OBJECTIVE, KEEP, settings(3), sqlite)
    fold = SearchSettings(trials=2, seed=8, sampler="tpe")
    search_shared_study(OBJECTIVE, np.arange(24) > 3, fold, sqlite)
    assert not caplog.messages
    other = replace(OBJECTIVE, contents=Fingerprint({"qrels": "0" * 64}))
    seen: list[Trial] = []
    search_shared_study(other, KEEP, settings(3), sqlite, on_trial=lambda t, _: seen.append(t))
    assert len(seen) == 2  # beside the default
    [message] = caplog.messages
    assert names_in_order(message, "a new study", "qrels: ")


def test_a_search_by_one_process_repeats_itself(tables: Path, tmp_path: Path) -> None:
    objective = problem(ranges={"fusion.weights": "own"}, runs=RUNS)
    urls = [f"sqlite:///{shutil.copy(tables, tmp_path / name)}" for name in ("a", "b", "c")]
    # The sampler's first ten trials are random.
    first, second = (search_shared_study(objective, KEEP, settings(13), url) for url in urls[:2])
    assert first.trials == second.trials
    other = SearchSettings(trials=3, seed=8, sampler="tpe")
    assert search_shared_study(objective, KEEP, other, urls[2]).trials[1:] != first.trials[1:3]


def test_trials_that_cannot_be_computed_count(sqlite: str) -> None:
    weights = {f"fusion.weights.{name}": {"choices": [0]} for name in ("good", "bad")}
    objective = problem(ranges=weights, runs=RUNS)
    result = search_shared_study(objective, KEEP, settings(4), sqlite)
    assert [trial.is_failed for trial in result.trials] == [False, True, True, True]


def test_ctrl_c_keeps_the_finished_trials(sqlite: str) -> None:
    def stop(trial: Trial, best: Trial) -> None:
        assert best.value >= trial.value
        if trial.number == 3:
            raise KeyboardInterrupt

    result = search_shared_study(OBJECTIVE, KEEP, SETTINGS, sqlite, on_trial=stop)
    assert result.interrupted
    assert 1 < len(result.trials) < 10


def test_the_timeout_starts_no_trial(sqlite: str) -> None:
    hurried = SETTINGS.model_copy(update={"timeout": 1e-9})
    assert len(search_shared_study(OBJECTIVE, KEEP, hurried, sqlite).trials) == 1


def test_a_database_that_stays_locked_is_an_error(
    sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    search_shared_study(OBJECTIVE, KEEP, settings(4), sqlite)
    monkeypatch.setattr(shared_study, "LOCK_TIMEOUT", 0.01)
    with closing(sqlite3.connect(sqlite.removeprefix("sqlite:///"))) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ConfigError, match="database is locked"):
            search_shared_study(OBJECTIVE, KEEP, settings(6), sqlite)


@pytest.mark.parametrize("moment", ["evaluate_params", "suggest_params"])
def test_a_suspended_process_whose_trial_others_failed_ends_with_one_line(
    moment: str, sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place: Any = TuningObjective if moment == "evaluate_params" else search
    original, calls = getattr(place, moment), iter(range(100))

    def suspend(*arguments: Any) -> Any:  # noqa: ANN401 - as the function
        if next(calls) == 3:
            study = load_study(sqlite)
            (running,) = study.get_trials(states=(TrialState.RUNNING,))
            study.tell(running.number, state=TrialState.FAIL)
        return original(*arguments)

    with monkeypatch.context() as context:
        context.setattr(place, moment, suspend)
        with pytest.raises(FusionBenchError, match="same command again"):
            search_shared_study(OBJECTIVE, KEEP, settings(6), sqlite)
    assert len(search_shared_study(OBJECTIVE, KEEP, settings(6), sqlite).trials) == 6


def test_the_default_and_the_presets_are_tried_once_by_all_processes(sqlite: str) -> None:
    presets = [dict(each) for each in filter(OBJECTIVE.contains, OBJECTIVE.preset_params)]
    for trials in (3, 5, 8):
        search_shared_study(OBJECTIVE, KEEP, settings(trials), sqlite)
    tried = [dict(trial.params) for trial in load_study(sqlite).get_trials()]
    assert len(tried) == 7
    assert [tried.count(preset) for preset in presets] == [1] * len(presets)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://me:secret@127.0.0.1:1/none", r"postgresql.*://127.0.0.1:1/none: .*refused"),
        ("nonsense", "storage .not shown.: .*an address reads postgresql://"),
    ],
)
def test_an_unreachable_database_is_one_line_without_a_password(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        search_shared_study(OBJECTIVE, KEEP, SETTINGS, url)
    assert "secret" not in str(caught.value)


def test_what_cannot_be_shared_is_refused(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="sampler grid: "):
        search_shared_study(OBJECTIVE, KEEP, SearchSettings(sampler="grid"), sqlite)
    broken = problem(system(blend={**BLEND, "reranker": "blunt"}), {"fusion.k": "own"}, runs=RUNS)
    with pytest.raises(ConfigError, match="the default cannot"):
        search_shared_study(broken, KEEP, SETTINGS, sqlite)
    monkeypatch.setitem(sys.modules, "psycopg2", None)
    with pytest.raises(MissingExtraError, match="psycopg2"):
        search_shared_study(OBJECTIVE, KEEP, SETTINGS, "postgresql://x")


PROCESS = """
import sys, time
from tests.tune import test_shared_study as case
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.shared_study import search_shared_study
from tests.postgres import running_postgres

evaluate = TuningObjective.evaluate_params
def slow(self, trials):
    if trials[0] != self.default_params:
        print("working", flush=True)
        time.sleep(float(sys.argv[2]))
    return evaluate(self, trials)
TuningObjective.evaluate_params = slow
search_shared_study(case.OBJECTIVE, case.KEEP, case.SETTINGS, sys.argv[1])
"""


@contextmanager
def searching(url: str, pause: float) -> Iterator[subprocess.Popen[str]]:
    with running_child(
        [sys.executable, "-c", PROCESS, url, str(pause)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        yield process


def test_processes_share_a_postgresql_and_one_is_killed(postgres: str) -> None:
    with searching(postgres, 60.0) as killed:
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
    with closing(psycopg2.connect(postgres)) as database, database, database.cursor() as cursor:
        cursor.execute("UPDATE trial_heartbeats SET heartbeat = heartbeat - interval '1 hour'")
        assert cursor.rowcount == 1
    with searching(postgres, 0.05) as other:
        result = search_shared_study(OBJECTIVE, KEEP, SETTINGS, postgres)
        other.communicate(timeout=240)
    assert other.returncode == 0
    assert len(result.trials) >= 10
    trials = load_study(postgres).get_trials()
    (failed,) = (t for t in trials if t.state == TrialState.FAIL)
    finished = [t.params for t in trials if t.state == TrialState.COMPLETE]
    assert failed.params in finished  # another process repeated it
    assert all(finished.count(params) == 1 for params in finished)


IN_BATCHES = SearchSettings(trials=10, batch=4, sampler="tpe")


def test_an_exported_study_reads_as_one_of_optunas_own(sqlite: str) -> None:
    study = run_search(OBJECTIVE, KEEP, IN_BATCHES)
    export_search(study, OBJECTIVE, sqlite, "mine")
    found = optuna.load_study(study_name="mine", storage=sqlite)
    assert found.best_value == study.best_trial.value
    assert found.best_params == study.best_trial.params
    assert found.direction == optuna.study.StudyDirection.MAXIMIZE
    other = run_search(OBJECTIVE, KEEP, IN_BATCHES.model_copy(update={"seed": 8}))
    with pytest.raises(ConfigError, match="another study 'mine'"):
        export_search(other, OBJECTIVE, sqlite, "mine")


def test_an_export_that_was_interrupted_goes_on(sqlite: str) -> None:
    one, study = everything()
    export_search(replace(study, trials=study.trials[:5]), one, sqlite, "mine")
    for _ in range(2):
        export_search(study, one, sqlite, "mine")
        stored = optuna.load_study(study_name="mine", storage=sqlite).get_trials()
        assert [t.user_attrs["number"] for t in stored] == [t.number for t in study.trials]


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
    found = run_search(one, KEEP, SearchSettings(trials=12, batch=4, sampler="tpe"))
    failed = Trial(len(found.trials), found.trials[5].params, float("nan"), "sampler")
    refused = Trial(
        failed.number + 1, {**one.default_params, "fusion.k": -5.0}, float("nan"), "sampler"
    )
    return one, replace(found, trials=(*found.trials, failed, refused))


def test_an_exported_study_holds_every_trial_with_its_origin_and_configuration(sqlite: str) -> None:
    one, study = everything()
    export_search(study, one, sqlite, "all of it")
    trials = optuna.load_study(study_name="all of it", storage=sqlite).get_trials()
    assert [t.user_attrs["number"] for t in trials] == [t.number for t in study.trials]
    assert [t.user_attrs["origin"] for t in trials] == [t.origin for t in study.trials]
    assert {"default", "seed", "sampler"} == {t.origin for t in study.trials}
    assert "fusion.k" not in trials[0].params  # 60 is outside the space
    assert trials[0].user_attrs["config"]["fusion"]["k"] == 60
    assert "blend.min_score" not in trials[0].params  # not set
    for trial, mine in zip(trials[1:-1], study.trials[1:-1], strict=True):
        assert trial.params == {p: v for p, v in mine.params.items() if v not in (None, 60)}
        assert trial.user_attrs["config"] == one.build_system(mine.params).resolved_config
        assert trial.value == (None if mine.is_failed else mine.value)
    assert [t.state.name for t in trials[-2:]] == ["FAIL", "FAIL"]
    assert "config" not in trials[-1].user_attrs
    assert any("fusion.weights.bad" not in t.params for t in trials)  # it takes no part there


def test_optuna_dashboard_shows_it(sqlite: str) -> None:
    dashboard = pytest.importorskip("optuna_dashboard")
    one, study = everything()
    export_search(study, one, sqlite, "all of it")
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


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "sqlite+pysqlite://"])
def test_a_database_in_memory_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="in memory:"):
        search_shared_study(OBJECTIVE, KEEP, IN_BATCHES, url)
